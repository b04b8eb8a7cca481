// Encodes the kept configuration as JSON, and finds its folder even where the configuration that
// sets the folder is invalid.
#include "app/kept_configuration.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/core/document.h"
#include "base/yaml.h"
#include "os/kept_file.h"

namespace penstock::app {
namespace {

using base::Code;
using base::Error;
using nlohmann::json;

constexpr int kVersion = 1;
constexpr std::size_t kMaxBytes =
    64u << 20;  // two texts of 4 MiB, whose bytes may each be escaped as six

json ToJson(const KeptText& kept) {
  return {{"from", kept.from}, {"origin", kept.origin}, {"text", kept.text}, {"since", kept.since}};
}

std::optional<KeptText> ReadText(base::MapReader& top, std::string_view key,
                                 base::Problems& problems) {
  const base::Value* value = top.Map(key);
  if (value == nullptr) return std::nullopt;
  base::MapReader reader(*value, std::string(key), problems);
  for (const char* needed : {"from", "text"}) reader.Require(needed);
  KeptText kept{.from = reader.String("from").value_or(""),
                .origin = reader.String("origin").value_or(""),
                .text = reader.String("text").value_or(""),
                .since = reader.String("since").value_or("")};
  reader.Finish();
  return kept;
}

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

std::string NameOfFile(const Settings& settings) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(settings.config_file, error);
  return error ? settings.config_file : absolute.lexically_normal().string();
}

std::string KeptConfigurationPath(const std::string& state_dir) {
  return state_dir + "/configuration.json";
}

std::string EncodeKept(const KeptConfiguration& kept) {
  json document = {{"version", kVersion}};
  if (kept.file) document["file"] = ToJson(*kept.file);
  if (kept.config_map) document["configMap"] = ToJson(*kept.config_map);
  return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

base::Result<KeptConfiguration> DecodeKept(std::string_view text, std::string_view file) {
  const auto document = base::ParseJson(text, file, {.bytes = kMaxBytes});
  if (!document.ok()) return Error(Code::kDataLoss, document.error().message());
  base::Problems problems{std::string(file)};
  base::MapReader reader(*document, "", problems);
  TRY(os::CheckKeptVersion(reader, file, kVersion));
  KeptConfiguration kept{.file = ReadText(reader, "file", problems),
                         .config_map = ReadText(reader, "configMap", problems)};
  reader.Finish();
  if (!problems.empty()) return Error(Code::kDataLoss, problems.ToError().message());
  return kept;
}

base::Result<KeptConfiguration> LoadKeptConfiguration(const std::string& state_dir) {
  const std::string path = KeptConfigurationPath(state_dir);
  return os::LoadKept<KeptConfiguration>(
      path, "the last applied configuration",
      [&](const std::string& text) { return DecodeKept(text, path); }, kMaxBytes);
}

base::Result<Resolved> ResolveForStart(const Settings& settings) {
  if (settings.config_file.empty()) return ResolveAll(settings);
  const auto text = ReadConfigText(settings.config_file);
  auto resolved = text.ok() ? ResolveText(settings, *text, settings.config_file)
                            : base::Result<Resolved>(text.error());
  if (resolved.ok()) return resolved;
  const auto state_dir = StateDirOf(settings, text);
  if (!state_dir.ok()) return resolved;
  const auto kept = LoadKeptConfiguration(*state_dir);
  if (!kept.ok() || !kept->file || kept->file->from != NameOfFile(settings)) return resolved;
  auto last = ResolveText(settings, kept->file->text, settings.config_file);
  if (!last.ok()) return resolved;
  last->problem = resolved.error().message();
  last->origin += ", as last applied (" + kept->file->since + ")";
  return last;
}

}  // namespace penstock::app
