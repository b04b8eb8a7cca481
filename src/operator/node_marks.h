// Computes the labels and annotations that a node gets from the operator. Pure.
#pragma once

#include <map>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "api/cluster/penstock.h"
#include "protocol/kube/node_fields.h"

namespace penstock::cluster {

using Texts = std::map<std::string, std::string>;

/// The keys of labels and annotations that matter to the operator: of its own, of which the labels
/// are `written`, and of those that decide about them.
struct MarkKeys {
  std::set<std::string> labels, annotations, written;
  bool operator==(const MarkKeys&) const = default;
  bool Contains(const MarkKeys& other) const;
  void Add(const MarkKeys& other);
};
MarkKeys KeysOf(const api::PenstockSpec& spec);

/// What is kept of a Node: name, uid, and these keys, so that a node takes less than a kilobyte;
/// and whether its managed fields are such that nothing may be applied (`claimed`).
nlohmann::json ReducedNode(const nlohmann::json& node, const MarkKeys& keys);

struct NodeMarksPlan {
  bool has_devices = false;
  bool opted_out = false;
  bool claimed = false;       ///< ReducedNode
  bool host_driver = false;   ///< it is labelled as one whose host has a driver of its own
  Texts labels, annotations;  ///< everything that the operator wants on it
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
/// it may get another. `keys`: of this policy, and of those before it, of which something may be
/// left.
NodeMarksPlan PlanMarks(const nlohmann::json& node, const api::PenstockSpec& spec,
                        const MarkKeys& keys, MarkFacts facts);

/// Whether an object (whole, with managed fields) has something that the operator has applied, and
/// the plan lacks. The next apply gives it up: it goes where no other manager owns it.
bool AppliedMore(const nlohmann::json& object, const NodeMarksPlan& plan);
/// What a Node has of the operator alone, and the plan lacks: by an apply, but for labels that the
/// node's own credentials may not change and that are not written; and of `keys` by a patch.
protocol::kube::OwnedKeys ExcessOf(const nlohmann::json& node, const NodeMarksPlan& plan,
                                   const MarkKeys& keys);

/// Whether a plan may be applied to a Node. The server then removes what the operator has applied
/// before, by the managed fields, and the plan lacks; a node's own credentials may write these
/// fields, and claim what they may not remove. Without any label, all of the Node's labels could go
/// with the last one that was applied (protocol::kube::Without).
bool MayBeApplied(const NodeMarksPlan& plan);

/// The object to apply. `version`: of the object, so that what anyone writes meanwhile is a
/// conflict.
nlohmann::json MarksObject(const nlohmann::json& object, const NodeMarksPlan& plan,
                           const std::string& version);
/// The merge patch that adds what the plan has and removes `excess`, of an object in its version.
nlohmann::json MarksPatch(const nlohmann::json& object, const NodeMarksPlan& plan,
                          const protocol::kube::OwnedKeys& excess);

}  // namespace penstock::cluster
