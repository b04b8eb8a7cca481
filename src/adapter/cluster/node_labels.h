// Decides which labels to apply to the Node, and whether to write at all. Writes nothing. Removes
// no label because a fact is unknown.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "adapter/cluster/observed_node.h"
#include "base/backoff.h"

namespace penstock::adapter::cluster {

using NodeLabelSet = std::map<std::string, std::string>;

struct LabelPlan {
  bool write = false;
  NodeLabelSet set;                     ///< all labels that our field manager owns from now on
  std::optional<base::Duration> again;  ///< when to decide again even without a change
  std::string contested;                ///< for people: keys that others change, and their managers
  std::string other_values;  ///< for people: keys left to NFD that have other values than desired;
                             ///< not those that it finds itself (api::kFeaturePrefix)
};

/// Remembers the labels that it applied, to distinguish a new desired value (written at once) from
/// another client's change to our labels (restored after 1 s, then with a back-off that doubles up
/// to 10 min). Leaves the keys that NFD maintains to NFD; those of them that we own keep their
/// value, since releasing them would remove them from the Node.
class NodeLabelReconciler {
 public:
  /// `carried`: a NodeFeature object brings the labels to the Node; the plan then adds nothing and
  /// removes only labels that are no longer desired. A new gfd.timestamp alone causes no write.
  LabelPlan Decide(const ObservedNode& node, const NodeLabelSet& desired, bool carried,
                   base::TimePoint now);

  /// The server accepted this set.
  void Wrote(const NodeLabelSet& set, base::TimePoint now);

 private:
  bool Changed(const ObservedNode& node, const std::string& key, const std::string& value) const;
  bool Wait(base::TimePoint now, LabelPlan& plan);

  NodeLabelSet applied_;
  base::Backoff backoff_{std::chrono::seconds(1), std::chrono::minutes(10)};
  std::optional<base::TimePoint> due_;          // when to restore labels that others changed
  std::optional<base::TimePoint> restored_at_;  // when they were last restored
};

}  // namespace penstock::adapter::cluster
