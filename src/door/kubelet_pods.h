// Asks the kubelet who holds what, and lets the ledger know. Its List and its checkpoint together: the one knows names, the other uids and
// init containers.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/executor.h"
#include "edge/kubelet/checkpoint.h"
#include "edge/kubelet/pod_resources.h"
#include "node/attribute/attribute.h"
#include "node/ledger/ledger.h"
#include "node/share/offer.h"
#include "os/loop.h"

namespace penstock::door {

/// List's entries, with the uid of the checkpoint's entry that has the same devices. Containers that only the checkpoint knows are taken
/// where their pod is `alive` (has a process): the checkpoint keeps entries of pods that ended. Pure.
std::vector<node::attribute::PodHolding> JoinPods(const std::vector<edge::kubelet::PodDevices>& list,
                                                  const std::vector<edge::kubelet::CheckpointEntry>& checkpoint,
                                                  const std::set<std::string>& alive);

/// On the control loop. `offers` tell what a share is one of, which the kubelet does not. Looks when told, when the kubelet's checkpoint
/// changes, soon again while a lease's holder is not known, and every ten seconds.
class KubeletPods {
 public:
  /// Whether what a pod holds is of our devices. Any thread.
  using Ours = std::function<bool(const std::string& resource, const std::vector<std::string>& ids)>;

  KubeletPods(os::Loop& control, base::Executor& io, const std::string& kubelet_dir, const std::string& proc_root,
              node::ledger::Ledger& ledger, base::Published<std::vector<node::share::Offer>>& offers, Ours ours);
  ~KubeletPods();

  void Look();

  /// Something was handed to the kubelet, which does not tell whom it is for before it has our answer. Many of these make one look.
  void LookSoon();

  /// While somebody waits for pods to end, looks every second.
  void AwaitReleases(bool somebody_waits);

  /// A kubelet that has just started lists its pods only as it takes them up, and rewrites no checkpoint for those that keep what they had
  /// (a reboot): looks every second for half a minute.
  void LookAfterKubeletStart();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::door
