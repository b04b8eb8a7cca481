// What a Node says about the upgrade of its driver: the state in a label, as NVIDIA's operator has
// it, and the rest in annotations, so that an operator that starts again goes on from there. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/clock.h"

namespace penstock::cluster {

/// In the order in which a node passes through them.
enum class UpgradeState {
  kUnknown,
  kRequired,
  kCordon,
  kWaitForJobs,
  kPodDeletion,
  kDrain,
  kPodRestart,
  kValidation,
  kUncordon,
  kDone,
  kFailed,
};

/// The value of the label: "upgrade-required"; empty for kUnknown.
std::string_view NameOf(UpgradeState state);
/// Unknown values are kUnknown: the node begins again.
UpgradeState UpgradeStateOf(std::string_view name);

/// Whether a node takes part in the upgrade now, and takes up a place.
bool IsUnderway(UpgradeState state);

/// Everything that is kept about the upgrade of one node.
struct UpgradeRecord {
  UpgradeState state = UpgradeState::kUnknown;
  base::WallTime since{};     ///< when this state began
  std::string reason;         ///< "EvictionRefused": of the last failure, or why it waits
  std::string message;        ///< for people
  std::string blocked;        ///< "Evicting,NodeNotReady": what has kept this state from going on,
                              ///< the last to come at the end; each was said
  std::string target;         ///< the driver that it gets: the hash of its pod's template
  std::string good;           ///< the last one that worked here
  std::string failed_target;  ///< the one that failed here, until another is wanted
  std::string held;           ///< the one that it was rolled back to, instead of the wanted one;
                              ///< while it has the label, its pod is made from this
  int attempts = 0;           ///< that failed, of failed_target
  bool broken = false;        ///< one of them failed with failed_target's pod on the node
  base::WallTime retry_at{};
  bool cordoned = false;            ///< by the upgrade
  bool initially_cordoned = false;  ///< by others, before it
  bool requested = false;           ///< a user asks for it
  bool safe_load = false;           ///< its driver pod waits for the node to be drained
  std::optional<base::WallTime> wait_started, validation_started;

  bool operator==(const UpgradeRecord&) const = default;
};

/// Reasons of a record that say more than that of a failure: the node has its earlier driver again;
/// a canary that is done stopped working.
inline constexpr char kRolledBack[] = "RolledBack", kNotWorking[] = "NotWorking";

/// The annotation of what NVIDIA's operator has none for, as JSON.
inline constexpr std::string_view kUpgradeAnnotation = "penstock.io/driver-upgrade";
/// The label of nodes that have an earlier driver: the hash of its pod's template.
inline constexpr std::string_view kHeldLabel = "penstock.io/driver-held";

using NodeTexts = std::map<std::string, std::string>;

/// Anyone who may write the Node may have written these: what cannot be read is as if it were not
/// there, and times in the future are `now`.
UpgradeRecord ReadUpgradeRecord(const NodeTexts& labels, const NodeTexts& annotations,
                                base::WallTime now);

/// A record as it was read, which does not depend on the time: kept for each node until its Node
/// changes.
struct StoredRecord {
  UpgradeRecord record;  ///< with times in the future
  bool tidy = false;     ///< the Node has exactly what MarksOf(record) says

  /// At that time. `as_stored`: no time had to be corrected.
  UpgradeRecord At(base::WallTime now, bool& as_stored) const;
};
StoredRecord ReadStoredRecord(const NodeTexts& labels, const NodeTexts& annotations);

/// What a Node must have so that it says this. Keys that must not be there have no value.
struct UpgradeMarks {
  std::map<std::string, std::optional<std::string>> labels, annotations;
};
UpgradeMarks MarksOf(const UpgradeRecord& record);

}  // namespace penstock::cluster
