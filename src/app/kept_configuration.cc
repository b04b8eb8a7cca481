// Encodes the kept configuration as JSON, and finds its folder even where the configuration that
// sets the folder is invalid.
#include "app/kept_configuration.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/config/config_change.h"
#include "api/config/config_revision.h"
#include "base/log.h"
#include "base/yaml.h"
#include "os/kept_file.h"

namespace penstock::app {
namespace {

constexpr int kVersion = 1;
constexpr std::size_t kMaxBytes =
    64u << 20;  // two texts of 4 MiB, whose bytes may each be escaped as six

/// The state folder by the flags, and by the file as far as it can be read.
base::Result<std::string> StateDirOf(const Settings& settings,
                                     const base::Result<std::string>& text) {
  ASSIGN(const Resolved without, ResolveText(settings, "", ""));
  if (settings.flags.contains("--state-dir") || !text.ok()) return without.config.paths.state_dir;
  const auto document = base::ParseYaml(*text, settings.config_file);
  const base::Value* paths = document.ok() ? document->Find("paths") : nullptr;
  const base::Value* folder = paths != nullptr ? paths->Find("stateDir") : nullptr;
  return folder != nullptr && folder->kind == base::Value::Kind::kString
             ? folder->text
             : without.config.paths.state_dir;
}

}  // namespace

template <typename Visit, base::Of<KeptText> T>
static void VisitFields(Visit& visit, T& kept) {
  visit("from", kept.from, {.required = true});
  visit("origin", kept.origin);
  visit("text", kept.text, {.required = true});
  visit("since", kept.since);
}

std::string NameOfFile(const Settings& settings) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(settings.config_file, error);
  return error ? settings.config_file : absolute.lexically_normal().string();
}

std::string NameOfConfigMap(const api::ConfigMapConfig& where) {
  return where.namespace_name + "/" + where.name;
}

std::string KeptConfigurationPath(const std::string& state_dir) {
  return state_dir + "/configuration.json";
}

std::string EncodeKept(const KeptConfiguration& kept) {
  return os::EncodeKept<nlohmann::json>(kVersion, [&kept](auto& write) {
    write("file", kept.file);
    write("configMap", kept.config_map);
  });
}

base::Result<KeptConfiguration> DecodeKept(std::string_view text, std::string_view file) {
  KeptConfiguration kept;
  TRY(os::DecodeKept(kVersion, text, file,
                     [&kept](base::StructReader& read) {
                       read("file", kept.file);
                       read("configMap", kept.config_map);
                     },
                     {.bytes = kMaxBytes}));
  return kept;
}

base::Result<KeptConfiguration> LoadKeptConfiguration(const std::string& state_dir) {
  const std::string path = KeptConfigurationPath(state_dir);
  return os::LoadKept<KeptConfiguration>(
      path, "the last applied configuration",
      [&](const std::string& text) { return DecodeKept(text, path); }, kMaxBytes);
}

std::vector<api::NodeConfig> LastConfigs(const Settings& settings, const KeptConfiguration& kept) {
  const KeptText none;
  const KeptText& own = kept.file ? *kept.file : none;
  const auto file = ResolveText(settings, own.text, own.from);
  if (!file.ok() || !(kept.file || kept.config_map)) return {};
  std::vector<api::NodeConfig> last = {file->config};
  const auto& remote = kept.config_map;
  if (!remote || remote->text.empty() ||
      remote->from != NameOfConfigMap(file->config.cluster.config_map))
    return last;
  // As Configuration proposes it.
  const auto next = ResolveText(settings, remote->text, remote->from, file->below);
  if (next.ok()) last.push_back(api::KeepUntilRestart(file->config, next->config));
  return last;
}

base::Result<std::string> OwnText(const Settings& settings, const std::string& state_dir,
                                  base::Result<std::string> text) {
  const auto is_ours = [&](const std::string& one) {
    return api::ConfigRevision(one) == settings.config_revision;
  };
  if (!text.ok() || settings.config_revision.empty() || is_ours(*text)) return text;
  const auto kept = LoadKeptConfiguration(state_dir);
  if (!kept.ok() || !kept->file || !is_ours(kept->file->text)) return text;
  base::Log(base::kInfo,
            "configuration file is of another revision; it is for the agent that replaces this one",
            {{"file", settings.config_file}});
  return kept->file->text;
}

base::Result<Resolved> ResolveForStart(const Settings& settings) {
  if (settings.config_file.empty()) return ResolveAll(settings);
  auto text = ReadConfigText(settings.config_file);
  const auto state_dir = StateDirOf(settings, text);
  if (state_dir.ok()) text = OwnText(settings, *state_dir, std::move(text));
  auto resolved = text.ok() ? ResolveText(settings, *text, settings.config_file)
                            : base::Result<Resolved>(text.error());
  if (resolved.ok() || !state_dir.ok()) return resolved;
  const auto kept = LoadKeptConfiguration(*state_dir);
  if (!kept.ok() || !kept->file || kept->file->from != NameOfFile(settings)) return resolved;
  auto last = ResolveText(settings, kept->file->text, settings.config_file);
  if (!last.ok()) return resolved;
  last->problem = resolved.error().message();
  last->origin += ", as last applied (" + kept->file->since + ")";
  return last;
}

}  // namespace penstock::app
