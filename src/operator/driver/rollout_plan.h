// One turn of everything about drivers: which DaemonSets there are, and what is written to which
// Node. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "operator/driver/fleet_upgrade.h"
#include "operator/driver/rollout_facts.h"

namespace penstock::cluster {

/// What to do about a node: the actions, and then everything else in one write.
struct NodeWrite {
  /// Only what differs; a key without a value is to be removed.
  std::map<std::string, std::optional<std::string>> labels, annotations;
  NodeStep step;
  bool empty() const {
    return labels.empty() && annotations.empty() && !step.cordon && step.actions.empty();
  }
};

/// A node that does not have its driver as wanted.
struct WaitingNode {
  std::string name, state, reason, message;
  bool operator==(const WaitingNode&) const = default;
};

/// A kernel that nodes with a precompiled driver will boot next.
struct UpcomingKernel {
  std::string kernel, image;  ///< the driver's image for it
  std::size_t nodes = 0;
  std::vector<std::string> named;  ///< the first of them by name, at most kMostNamedUpcoming
  ImageAnswer answer;              ///< whether there is that image
  bool operator==(const UpcomingKernel&) const = default;
};
inline constexpr std::size_t kMostUpcoming = 10, kMostNamedUpcoming = 3;

/// What is said about a driver.
struct DriverOutcome {
  std::string name;
  std::string problem;        ///< why there are no pods, or not the wanted ones
  bool lacks_object = false;  ///< it is an object that the namespace does not have
  std::string conflict;       ///< which nodes other drivers select, too
  std::size_t nodes = 0;
  std::size_t ready = 0;  ///< with a ready pod of the wanted driver
  UpgradeCounts counts;
  std::string gate, gate_message;        ///< why no further node begins; empty: nothing stops it
  std::vector<WaitingNode> waiting;      ///< sorted by name, at most kMostWaiting
  std::vector<UpcomingKernel> upcoming;  ///< those of most nodes first, at most kMostUpcoming
};
inline constexpr std::size_t kMostWaiting = 20;

struct RolloutPlan {
  std::map<std::string, nlohmann::json> daemon_sets;  ///< that are wanted, by name
  std::set<std::string> kept_sets;                 ///< others that are to stay as they are, for now
  std::map<std::string, NodeWrite> writes;         ///< by node
  std::vector<DriverOutcome> drivers;              ///< in the order of the facts
  std::set<std::string> host_drivers;              ///< nodes whose hosts have a driver of their own
  std::set<std::string> pods_needed;               ///< nodes whose pods the next steps depend on
  std::map<std::string, ImageCheck> image_checks;  ///< by name
  /// Nodes that will have no driver after they have booted, at most kMostWaiting for each kernel:
  /// why, and what to do.
  std::map<std::string, std::string> boot_warnings;
  std::optional<base::WallTime> look_again;
};

/// A node is given a driver only after its agent has reported that the host has none of its own. It
/// changes from one driver to another, or to another pool, in the course of an upgrade: until then
/// it keeps the label, and the DaemonSet, by which it has its pod.
RolloutPlan PlanRollout(const RolloutFacts& facts, base::WallTime now);

}  // namespace penstock::cluster
