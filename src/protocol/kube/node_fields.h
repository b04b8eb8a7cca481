// What of a Node goes where that of a field manager is taken back: labels, annotations, a
// condition.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "protocol/kube/api.h"

namespace penstock::protocol::kube {

/// Whether an entry of a Node's managedFields is an apply of labels and annotations, and of none
/// that the node's own credentials may not change.
/// The name of a manager proves nothing: these credentials may write entries under any name and
/// with any fields, such as taints. Kubernetes: plugin/pkg/admission/noderestriction. Pure; the
/// entry may be anything.
bool MayBeTakenBack(const Json& entry);
/// The same, but for labels that are `known` to be ours.
bool HasOnlyMarks(const Json& entry, const std::set<std::string>& known);
/// Whether these credentials may change a label.
bool MayBeANodes(std::string_view label);

/// Keys.
struct OwnedKeys {
  std::set<std::string> labels, annotations;
  bool empty() const { return labels.empty() && annotations.empty(); }
};

/// Whether an object's managedFields have an entry of this manager, for the object itself or for
/// a subresource of it. Pure; the object may be anything.
bool IsManagedBy(const Json& object, std::string_view manager, std::string_view subresource = "");

/// The labels and annotations that an object has, by its managedFields from entries that `count`,
/// and that no manager has but those that are `ours`. Pure; the object may be anything.
OwnedKeys OwnedAlone(const Json& object, const std::function<bool(const Json& entry)>& counts,
                     const std::function<bool(const std::string& manager)>& ours);

/// The merge patch that removes them from this object in this version: what anyone writes meanwhile
/// is a conflict. An empty apply would not do: where no other manager owns a label, the server
/// removes all labels with the last one that was applied (structured-merge-diff, `prune`).
Json Without(const OwnedKeys& marks, const Json& object);

/// The strategic merge patch of a Node's status that removes a condition and no other. The uid is
/// the Node's: another one that has its name by now stays as it is (IsOfAnother).
Json WithoutCondition(std::string_view type, std::string_view uid);

}  // namespace penstock::protocol::kube
