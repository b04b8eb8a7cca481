// Puts pod labels into the leases that pods hold. Does no I/O.
#pragma once

#include <memory>

#include "adapter/cluster/pod_label_watch.h"
#include "base/executor.h"
#include "node/ledger/ledger.h"

namespace penstock::adapter::cluster {

/// Returns the lease with the labels of its pod, and with the pod's uid where the kubelet did not
/// report it. Returns the lease unchanged if no such pod is known or if another pod has its name by
/// now: a lease keeps what it says about a deleted pod. Pure.
node::ledger::Lease WithPod(node::ledger::Lease lease, const PodsOfNode& pods);

/// Use on the control executor. Follows the ledger: a lease gets its labels as soon as its pod is
/// named and known.
class PodLabels {
 public:
  PodLabels(base::Executor& control, node::ledger::Ledger& ledger);
  ~PodLabels();

  /// The ledger has changed.
  void LedgerChanged();

  /// Null: no labels are requested; removes those in leases.
  void Take(std::shared_ptr<const PodsOfNode> pods);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::adapter::cluster
