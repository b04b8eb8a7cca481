// Computes the labels and annotations that a node gets from the operator. Pure.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "api/cluster/penstock.h"
#include "protocol/kube/node_fields.h"

namespace penstock::cluster {

using Texts = std::map<std::string, std::string>;

/// The keys of labels and annotations that matter to the operator: of its own and of those that
/// decide about them.
struct MarkKeys {
  std::set<std::string> labels, annotations;
  bool operator==(const MarkKeys&) const = default;
  bool Contains(const MarkKeys& other) const;
};
MarkKeys KeysOf(const api::PenstockSpec& spec);

/// What is kept of a Node: name, uid, version, and these keys. `metadata` only, so that a node
/// takes less than a kilobyte.
nlohmann::json ReducedNode(const nlohmann::json& node, const MarkKeys& keys);

struct NodeMarksPlan {
  bool has_devices = false;
  bool opted_out = false;
  bool host_driver = false;   ///< it is labelled as one whose host has a driver of its own
  Texts labels, annotations;  ///< what the operator wants on it
  bool differs = false;       ///< some of it is not there yet
  /// There are keys that the operator may have written and does not want: only the Node's managed
  /// fields say whose they are.
  bool doubtful = false;
};

/// What is known of a node besides its object and the policy.
struct MarkFacts {
  bool wanted = true;  ///< false where the policy is being deleted, which then only says which keys
                       ///< there are
  bool has_host_driver = false;  ///< and drivers are installed on other nodes
};

/// A value that others wrote is honoured, unless it is empty. A node that has no devices any more
/// keeps what it has, and so does one that once had a driver of its host: only a user knows that
/// it may get another.
NodeMarksPlan PlanMarks(const nlohmann::json& node, const api::PenstockSpec& spec, MarkFacts facts);

/// What an object (whole, with managed fields) has of kMarksManager alone, by the entries that
/// `counts`, and the plan lacks.
protocol::kube::OwnedKeys ExcessOf(const nlohmann::json& object, const NodeMarksPlan& plan,
                                   const std::function<bool(const nlohmann::json& entry)>& counts);

/// The merge patch that writes what differs and removes `excess`, of this object in this version:
/// what anyone writes meanwhile is a conflict. With an apply, the server would remove what the
/// object's managed fields claim to be ours, and a node's credentials may write these.
nlohmann::json MarksPatch(const nlohmann::json& object, const NodeMarksPlan& plan,
                          const protocol::kube::OwnedKeys& excess);

}  // namespace penstock::cluster
