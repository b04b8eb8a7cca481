// The upgrade of one node's driver, one step at a time. Pure: everything that it knows is in the
// Node object and in what is observed, so that it can go on after any interruption.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/cluster/driver.h"
#include "operator/driver/upgrade_state.h"

namespace penstock::cluster {

/// A pod on the node that holds devices (gpu_pods.h).
struct HoldingPod {
  std::string name;  ///< "namespace/name"
  std::string uid;
  std::string holds;  ///< "nvidia.com/gpu", "claim big"
  std::map<std::string, std::string> labels;
  bool skipped = false;  ///< labelled to be left alone
  bool terminating = false;
  bool restarted = false;  ///< a DaemonSet or the kubelet starts it again on the same node
  bool unmanaged = false;  ///< no controller would start it again
  bool has_empty_dir = false;
  std::string refused;  ///< why its last eviction was refused
};

/// The driver's pod on the node.
struct DriverPod {
  std::string name;  ///< empty: there is none
  std::string uid;
  std::string target;  ///< the hash of the template that it was made from
  std::string digest;  ///< of what it installs
  bool ready = false;
  bool terminating = false;
  int restarts = 0;
  std::string trouble;  ///< why it is not ready, and who holds a module that it waits for
};

enum class DriverValidation { kPending, kPassed, kFailed };

/// A node that has, or should have, a driver's pod.
struct UpgradeNode {
  std::string name;
  std::map<std::string, std::string> labels;
  UpgradeRecord record;
  bool cordoned = false;
  /// The server has it underway still: the write that ends its upgrade is not answered.
  bool is_ending = false;
  std::optional<base::WallTime> not_ready_since;  ///< set: the kubelet does not report it as ready
  DriverPod pod;
  std::string wanted;         ///< the hash of its pool's template; empty: it shall have no driver
  std::string wanted_digest;  ///< of what that installs
  std::string previous;       ///< the earlier template that the pool still has; empty: none
  std::vector<HoldingPod> holding;
  std::vector<std::string> jobs;  ///< pods that the upgrade waits for
  DriverValidation validation = DriverValidation::kPending;
  std::string validation_text;  ///< what is missing
};

struct UpgradeAction {
  enum class Kind { kEvict, kDelete };
  Kind kind = Kind::kEvict;
  std::string pod, uid;
  bool operator==(const UpgradeAction&) const = default;
};

/// What to do on a node: the actions, and after they succeeded the record and the cordon, together
/// in one write. Nothing of it is to be done if `Changes` is false.
struct NodeStep {
  UpgradeRecord record;
  std::optional<bool> cordon;
  std::vector<UpgradeAction> actions;
  /// Why it does not go on now, for people; not part of the record, since it changes often.
  std::string reason, message;
  std::optional<base::WallTime> look_again;  ///< when a limit is reached
};
bool Changes(const UpgradeNode& node, const NodeStep& step);

/// Whether the node could begin an upgrade, and why not.
struct Readiness {
  bool begins = false;
  bool retry = false;  ///< the same driver failed there before
  std::string reason, message;
  std::optional<base::WallTime> look_again;
};
Readiness ReadinessToBegin(const UpgradeNode& node, const api::UpgradePolicy& policy,
                           base::WallTime now);

/// The next step; at most one change of state. `admitted`: it may begin (fleet_upgrade.h).
NodeStep NextStep(const UpgradeNode& node, const api::UpgradePolicy& policy, bool admitted,
                  base::WallTime now);

/// So many restarts of a driver's container are a failure, as in NVIDIA's operator.
inline constexpr int kMostRestarts = 10;
/// A node that is not ready for so long has failed.
inline constexpr base::Duration kNotReadyLimit = std::chrono::minutes(10);

}  // namespace penstock::cluster
