// Level-triggered: each poll joins all sources again.
#include "adapter/kubelet/pod_tracker.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "os/watch/watch.h"

namespace penstock::adapter::kubelet {

using node::attribute::PodHolding;
using protocol::kubelet::Checkpoint;
using protocol::kubelet::CheckpointEntry;
using protocol::kubelet::PodDevices;
using namespace std::chrono_literals;

namespace {

constexpr base::Duration kSoon = 150ms;  // while a holder is unknown
// While a new kubelet may still be adopting the pods that it finds, or a caller waits for pods to
// end.
constexpr base::Duration kFresh = 1s;
// Releases are not reported, nor are pods that return with the devices that they had.
constexpr base::Duration kSteady = 10s;
// The kubelet's own records may lag behind a lease by at most this much.
constexpr base::Duration kSettled = 30s;
constexpr int kMaxSoonPolls = 100;
constexpr int kFreshPolls = 30;

/// The uid in the checkpoint for a container of List. Entries of deleted pods linger, so among
/// several candidates the pod that has processes is chosen.
std::string UidOf(const PodDevices& one, const std::vector<CheckpointEntry>& checkpoint,
                  const std::set<std::string>& alive) {
  std::vector<std::string> candidates;
  for (const CheckpointEntry& entry : checkpoint)
    if (entry.resource == one.resource && entry.container == one.container && entry.ids == one.ids)
      candidates.push_back(entry.pod_uid);
  if (candidates.size() == 1) return candidates.front();
  const auto living = std::ranges::find_if(
      candidates, [&alive](const std::string& uid) { return alive.contains(uid); });
  return living == candidates.end() ? "" : *living;
}

template <typename Entries>
void KeepOwn(Entries& entries, const PodTracker::IsOwn& is_own) {
  std::erase_if(entries, [&is_own](const auto& entry) {
    return entry.ids.empty() || !is_own(entry.resource, entry.ids);
  });
}

/// Whether the checkpoint has an allocation that the list lacks.
bool HasHidden(const std::vector<CheckpointEntry>& checkpoint,
               const std::vector<PodDevices>& list) {
  std::set<std::pair<std::string, std::string>> listed;  // resource, id
  for (const PodDevices& one : list)
    for (const std::string& id : one.ids) listed.emplace(one.resource, id);
  return std::ranges::any_of(checkpoint, [&listed](const CheckpointEntry& entry) {
    return std::ranges::any_of(entry.ids, [&](const std::string& id) {
      return !listed.contains({entry.resource, id});
    });
  });
}

std::set<std::string> UidsIn(const std::vector<CheckpointEntry>& checkpoint) {
  std::set<std::string> uids;
  for (const CheckpointEntry& entry : checkpoint) uids.insert(entry.pod_uid);
  return uids;
}

}  // namespace

std::vector<PodHolding> JoinPods(const std::vector<PodDevices>& list,
                                 const std::vector<CheckpointEntry>& checkpoint,
                                 const std::set<std::string>& alive) {
  std::vector<PodHolding> pods;
  std::set<std::string> taken;
  for (const PodDevices& one : list) {
    taken.insert(one.ids.begin(), one.ids.end());
    pods.push_back({UidOf(one, checkpoint, alive), one.pod, one.namespace_name, one.container,
                    one.ids, one.resource});
  }
  // What an init container had beyond the container after it: entries of fewer devices first, so
  // that the order of the file, which changes, decides nothing.
  std::vector<const CheckpointEntry*> entries;
  for (const CheckpointEntry& entry : checkpoint)
    if (alive.contains(entry.pod_uid)) entries.push_back(&entry);
  std::ranges::sort(entries, {}, [](const CheckpointEntry* entry) {
    return std::tuple(entry->ids.size(), entry->pod_uid, entry->container);
  });
  for (const CheckpointEntry* entry : entries) {
    std::vector<std::string> others;  // which no other container has now
    for (const std::string& id : entry->ids)
      if (taken.insert(id).second) others.push_back(id);
    if (others.empty()) continue;
    const auto same = std::ranges::find(pods, entry->pod_uid, &PodHolding::pod_uid);
    const PodHolding named = same != pods.end() ? *same : PodHolding();
    pods.push_back({entry->pod_uid, named.pod, named.namespace_name, entry->container,
                    std::move(others), entry->resource});
  }
  return pods;
}

struct PodTracker::State : std::enable_shared_from_this<State> {
  State(os::Loop& c, base::Executor& i, std::string dir, std::string proc, node::ledger::Ledger& l,
        node::share::Offers& off, IsOwn o)
      : control(c),
        io(i),
        kubelet_dir(std::move(dir)),
        proc_root(std::move(proc)),
        ledger(l),
        offers(off),
        is_own(std::move(o)),
        resources(c, kubelet_dir) {}

  void Poll() {
    if (polling) {
      again = true;
      return;
    }
    polling = true;
    again = scheduled = false;
    control.Cancel(timer);
    requested_at = control.clock().Wall();
    resources.List([weak = weak_from_this()](Result<std::vector<PodDevices>> list) {
      if (const auto self = weak.lock()) self->Listed(std::move(list));
    });
  }

  void SchedulePoll() {
    soon_polls = 0;
    if (polling || scheduled) return;
    scheduled = true;
    control.Cancel(timer);
    timer = control.PostAfter(kSoon, [this] { Poll(); });
  }

  /// Without a kubelet, its checkpoint still says which pods that run now hold devices, which the
  /// previous agent may not have written down; nothing else is concluded.
  void Listed(Result<std::vector<PodDevices>> answer) {
    if (!answer.ok() && polled) return Done();
    const bool answered = answer.ok();
    std::vector<PodDevices> list = answered ? *std::move(answer) : std::vector<PodDevices>();
    KeepOwn(list, is_own);
    io.Post([weak = weak_from_this(), list = std::move(list), answered] {
      const auto self = weak.lock();
      if (!self) return;
      auto checkpoint = protocol::kubelet::ReadCheckpoint(self->kubelet_dir);
      std::set<std::string> alive;
      if (checkpoint.ok()) {
        KeepOwn(checkpoint->entries, self->is_own);
        // Scan all processes only if the list is incomplete or does not identify its pods.
        if (checkpoint->entries.size() > list.size() || HasHidden(checkpoint->entries, list))
          alive = node::attribute::PodsWithProcesses(self->proc_root, UidsIn(checkpoint->entries));
      }
      self->control.Post(
          [weak, list, answered, checkpoint = std::move(checkpoint), alive = std::move(alive)] {
            if (const auto here = weak.lock()) here->Join(list, answered, checkpoint, alive);
          });
    });
  }

  void Join(const std::vector<PodDevices>& list, bool answered,
            const Result<Checkpoint>& checkpoint, const std::set<std::string>& alive) {
    if (!checkpoint.ok() && checkpoint.error().code() != base::Code::kNotFound)
      base::Log(base::kWarn, "cannot read the kubelet's checkpoint",
                {{"why", checkpoint.error().message()}});
    const std::vector<CheckpointEntry> entries =
        checkpoint.ok() ? checkpoint->entries : std::vector<CheckpointEntry>{};
    // The list omits pods in their init phase: without the checkpoint, no release can be concluded.
    const bool complete =
        answered && (checkpoint.ok() || checkpoint.error().code() == base::Code::kNotFound);
    node::attribute::ApplyPods(JoinPods(list, entries, alive),
                               complete ? std::optional(requested_at - kSettled) : std::nullopt,
                               control.clock().Wall(), ledger, *offers.Get());
    Done();
  }

  void Done() {
    polling = false;
    polled = true;
    if (again) return Poll();
    const auto snapshot = ledger.Get();
    const auto of_kubelet = [](const node::ledger::Lease& lease) {
      return lease.allocator == api::kKubeletAllocator;
    };
    const bool unknown =
        std::ranges::any_of(snapshot->leases, [&](const node::ledger::Lease& lease) {
          return of_kubelet(lease) && (lease.pod.empty() || lease.pod_uid.empty());
        });
    soon_polls = unknown ? soon_polls + 1 : 0;
    base::Duration next = kSteady;
    if (fresh_polls > 0) {
      --fresh_polls;
      next = kFresh;
    }
    if (has_waiters) next = kFresh;
    if (unknown && soon_polls < kMaxSoonPolls) next = kSoon;
    timer = control.PostAfter(next, [this] { Poll(); });
  }

  os::Loop& control;
  base::Executor& io;
  const std::string kubelet_dir, proc_root;
  node::ledger::Ledger& ledger;
  node::share::Offers& offers;
  const IsOwn is_own;
  protocol::kubelet::PodResources resources;
  std::unique_ptr<os::PathWatch> watch;
  base::TimerId timer = 0;
  base::WallTime requested_at{};
  bool polling = false, again = false, polled = false;
  bool scheduled = false;  // a requested poll is scheduled
  bool has_waiters = false;
  int soon_polls = 0, fresh_polls = 0;
};

PodTracker::PodTracker(os::Loop& control, base::Executor& io, const std::string& kubelet_dir,
                       const std::string& proc_root, node::ledger::Ledger& ledger,
                       node::share::Offers& offers, IsOwn is_own)
    : state_(std::make_shared<State>(control, io, kubelet_dir, proc_root, ledger, offers,
                                     std::move(is_own))) {
  state_->watch = std::make_unique<os::PathWatch>(
      control, kubelet_dir + "/device-plugins/kubelet_internal_checkpoint",
      [state = state_.get()] { state->Poll(); });
}

PodTracker::~PodTracker() {
  state_->control.Cancel(state_->timer);
  state_->watch.reset();
}

void PodTracker::Poll() { state_->Poll(); }

bool PodTracker::polled() const { return state_->polled; }

void PodTracker::SchedulePoll() { state_->SchedulePoll(); }

void PodTracker::AwaitReleases(bool has_waiters) {
  if (std::exchange(state_->has_waiters, has_waiters) != has_waiters && has_waiters) state_->Poll();
}

void PodTracker::PollAfterKubeletStart() {
  state_->fresh_polls = kFreshPolls;
  state_->Poll();
}

}  // namespace penstock::adapter::kubelet
