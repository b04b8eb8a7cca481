// Decides which driver each node of the cluster has. Pure.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "api/cluster/driver.h"
#include "base/core/result.h"

namespace penstock::cluster {

/// What decides about the driver of a node.
struct DriverNode {
  std::string name;
  std::map<std::string, std::string> labels;
  std::string os_image;  ///< of the Node's status, where the node has no labels of its system
  std::string kernel;    ///< likewise
};

/// A node that several drivers select.
struct DriverConflict {
  std::string node;
  std::vector<std::string> drivers;  ///< sorted
  std::string keeps;                 ///< the one of them that it has; empty: it gets none
  std::string Message() const;       ///< "node n1: selected by a and b; it keeps a"
  bool operator==(const DriverConflict&) const = default;
};

struct DriverOwnership {
  /// Every node that gets or keeps a driver → the driver's name: the value of the label.
  std::map<std::string, std::string> owner;
  std::vector<DriverConflict> conflicts;  ///< sorted by node
  /// Drivers that no node can have as they are → why.
  std::map<std::string, std::string> problems;

  /// What of the conflicts concerns a driver; empty: nothing.
  std::vector<const DriverConflict*> ConflictsOf(const std::string& driver) const;
};

/// A driver that selects a node goes before the fallback. A node that several select keeps the one
/// of them that it has according to its label, so that nothing is torn down, and otherwise gets
/// none; all other nodes go on. Two fallbacks are a problem of both, and a node keeps the one that
/// it has. Disabled drivers own nothing.
DriverOwnership AssignDrivers(std::span<const DriverNode* const> nodes,
                              const std::vector<api::DriverSpec>& drivers);
DriverOwnership AssignDrivers(const std::vector<DriverNode>& nodes,
                              const std::vector<api::DriverSpec>& drivers);

/// Without copies: there may be thousands of nodes, each with many labels.
std::vector<const DriverNode*> PointersTo(const std::vector<DriverNode>& nodes);

}  // namespace penstock::cluster
