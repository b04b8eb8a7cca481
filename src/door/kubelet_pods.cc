// Level-triggered: each look joins everything anew.
#include "door/kubelet_pods.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/log.h"
#include "os/watch.h"

namespace penstock::door {

using base::Result;
using edge::kubelet::Checkpoint;
using edge::kubelet::CheckpointEntry;
using edge::kubelet::PodDevices;
using node::attribute::PodHolding;
using namespace std::chrono_literals;

namespace {

constexpr base::Duration kSoon = 150ms;   // while a holder is not known
constexpr base::Duration kFresh = 1s;     // while a new kubelet may still be taking up the pods it finds, or somebody waits for pods to end
constexpr base::Duration kSteady = 10s;   // nobody reports a release, nor a pod that came back with what it had
constexpr base::Duration kSettled = 30s;  // a lease is younger than the kubelet's own notes at most so long
constexpr int kSoonLooks = 100;
constexpr int kFreshLooks = 30;

/// The uid in the checkpoint for a container of List. Entries of deleted pods linger, so among several the pod that has processes is meant.
std::string UidOf(const PodDevices& one, const std::vector<CheckpointEntry>& checkpoint, const std::set<std::string>& alive) {
  std::vector<std::string> candidates;
  for (const CheckpointEntry& entry : checkpoint)
    if (entry.resource == one.resource && entry.container == one.container && entry.ids == one.ids) candidates.push_back(entry.pod_uid);
  if (candidates.size() == 1) return candidates.front();
  const auto living = std::find_if(candidates.begin(), candidates.end(), [&alive](const std::string& uid) { return alive.contains(uid); });
  return living == candidates.end() ? "" : *living;
}

template <typename Entries>
void KeepOurs(Entries& entries, const KubeletPods::Ours& ours) {
  std::erase_if(entries, [&ours](const auto& entry) { return entry.ids.empty() || !ours(entry.resource, entry.ids); });
}

/// Whether the checkpoint has something that the list does not tell.
bool HasHidden(const std::vector<CheckpointEntry>& checkpoint, const std::vector<PodDevices>& list) {
  std::set<std::pair<std::string, std::string>> listed;  // resource, id
  for (const PodDevices& one : list)
    for (const std::string& id : one.ids) listed.emplace(one.resource, id);
  return std::any_of(checkpoint.begin(), checkpoint.end(), [&listed](const CheckpointEntry& entry) {
    return std::any_of(entry.ids.begin(), entry.ids.end(), [&](const std::string& id) { return !listed.contains({entry.resource, id}); });
  });
}

std::set<std::string> UidsIn(const std::vector<CheckpointEntry>& checkpoint) {
  std::set<std::string> uids;
  for (const CheckpointEntry& entry : checkpoint) uids.insert(entry.pod_uid);
  return uids;
}

}  // namespace

std::vector<PodHolding> JoinPods(const std::vector<PodDevices>& list, const std::vector<CheckpointEntry>& checkpoint,
                                 const std::set<std::string>& alive) {
  std::vector<PodHolding> pods;
  std::set<std::string> taken;
  for (const PodDevices& one : list) {
    taken.insert(one.ids.begin(), one.ids.end());
    pods.push_back({UidOf(one, checkpoint, alive), one.pod, one.namespace_name, one.container, one.ids, one.resource});
  }
  for (const CheckpointEntry& entry : checkpoint) {
    const bool known = std::any_of(entry.ids.begin(), entry.ids.end(), [&taken](const std::string& id) { return taken.contains(id); });
    if (known || !alive.contains(entry.pod_uid)) continue;
    taken.insert(entry.ids.begin(), entry.ids.end());
    pods.push_back({entry.pod_uid, "", "", entry.container, entry.ids, entry.resource});
  }
  return pods;
}

struct KubeletPods::State : std::enable_shared_from_this<State> {
  State(os::Loop& c, base::Executor& i, std::string dir, std::string proc, node::ledger::Ledger& l,
        base::Published<std::vector<node::share::Offer>>& off, Ours o)
      : control(c),
        io(i),
        kubelet_dir(std::move(dir)),
        proc_root(std::move(proc)),
        ledger(l),
        offers(off),
        ours(std::move(o)),
        resources(c, kubelet_dir) {}

  void Look() {
    if (looking) {
      again = true;
      return;
    }
    looking = true;
    again = coming = false;
    control.Cancel(timer);
    asked = control.clock().Wall();
    resources.List([weak = weak_from_this()](Result<std::vector<PodDevices>> list) {
      if (const auto self = weak.lock()) self->Listed(std::move(list));
    });
  }

  void LookSoon() {
    soon_looks = 0;
    if (looking || coming) return;
    coming = true;
    control.Cancel(timer);
    timer = control.PostAfter(kSoon, [this] { Look(); });
  }

  void Listed(Result<std::vector<PodDevices>> list) {
    if (!list.ok()) return Done();  // no kubelet now: nothing is concluded from its silence
    KeepOurs(*list, ours);
    io.Post([weak = weak_from_this(), list = *std::move(list)] {
      const auto self = weak.lock();
      if (!self) return;
      auto checkpoint = edge::kubelet::ReadCheckpoint(self->kubelet_dir);
      std::set<std::string> alive;
      if (checkpoint.ok()) {
        KeepOurs(checkpoint->entries, self->ours);
        // Looking through all processes is only worth it where the list does not tell everything, or not of whom it tells.
        if (checkpoint->entries.size() > list.size() || HasHidden(checkpoint->entries, list))
          alive = node::attribute::PodsWithProcesses(self->proc_root, UidsIn(checkpoint->entries));
      }
      self->control.Post([weak, list, checkpoint = std::move(checkpoint), alive = std::move(alive)] {
        if (const auto here = weak.lock()) here->Join(list, checkpoint, alive);
      });
    });
  }

  void Join(const std::vector<PodDevices>& list, const Result<Checkpoint>& checkpoint, const std::set<std::string>& alive) {
    if (!checkpoint.ok() && checkpoint.error().code() != base::Code::kNotFound)
      base::Log(base::kWarn, "the kubelet's checkpoint cannot be read", {{"why", checkpoint.error().message()}});
    const std::vector<CheckpointEntry> entries = checkpoint.ok() ? checkpoint->entries : std::vector<CheckpointEntry>{};
    // The list hides pods in their init phase: without the checkpoint nobody is known to have given anything back.
    const bool complete = checkpoint.ok() || checkpoint.error().code() == base::Code::kNotFound;
    node::attribute::ApplyPods(JoinPods(list, entries, alive), complete ? std::optional(asked - kSettled) : std::nullopt,
                               control.clock().Wall(), ledger, *offers.Get());
    Done();
  }

  void Done() {
    looking = false;
    if (again) return Look();
    const auto snapshot = ledger.Get();
    const auto of_kubelet = [](const node::ledger::Lease& lease) { return lease.door == node::share::kKubeletDoor; };
    const bool unknown = std::any_of(snapshot->leases.begin(), snapshot->leases.end(), [&](const node::ledger::Lease& lease) {
      return of_kubelet(lease) && (lease.pod.empty() || lease.pod_uid.empty());
    });
    soon_looks = unknown ? soon_looks + 1 : 0;
    base::Duration next = kSteady;
    if (fresh_looks > 0) {
      --fresh_looks;
      next = kFresh;
    }
    if (somebody_waits) next = kFresh;
    if (unknown && soon_looks < kSoonLooks) next = kSoon;
    timer = control.PostAfter(next, [this] { Look(); });
  }

  os::Loop& control;
  base::Executor& io;
  const std::string kubelet_dir, proc_root;
  node::ledger::Ledger& ledger;
  base::Published<std::vector<node::share::Offer>>& offers;
  const Ours ours;
  edge::kubelet::PodResources resources;
  std::unique_ptr<os::PathWatch> watch;
  base::TimerId timer = 0;
  base::WallTime asked{};
  bool looking = false, again = false;
  bool coming = false;  // a look that was asked for, by the timer
  bool somebody_waits = false;
  int soon_looks = 0, fresh_looks = 0;
};

KubeletPods::KubeletPods(os::Loop& control, base::Executor& io, const std::string& kubelet_dir, const std::string& proc_root,
                         node::ledger::Ledger& ledger, base::Published<std::vector<node::share::Offer>>& offers, Ours ours)
    : state_(std::make_shared<State>(control, io, kubelet_dir, proc_root, ledger, offers, std::move(ours))) {
  state_->watch = std::make_unique<os::PathWatch>(control, kubelet_dir + "/device-plugins/kubelet_internal_checkpoint",
                                                  [state = state_.get()] { state->Look(); });
}

KubeletPods::~KubeletPods() {
  state_->control.Cancel(state_->timer);
  state_->watch.reset();
}

void KubeletPods::Look() { state_->Look(); }

void KubeletPods::LookSoon() { state_->LookSoon(); }

void KubeletPods::AwaitReleases(bool somebody_waits) {
  if (std::exchange(state_->somebody_waits, somebody_waits) != somebody_waits && somebody_waits) state_->Look();
}

void KubeletPods::LookAfterKubeletStart() {
  state_->fresh_looks = kFreshLooks;
  state_->Look();
}

}  // namespace penstock::door
