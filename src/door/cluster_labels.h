// Which labels to apply to the Node, and whether at all. Writes nothing; takes no label away because something is not known.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/backoff.h"
#include "door/cluster_node.h"

namespace penstock::door {

using LabelSet = std::map<std::string, std::string>;

/// One decision.
struct LabelPlan {
  bool write = false;
  LabelSet set;                         ///< all that our field manager is to have from now on
  std::optional<base::Duration> again;  ///< when to decide anew although nothing may have changed
  std::string contested;                ///< for people: keys that others change, and who; empty where there are none
};

/// Knows what it has applied, so that it can tell a wish that changed (written at once) from somebody who changes our labels (not fought
/// over: written again after a second, then after twice that, ... ten minutes). Keys that NFD keeps are left to NFD; those of them that we
/// have stay as they stand, since letting go of them would take them off the Node.
class LabelKeeper {
 public:
  /// `carried`: a NodeFeature object brings the labels to the Node; then nothing is added, and only what is wished for no longer is taken
  /// away. A new gfd.timestamp alone is no reason to write.
  LabelPlan Decide(const NodeView& node, const LabelSet& wished, bool carried, base::TimePoint now);

  /// The server has taken this set.
  void Wrote(const LabelSet& set, base::TimePoint now);

 private:
  bool Changed(const NodeView& node, const std::string& key, const std::string& value) const;
  bool Wait(base::TimePoint now, LabelPlan& plan);

  LabelSet applied_;
  base::Backoff backoff_{std::chrono::seconds(1), std::chrono::minutes(10)};
  std::optional<base::TimePoint> due_;        // when labels that others changed are written again
  std::optional<base::TimePoint> mended_at_;  // when they were last
};

}  // namespace penstock::door
