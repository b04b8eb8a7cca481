// What the files of this room share while a device plugin's file is read: problems, and what is to be said of what was accepted. Private to
// api/compat.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/compat/device_plugin.h"
#include "base/core/document.h"

namespace penstock::api::compat::internal {

/// Where a translation collects all it has to say.
struct Notes {
  base::Problems& problems;          ///< of the file
  std::vector<std::string> given;    ///< of flags and environment
  std::vector<std::string> not_yet;  ///< see Translation
  std::vector<std::string> remarks;
  std::map<std::string, std::string, std::less<>> said_as;  ///< option → the name under which it was said last
  std::vector<std::string> names_at;                        ///< where the file has what became resources.names, rule by rule
  bool mig_mixed = false;                                   ///< what --mig-strategy was said last
  std::optional<bool> imex_required;                        ///< likewise, --imex-required
  std::optional<std::string> mps_root;                      ///< likewise
  std::vector<std::int64_t> xids_off, xids_on;              ///< of DP_DISABLE_HEALTHCHECKS and DP_ENABLE_HEALTHCHECKS
  bool all_xids_off = false, all_xids_on = false;           ///< likewise, where they say "all"
};

enum class Kind { kText, kPath, kBool, kList, kDuration };

/// A setting as it was said.
struct Said {
  std::string name;  ///< for people: the key, the flag, "environment MIG_STRATEGY"
  std::string text;
  std::vector<std::string> list;  ///< of kList
  bool on = false;                ///< of kBool
  bool in_file = false;
  base::Mark mark;
};

/// What a setting changes, and where is told what is to be said of it.
struct Context {
  NodeConfig& config;
  Notes& notes;

  void Problem(const Said& said, const std::string& message) const;
  void NotYet(const Said& said, const std::string& message) const { notes.not_yet.push_back(said.name + ": " + message); }
  void Remark(const Said& said, const std::string& message) const { notes.remarks.push_back(said.name + ": " + message); }
  /// Whether the text is one of these; else it is a problem.
  bool OneOf(const Said& said, const std::string& text, const std::vector<std::string>& names) const;
};

/// Of the option with this name (NameOf); nothing for one that is none.
std::optional<Kind> KindOf(std::string_view option);

/// Takes what was said into the configuration. Of an option that was said before, the last word counts: what was to be said of the earlier
/// one is forgotten, its mistakes are not.
void ApplySaid(const Context& context, std::string_view option, const Said& said);

/// The sections `resources` and `sharing`. What the file says of one of them takes the place of what the configuration had.
void ReadResources(base::MapReader& top, const Context& context);
void ReadSharing(base::MapReader& top, const Context& context);

/// The two lists of XIDs together, as rules behind those that the configuration has.
void ApplyXids(const Context& context);

/// Settings of how containers are given devices.
void ListStrategy(const Context& context, const Said& said);
void PassDeviceSpecs(const Context& context, const Said& said);
void SetClass(const Context& context, bool on, const std::string& name);
void AnnotationPrefix(const Context& context, const Said& said);
void HookPath(const Context& context, const Said& said);
void FeatureFlags(const Context& context, const Said& said);
void DisableHooks(const Context& context, const Said& said);
void ImexChannels(const Context& context, const Said& said);

/// Whether the IMEX channel must be there.
void ApplyImex(const Context& context);

/// Where the folder of MPS is; what of MPS does not go together with the rest.
void ApplyMps(const Context& context);

/// A map at a key, or an empty one.
const base::Value& MapAt(base::MapReader& reader, std::string_view key);

}  // namespace penstock::api::compat::internal
