// Asks the kubelet which pods hold devices and updates the ledger. Joins the kubelet's List, which
// has names, with its checkpoint, which has uids and init containers.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/executor.h"
#include "node/attribute/attribute.h"
#include "node/ledger/ledger.h"
#include "node/share/offer.h"
#include "node/share/offers.h"
#include "os/loop.h"
#include "protocol/kubelet/checkpoint.h"
#include "protocol/kubelet/pod_resources.h"

namespace penstock::adapter::kubelet {

/// Returns List's entries, each with the uid of the checkpoint entry that has the same devices.
/// Adds containers that only the checkpoint has if their pod is `alive` (has a process), since the
/// checkpoint keeps entries of pods that ended. Pure.
std::vector<node::attribute::PodHolding> JoinPods(
    const std::vector<protocol::kubelet::PodDevices>& list,
    const std::vector<protocol::kubelet::CheckpointEntry>& checkpoint,
    const std::set<std::string>& alive);

/// Use on the control loop. `offers` say how a share's device is divided, which the kubelet does
/// not. Polls on request, when the kubelet's checkpoint changes, soon again while a lease's holder
/// is unknown, and every ten seconds.
class PodTracker {
 public:
  /// Whether what a pod holds is among our devices. Called on any thread.
  using IsOwn =
      std::function<bool(const std::string& resource, const std::vector<std::string>& ids)>;

  PodTracker(os::Loop& control, base::Executor& io, const std::string& kubelet_dir,
             const std::string& proc_root, node::ledger::Ledger& ledger,
             node::share::Offers& offers, IsOwn is_own);
  ~PodTracker();

  void Poll();

  /// Whether a poll has ended: until then, the ledger lacks pods that the previous agent could not
  /// write down. A kubelet that is not there starts no pods; then its checkpoint was read.
  bool polled() const;

  /// Devices were allocated through the kubelet, which does not say for which pod before it has our
  /// answer. Many calls cause one poll.
  void SchedulePoll();

  /// Polls every second while a caller waits for pods to end.
  void AwaitReleases(bool has_waiters);

  /// A kubelet that just started lists its pods only as it adopts them, and does not rewrite the
  /// checkpoint for pods that keep their devices (after a reboot): polls every second for 30 s.
  void PollAfterKubeletStart();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::adapter::kubelet
