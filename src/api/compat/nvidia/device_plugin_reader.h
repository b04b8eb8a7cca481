// Types and functions shared by the files of this folder that read a device plugin's configuration:
// problems, and remarks about accepted settings. Private to api/compat.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/compat/nvidia/device_plugin.h"
#include "base/core/document.h"

namespace penstock::api::compat::internal {

/// Collects all messages of a translation.
struct Notes {
  base::Problems& problems;          ///< in the file
  std::vector<std::string> given;    ///< in flags and environment
  std::vector<std::string> not_yet;  ///< see Translation
  std::vector<std::string> remarks;
  std::map<std::string, std::string, std::less<>> set_as;  ///< option → the name under which it
                                                           ///< was set last
  std::vector<std::string> names_at;    ///< the file's place for each rule of resources.names
  bool mig_mixed = false;               ///< from --mig-strategy, the last value
  std::optional<bool> imex_required;    ///< from --imex-required, the last value
  std::optional<std::string> mps_root;  ///< from --mps-root, the last value
  std::vector<std::int64_t> xids_off,
      xids_on;  ///< from DP_DISABLE_HEALTHCHECKS and DP_ENABLE_HEALTHCHECKS
  bool all_xids_off = false, all_xids_on = false;  ///< whether they contain "all"
};

enum class Kind { kText, kPath, kBool, kList, kDuration };

/// A value of a setting, with its origin.
struct GivenSetting {
  std::string name;  ///< for users: the key, the flag, "environment MIG_STRATEGY"
  std::string text;
  std::vector<std::string> list;  ///< of kList
  bool on = false;                ///< of kBool
  bool in_file = false;
  base::Mark mark;
};

/// The configuration that a setting changes, and the notes about it.
struct Context {
  NodeConfig& config;
  Notes& notes;

  void Problem(const GivenSetting& given, const std::string& message) const;
  void NotYet(const GivenSetting& given, const std::string& message) const {
    notes.not_yet.push_back(given.name + ": " + message);
  }
  void Remark(const GivenSetting& given, const std::string& message) const {
    notes.remarks.push_back(given.name + ": " + message);
  }
  /// Whether the text is one of these names; any other text is a problem.
  bool OneOf(const GivenSetting& given, const std::string& text,
             const std::vector<std::string>& names) const;
};

/// Returns the type of the option with this name (NameOf); nothing for an unknown name.
std::optional<Kind> KindOf(std::string_view option);

/// Applies a value to the configuration. If the option was set before, the last value applies:
/// remarks about the earlier value are dropped, its problems are kept.
void ApplySetting(const Context& context, std::string_view option, const GivenSetting& given);

/// Read the sections `resources` and `sharing`. A section that is present in the file replaces the
/// configuration's.
void ReadResources(base::MapReader& top, const Context& context);
void ReadSharing(base::MapReader& top, const Context& context);

/// Merges the two lists of XIDs into rules, after the rules of the configuration.
void ApplyXids(const Context& context);

/// Settings for how containers receive devices.
void ListStrategy(const Context& context, const GivenSetting& given);
void PassDeviceSpecs(const Context& context, const GivenSetting& given);
void SetClass(const Context& context, bool on, const std::string& name);
void AnnotationPrefix(const Context& context, const GivenSetting& given);
void HookPath(const Context& context, const GivenSetting& given);
void FeatureFlags(const Context& context, const GivenSetting& given);
void DisableHooks(const Context& context, const GivenSetting& given);
void ImexChannels(const Context& context, const GivenSetting& given);

/// Determines whether the IMEX channel must exist.
void ApplyImex(const Context& context);

/// Sets the folder of MPS, and reports settings that contradict MPS.
void ApplyMps(const Context& context);

/// Returns the map at a key, or an empty one.
const base::Value& MapAt(base::MapReader& reader, std::string_view key);

}  // namespace penstock::api::compat::internal
