// Interprets each engine's answers about CDI.
#include "protocol/engine/cri/engine.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/core/document.h"
#include "base/core/strings.h"

namespace penstock::protocol::engine::cri {
namespace {

using Version = std::array<std::int64_t, 3>;

constexpr Version kContainerdHasCdi{1, 7, 0}, kContainerdReadsField{1, 7, 2},
    kContainerdReadsGroups{1, 7, 16}, kContainerdHasItOn{2, 0, 0};
constexpr Version kCrioHasCdi{1, 24, 0}, kCrioReadsField{1, 28, 0}, kCrioReadsGroups{1, 30, 0};

/// The default folders of CDI's Go library (tags.cncf.io/container-device-interface,
/// pkg/cdi/spec-dirs.go), for engines that do not report theirs.
const std::vector<std::string>& UsualFolders() {
  static const std::vector<std::string> folders = {"/etc/cdi", "/var/run/cdi"};
  return folders;
}

/// "v1.7.24~ds1-6" → "1.7.24": up to the first character that is neither a digit nor a dot.
std::string_view NumberOf(std::string_view version) {
  if (version.starts_with("v")) version.remove_prefix(1);
  return version.substr(0, version.find_first_not_of("0123456789."));
}

std::optional<Version> Parse(std::string_view version) {
  const auto parts = base::Split(NumberOf(version), '.');
  if (parts.size() < 2) return std::nullopt;
  Version parsed{};
  for (std::size_t i = 0; i < parts.size() && i < parsed.size(); ++i) {
    const auto number = base::ParseInt(parts[i]);
    if (!number) return std::nullopt;
    parsed[i] = *number;
  }
  return parsed;
}

/// Returns the folders in containerd's key; nothing if there is no such list.
std::vector<std::string> FoldersIn(const base::Value& config) {
  std::vector<std::string> folders;
  const base::Value* list = config.Find("cdiSpecDirs");
  if (list == nullptr || list->kind != base::Value::Kind::kList) return folders;
  for (const base::Value& item : *list->list)
    if (item.kind == base::Value::Kind::kString) folders.push_back(item.text);
  return folders;
}

void Decide(EngineAbilities& engine, Cdi cdi, std::string why) {
  engine.cdi = cdi;
  engine.why = std::move(why);
}

void DecideContainerd(EngineAbilities& engine, const std::optional<Version>& version,
                      const base::Value& config) {
  engine.cdi_folders = FoldersIn(config);
  engine.cdi_by_field = !version || *version >= kContainerdReadsField;
  engine.cdi_groups = version && *version >= kContainerdReadsGroups;
  const base::Value* enabled = config.Find("enableCDI");
  if (enabled != nullptr && enabled->kind == base::Value::Kind::kBool)
    return Decide(engine, enabled->boolean ? Cdi::kOn : Cdi::kOff,
                  enabled->boolean ? "enable_cdi = true" : "enable_cdi = false");
  if (!version)
    return Decide(engine, Cdi::kUnknown, "the engine does not report whether CDI is on");
  if (*version < kContainerdHasCdi)
    return Decide(engine, Cdi::kNever, "containerd supports it from 1.7 on");
  if (*version < kContainerdHasItOn) return Decide(engine, Cdi::kOff, "enable_cdi is not set");
  Decide(engine, Cdi::kOn, "on from containerd 2.0");
}

void DecideCrio(EngineAbilities& engine, const std::optional<Version>& version) {
  engine.cdi_folders = UsualFolders();
  if (!version) return Decide(engine, Cdi::kUnknown, "its version cannot be read");
  if (*version < kCrioHasCdi) return Decide(engine, Cdi::kNever, "CRI-O supports it from 1.24 on");
  engine.cdi_by_field = *version >= kCrioReadsField;
  engine.cdi_groups = *version >= kCrioReadsGroups;
  Decide(engine, Cdi::kOn, "always on in CRI-O");
}

/// Removes trailing slashes and replaces /var/run by /run.
std::string Plain(std::string_view folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.remove_suffix(1);
  constexpr std::string_view kOld = "/var/run";
  if (folder == kOld || folder.starts_with("/var/run/"))
    return "/run" + std::string(folder.substr(kOld.size()));
  return std::string(folder);
}

}  // namespace

EngineAbilities FromAnswers(std::string_view name, std::string_view version,
                            std::string_view config) {
  EngineAbilities engine;
  engine.name = name;
  const auto parsed = Parse(version);
  engine.version = parsed ? NumberOf(version) : version;
  const auto document = base::ParseJson(config, "config");
  const base::Value settings = document.ok() ? *document : base::Value{};
  if (name == "containerd") {
    DecideContainerd(engine, parsed, settings);
  } else if (name == "cri-o") {
    DecideCrio(engine, parsed);
  } else {
    Decide(engine, Cdi::kUnknown, "CDI support of this engine is unknown");
  }
  return engine;
}

bool ReadsFolder(const EngineAbilities& engine, std::string_view folder) {
  return engine.cdi_folders.empty() ||
         std::ranges::any_of(engine.cdi_folders,
                             [&](const std::string& one) { return Plain(one) == Plain(folder); });
}

std::string Describe(const EngineAbilities& engine) {
  return engine.version.empty() ? engine.name : engine.name + " " + engine.version;
}

}  // namespace penstock::protocol::engine::cri
