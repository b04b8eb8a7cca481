#include "adapter/cluster/pod_labels.h"

#include <utility>

#include "base/lifetime.h"
#include "base/log.h"
#include "node/share/offer.h"

namespace penstock::adapter::cluster {

using node::ledger::Lease;

Lease WithPod(Lease lease, const PodsOfNode& pods) {
  if (!api::FindAllocator(lease.allocator).is_for_pods() || lease.pod.empty()) return lease;
  const auto pod = pods.find({lease.namespace_name, lease.pod});
  if (pod == pods.end() || (!lease.pod_uid.empty() && lease.pod_uid != pod->second.uid))
    return lease;
  lease.pod_uid = pod->second.uid;
  lease.labels = pod->second.labels;
  return lease;
}

namespace {

Lease WithoutLabels(Lease lease) {
  if (api::FindAllocator(lease.allocator).is_for_pods()) lease.labels.clear();
  return lease;
}

}  // namespace

struct PodLabels::State : std::enable_shared_from_this<State> {
  State(base::Executor& c, node::ledger::Ledger& l) : control(c), ledger(l) {}

  /// Posts the update, since a publisher must not be called from its own notification.
  void Soon() {
    if (!reported || std::exchange(coming, true)) return;
    control.Post(base::IfAlive(this, &State::Apply));
  }

  void Apply() {
    coming = false;
    const auto snapshot = ledger.Get();  // keeps the snapshot: each Update publishes another
    for (const Lease& lease : snapshot->leases) {
      const Lease now = pods ? WithPod(lease, *pods) : WithoutLabels(lease);
      if (now == lease) continue;
      if (const base::Status done = ledger.Update(now); !done.ok())
        base::Log(base::kDebug, "lease ended before its labels were known", {{"lease", lease.id}});
    }
  }

  base::Executor& control;
  node::ledger::Ledger& ledger;
  std::shared_ptr<const PodsOfNode> pods;
  bool reported = false;  // whether Take was called
  bool coming = false;
};

PodLabels::PodLabels(base::Executor& control, node::ledger::Ledger& ledger)
    : state_(std::make_shared<State>(control, ledger)) {}

PodLabels::~PodLabels() = default;

void PodLabels::LedgerChanged() { state_->Soon(); }

void PodLabels::Take(std::shared_ptr<const PodsOfNode> pods) {
  state_->pods = std::move(pods);
  state_->reported = true;
  state_->Soon();
}

}  // namespace penstock::adapter::cluster
