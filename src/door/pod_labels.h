// Puts pods' labels into the leases that pods hold. Asks nobody.
#pragma once

#include <memory>

#include "base/executor.h"
#include "base/published.h"
#include "door/cluster_pods.h"
#include "node/ledger/ledger.h"

namespace penstock::door {

/// The lease with what is known of its pod: its labels, and its uid where the kubelet has not told it. The same where no such pod is known,
/// or another one has its name by now: what a lease says of a pod that is gone stays. Pure.
node::ledger::Lease WithPod(node::ledger::Lease lease, const PodsOfNode& pods);

/// On the control executor. Follows the ledger: a lease has its labels as soon as its pod is named and known.
class PodLabels {
 public:
  PodLabels(base::Executor& control, node::ledger::Ledger& ledger);
  ~PodLabels();

  /// Null: no labels are wanted, and none are left in leases.
  void Take(std::shared_ptr<const PodsOfNode> pods);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::door
