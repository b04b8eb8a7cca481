// Reads keys by table and type. A wrong type is an error, an unknown key only a warning: existing
// files are older or newer than this program.
#include "hook/runtime/nvidia/config.h"

#include <cstdlib>
#include <utility>

#include "base/core/document.h"
#include "base/core/strings.h"
#include "base/toml.h"
#include "os/core/file.h"

namespace penstock::hook::runtime {
namespace {

using base::Problems;
using base::Value;

constexpr std::string_view kRuntimeTable = "nvidia-container-runtime";

/// One table. One reader checks types and another checks names, since one kind of problem is an
/// error and the other a warning.
class Table {
 public:
  Table(const Value* value, const std::string& where, Problems& errors, Problems& warnings,
        Config& config)
      : value_(value != nullptr ? *value : kNothing),
        typed_(value_, where, errors),
        named_(value_, where, warnings),
        config_(config) {}

  std::optional<bool> Bool(std::string_view key) {
    return named_.Any(key) != nullptr ? typed_.Bool(key) : std::nullopt;
  }
  std::optional<std::string> String(std::string_view key) {
    return named_.Any(key) != nullptr ? typed_.String(key) : std::nullopt;
  }
  std::optional<std::vector<std::string>> Strings(std::string_view key) {
    return named_.Any(key) != nullptr ? typed_.Strings(key) : std::nullopt;
  }
  std::optional<std::string> OneOf(std::string_view key, std::vector<std::string> names) {
    return named_.Any(key) != nullptr ? typed_.OneOf(key, std::move(names)) : std::nullopt;
  }
  const Value* Map(std::string_view key) {
    return named_.Any(key) != nullptr ? typed_.Map(key) : nullptr;
  }

  /// Keys of the toolkit that have no effect here; not reported if the value is the one in the file
  /// that the toolkit installs.
  void NoEffect(std::string_view key, std::string_view installed = "") {
    const Value* found = named_.Any(key);
    if (found == nullptr || (found->list != nullptr && found->list->empty()) ||
        found->text == installed)
      return;
    config_.no_effect.push_back(named_.Path(key));
  }

  void Warn(std::string_view key, std::string message) { named_.Problem(key, std::move(message)); }
  void Finish() { named_.Finish(); }

 private:
  static inline const Value kNothing{};
  const Value& value_;
  base::MapReader typed_, named_;
  Config& config_;
};

template <typename T>
void Take(std::optional<T> value, T& into) {
  if (value) into = *std::move(value);
}

/// The state while a file is read.
struct Reading {
  Problems errors, warnings;
  Config config;

  Table Open(const Value* value, std::string where) {
    return {value, std::move(where), errors, warnings, config};
  }
};

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  for (const std::string& word : base::Split(text, ','))
    if (!base::Trim(word).empty()) words.emplace_back(base::Trim(word));
  return words;
}

void ReadCli(Reading& reading, const Value* value) {
  Table table = reading.Open(value, "nvidia-container-cli");
  for (const std::string_view key : {"root", "path", "debug", "ldcache", "user", "environment"})
    table.NoEffect(key);
  table.NoEffect("load-kmods", "true");
  table.NoEffect("no-pivot", "false");
  table.NoEffect("no-cgroups", "false");
  const auto ldconfig = table.String("ldconfig");
  if (ldconfig && !ldconfig->empty() && ldconfig->front() != '@')
    table.Warn("ldconfig",
               "has no effect: programs of the image are never executed, penstock-hook writes the "
               "cache itself; remove the line");
  table.Finish();
}

void ReadModes(Reading& reading, const Value* value) {
  const std::string where = std::string(kRuntimeTable) + ".modes";
  Table modes = reading.Open(value, where);
  Table cdi = reading.Open(modes.Map("cdi"), where + ".cdi");
  Take(cdi.String("default-kind"), reading.config.default_kind);
  Take(cdi.Strings("annotation-prefixes"), reading.config.annotation_prefixes);
  Take(cdi.Strings("spec-dirs"), reading.config.spec_dirs);
  cdi.Finish();

  Table jit = reading.Open(modes.Map("jit-cdi"), where + ".jit-cdi");
  for (const std::string_view key :
       {"nvcdi-feature-flags", "nvcdi-disable-hooks", "load-kernel-modules"})
    jit.NoEffect(key);
  jit.Finish();

  Table csv = reading.Open(modes.Map("csv"), where + ".csv");
  csv.NoEffect("mount-spec-path", "/etc/nvidia-container-runtime/host-files-for-container.d");
  csv.NoEffect("compat-container-root");
  csv.Finish();

  Table legacy = reading.Open(modes.Map("legacy"), where + ".legacy");
  const auto compat = legacy.OneOf("cuda-compat-mode", {"ldconfig", "mount", "hook", "disabled"});
  if (compat == "disabled") reading.config.cuda_compat = false;
  if (compat == "mount")
    legacy.Warn("cuda-compat-mode",
                "\"mount\" has no effect: nothing is mounted from inside an image (CVE-2024-0132); "
                "penstock-hook does it");
  legacy.Finish();
  modes.Finish();
}

void ReadRuntime(Reading& reading, const Value* value) {
  Table table = reading.Open(value, std::string(kRuntimeTable));
  Take(table.String("debug"), reading.config.debug_file);
  if (reading.config.debug_file == "/dev/null") reading.config.debug_file.clear();
  const auto level = table.OneOf(
      "log-level", {"trace", "debug", "info", "warn", "warning", "error", "fatal", "panic"});
  if (level == "trace" || level == "debug") reading.config.log_level = RuntimeLogLevel::kDebug;
  if (level == "warn" || level == "warning") reading.config.log_level = RuntimeLogLevel::kWarn;
  if (level == "error" || level == "fatal" || level == "panic")
    reading.config.log_level = RuntimeLogLevel::kError;
  if (auto names = table.Strings("runtimes"); names && !names->empty())
    reading.config.runtimes = *std::move(names);
  Take(table.OneOf("mode", {"auto", "cdi", "jit-cdi", "legacy", "csv"}), reading.config.mode);
  table.NoEffect("experimental", "false");
  table.NoEffect("discover-mode", "legacy");
  table.NoEffect("rlimits");
  ReadModes(reading, table.Map("modes"));
  table.Finish();
}

void ReadFeatures(Reading& reading, const Value* value) {
  Table table = reading.Open(value, "features");
  for (const std::string_view key :
       {"allow-cuda-compat-libs-from-container", "allow-ldconfig-from-container"})
    if (table.Bool(key).value_or(false))
      table.Warn(key,
                 "has no effect: nothing is mounted or executed from inside an image "
                 "(CVE-2024-0132, CVE-2024-0136); remove the line");
  for (const std::string_view key :
       {"allow-unknown-oci-spec-fields", "disable-imex-channel-creation"})
    table.NoEffect(key, "true");
  if (table.Bool("disable-cuda-compat-lib-hook").value_or(false))
    reading.config.cuda_compat = false;
  if (table.Bool("ignore-imex-channel-requests").value_or(false))
    reading.config.imex_channels = false;
  if (table.Bool("no-additional-gids-for-device-nodes").value_or(false))
    reading.config.additional_gids = false;
  table.Finish();
}

void ReadTop(Reading& reading, const Value& value) {
  Table top = reading.Open(&value, "");
  Config& config = reading.config;
  Take(top.Bool("disable-require"), config.disable_require);
  if (const auto names = top.String("swarm-resource")) config.swarm_resources = Words(*names);
  config.accept_environment = top.Bool("accept-nvidia-visible-devices-envvar-when-unprivileged");
  Take(top.Bool("accept-nvidia-visible-devices-as-volume-mounts"), config.accept_mounts);
  if (const auto names = top.String("supported-driver-capabilities"))
    config.capabilities = Words(*names);
  ReadCli(reading, top.Map("nvidia-container-cli"));
  ReadRuntime(reading, top.Map(kRuntimeTable));
  ReadFeatures(reading, top.Map("features"));

  Table hook =
      reading.Open(top.Map("nvidia-container-runtime-hook"), "nvidia-container-runtime-hook");
  hook.NoEffect("path", "nvidia-container-runtime-hook");
  hook.NoEffect("skip-mode-detection", "false");
  hook.Finish();
  Table ctk = reading.Open(top.Map("nvidia-ctk"), "nvidia-ctk");
  ctk.NoEffect("path", "nvidia-ctk");
  ctk.Finish();
  top.Finish();
}

}  // namespace

Result<Config> ParseConfig(std::string_view text, std::string_view file) {
  Reading reading{Problems(std::string(file)), Problems(std::string(file)), {}};
  reading.config.file = file;
  if (text.empty()) return std::move(reading.config);
  ASSIGN(const Value value, base::ParseToml(text, file));
  ReadTop(reading, value);
  if (!reading.errors.empty()) return reading.errors.ToError();
  if (!reading.warnings.empty())
    reading.config.warnings = base::Split(reading.warnings.ToError().message(), '\n');
  return std::move(reading.config);
}

std::vector<std::string> ParseRuntimes(std::string_view text) {
  if (text.empty()) return Config().runtimes;
  const auto value = base::ParseToml(text, "config.toml");
  const Value* table = value.ok() ? value->Find(kRuntimeTable) : nullptr;
  const Value* list = table != nullptr ? table->Find("runtimes") : nullptr;
  std::vector<std::string> names;
  if (list != nullptr && list->list != nullptr)
    for (const Value& name : *list->list)
      if (name.kind == Value::Kind::kString) names.push_back(name.text);
  return names.empty() ? Config().runtimes : names;
}

std::string FindConfig() {
  constexpr std::string_view kBelow = "/nvidia-container-runtime/config.toml";
  if (const char* path = std::getenv("NVIDIA_CTK_CONFIG_FILE_PATH");
      path != nullptr && *path != '\0')
    return path;
  if (const char* home = std::getenv("XDG_CONFIG_HOME"); home != nullptr && *home == '/') {
    std::string path = std::string(home).append(kBelow);
    if (os::Exists(path)) return path;
  }
  return std::string("/etc").append(kBelow);
}

}  // namespace penstock::hook::runtime
