// Leases end with their processes. The kernel's groups are the truth, and the ledger follows them.
#include "node/lease/local_leases.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "base/log.h"
#include "node/allocate/allocate.h"
#include "node/allocate/outlook.h"
#include "node/lease/lease_note.h"
#include "node/share/offer.h"
#include "os/process/process.h"

namespace penstock::node::lease {
namespace {

using allocate::kKillWait;
using ledger::Enforcement;
using ledger::Lease;
using ledger::LeaseState;
using ledger::Process;

constexpr base::Duration kOpenAgain = std::chrono::seconds(30);
constexpr base::Duration kRemoveAgain = std::chrono::milliseconds(100);
constexpr base::Duration kRemoveAgainMost = std::chrono::seconds(30);
constexpr base::Duration kKillAgain =
    std::chrono::seconds(1);  // new processes may have started meanwhile
constexpr std::size_t kMaxProcessesShown = 64;
constexpr char kNoDevice[] = "no known device can be closed";

constexpr int kBystanderChecks = 8;

Error HasGone() { return {Code::kCancelled, "the requesting process exited"}; }

bool HasEnded(int pidfd) {
  pollfd end{pidfd, POLLIN, 0};
  return pidfd < 0 || ::poll(&end, 1, 0) != 0;
}

os::DeviceRange ToRange(const device::DeviceNumbers& numbers) {
  return {numbers.major, numbers.first_minor, numbers.last_minor};
}

os::DeviceRules RulesFor(const Lease& lease, const inventory::Snapshot& inventory) {
  const auto access = allocate::AccessFor(lease.slots, inventory);
  os::DeviceRules rules;
  std::ranges::transform(access.guarded, std::back_inserter(rules.guarded), ToRange);
  std::ranges::transform(access.admitted, std::back_inserter(rules.admitted), ToRange);
  return rules;
}

/// The user of the first process that still runs.
std::optional<uid_t> UserOf(const std::string& proc_root, const std::vector<Process>& processes) {
  for (const Process& process : processes) {
    const auto info = os::ReadProcess(proc_root, process.pid);
    if (info.ok() && info->start == process.start) return info->uid;
  }
  return std::nullopt;
}

// A lack of resources in the kernel is no reason to queue for devices.
Error AsAborted(const Error& error) {
  const bool passes =
      error.code() == Code::kResourceExhausted || error.code() == Code::kUnavailable;
  return passes ? Error(Code::kAborted, error.message()) : error;
}

}  // namespace

LocalLeases::LocalLeases(base::Executor& control, base::Executor& io, std::string proc_root,
                         inventory::Inventory& inventory, ledger::Ledger& ledger,
                         OpenGroups open_groups, std::function<void()> on_ending)
    : control_(control),
      io_(io),
      proc_root_(std::move(proc_root)),
      inventory_(inventory),
      ledger_(ledger),
      open_groups_(std::move(open_groups)),
      on_ending_(std::move(on_ending)),
      trees_(control, io, proc_root_, [this](const ProcessTree& tree) { TreeChanged(tree); }) {
  TryOpenGroups();
}

LocalLeases::~LocalLeases() {
  lifetime_.End();
  control_.Cancel(close_);
  CheckAllGroups();
  for (const auto& [name, timer] : watched_) {
    control_.Cancel(timer);
    groups_->Unwatch(name);
  }
  for (const auto& [id, timer] : ends_) control_.Cancel(timer);
  for (const auto& [id, timer] : ending_) control_.Cancel(timer);
}

// Permissions may come later (a remounted file system, a restarted container): retries after a
// refusal.
void LocalLeases::TryOpenGroups() {
  if (groups_ || control_.clock().Now() < next_open_) return;
  next_open_ = control_.clock().Now() + kOpenAgain;
  auto opened = open_groups_();
  if (opened.ok()) {
    groups_ = std::move(*opened);
    visibility_reason_.clear();
    return;
  }
  visibility_reason_ = opened.error().message();
}

// Unique over restarts too: the time of creation, and a number.
std::string LocalLeases::NextId() {
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
                       control_.clock().Wall().time_since_epoch())
                       .count();
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), now, 36).ptr;
  return "r-" + std::string(text.data(), end) + "-" + std::to_string(next_id_++);
}

base::Result<Lease> LocalLeases::Admit(const Admission& admission) {
  TryOpenGroups();
  Lease lease;
  lease.id = NextId();
  lease.allocator = api::kLocalAllocator;
  lease.slots = admission.slots;
  lease.state = LeaseState::kHeld;
  lease.enforcement = groups_ ? Enforcement::kDevices : Enforcement::kVisibility;
  lease.since = control_.clock().Wall();
  lease.processes = {admission.process};
  lease.user = admission.user;
  lease.command = admission.command;
  lease.labels = admission.labels;
  if (groups_) { ASSIGN(lease.cgroup, PlaceFor(lease.id, admission.process.pid)); }
  if (HasEnded(admission.pidfd)) return HasGone();  // otherwise /proc described this process
  TRY(ledger_.Add(lease));
  const base::TimePoint now = control_.clock().Now();
  Begin(lease.id, {now,
                   admission.time ? std::optional(now + *admission.time) : std::nullopt,
                   {},
                   admission.uid});
  if (!groups_) {
    trees_.Follow({lease.id, lease.user, lease.processes});
    return lease;
  }
  if (const auto entered = MakeGroup(lease, admission); !entered.ok()) {
    Release(lease.id);
    return AsAborted(entered.error()).Within("create the control group of lease " + lease.id);
  }
  return lease;
}

base::Result<std::string> LocalLeases::PlaceFor(const std::string& name, pid_t pid) const {
  ASSIGN(const std::string above, os::ReadUnifiedCgroup(proc_root_, pid));
  return groups_->PlaceFor(name, above);
}

base::Status LocalLeases::MayAdmit(pid_t pid) const {
  if (!groups_) return {};
  const auto place = PlaceFor("r-0", pid);
  return place.ok() || place.error().code() != Code::kFailedPrecondition ? base::Status{}
                                                                         : place.error();
}

base::Status LocalLeases::MakeGroup(const Lease& lease, const Admission& admission) {
  TRY(groups_->Create(lease.id, lease.cgroup, RulesFor(lease, *inventory_.published().Get()),
                      EncodeNote(lease)));
  base::Status entered = groups_->Watch(lease.id, [this, name = lease.id] { CheckGroup(name); });
  if (entered.ok()) entered = EnterGroup(lease.id, admission);
  watched_.emplace(lease.id, 0);
  if (!entered.ok()) {
    RemoveGroup(lease.id, kRemoveAgain);
    return entered;
  }
  return {};
}

// A process is moved by its pid, which another process may have as soon as it has ended. Creating
// the group took a while, so the process is checked right before the move, and again after it,
// because check and move are not atomic. A process that is exiting and has not ended yet is not
// moved, without an error (cgroup_migrate_add_task in kernel/cgroup/cgroup.c); and for a group that
// never had a process the kernel never reports that it is empty.
base::Status LocalLeases::EnterGroup(const std::string& name, const Admission& admission) {
  if (HasEnded(admission.pidfd)) return HasGone();
  TRY(groups_->Enter(name, admission.process.pid));
  if (!HasEnded(admission.pidfd) && groups_->Populated(name)) return {};
  PutBack(name);
  return HasGone();
}

// The process that got the pid started a moment ago, in its parent's group, and may have children
// already.
void LocalLeases::PutBack(const std::string& name) {
  for (int check = 0; check < kBystanderChecks; ++check) {
    const std::vector<pid_t> members = groups_->Members(name);
    if (members.empty()) return;
    for (const pid_t pid : members) {
      pid_t parent = pid;
      while (std::ranges::find(members, parent) != members.end()) {
        const auto info = os::ReadProcess(proc_root_, parent);
        parent = info.ok() ? info->parent : 0;
      }
      const auto home = os::ReadUnifiedCgroup(proc_root_, parent);
      const auto moved = groups_->MoveTo(home.value_or("/"), pid);
      base::Log(base::kWarn,
                "PID of a requesting process was reused; the other process was moved back to its "
                "control group",
                {{"pid", static_cast<long>(pid)},
                 {"cgroup", home.value_or("/")},
                 {"error", moved.ok() ? "" : moved.error().message()}});
    }
  }
}

// Called when the kernel reports a change, and where it may not have reported one.
void LocalLeases::CheckGroup(const std::string& name) {
  const auto watched = watched_.find(name);
  const bool being_removed = watched != watched_.end() && watched->second != 0;
  if (watched == watched_.end() || being_removed || groups_->Populated(name)) return;
  Release(name);
  RemoveGroup(name, kRemoveAgain);
}

void LocalLeases::RemoveGroup(const std::string& name, base::Duration again) {
  groups_->Unwatch(name);
  const auto removed = groups_->Remove(name);
  if (removed.ok()) {
    watched_.erase(name);
    return;
  }
  // The kernel may still be busy with the last process of the group.
  if (again >= kRemoveAgainMost)
    base::Log(base::kWarn, "cannot remove the control group yet",
              {{"group", name}, {"error", removed.error().message()}});
  watched_[name] = control_.PostAfter(
      again, [this, name, again] { RemoveGroup(name, std::min(again * 2, kRemoveAgainMost)); });
}

void LocalLeases::Recover(const std::vector<Lease>& checkpoint,
                          const std::map<std::string, Term>& terms,
                          const std::vector<ledger::LeaseLimits>& limits) {
  if (groups_)
    for (const std::string& name : groups_->List()) RecoverGroup(name, checkpoint, limits);
  // Includes leases with groups: where groups cannot be opened or listed at the moment, their
  // processes still hold the devices.
  for (const Lease& lease : checkpoint)
    if (lease.allocator == api::kLocalAllocator && ledger_.Get()->FindLease(lease.id) == nullptr)
      RecoverTree(lease);
  for (const Lease& lease : ledger_.Get()->leases) {
    if (lease.allocator != api::kLocalAllocator) continue;
    const auto known = terms.find(lease.id);
    Term term = known != terms.end() ? known->second : Term{control_.clock().Now()};
    if (!term.uid) term.uid = UserOf(proc_root_, lease.processes);
    Begin(lease.id, term);
  }
}

void LocalLeases::Begin(const std::string& id, Term term) {
  terms_[id] = term;
  if (term.killed) {
    ending_[id] = control_.PostAfter(Until(*term.killed), [this, id] { Kill(id); });
  } else if (term.ends) {
    ends_[id] = control_.PostAfter(Until(*term.ends),
                                   [this, id] { End(id, "its declared time limit has expired"); });
  }
}

base::Duration LocalLeases::Until(base::TimePoint time) const {
  return std::max(time - control_.clock().Now(), base::Duration::zero());
}

void LocalLeases::Release(const std::string& id) {
  for (auto* timers : {&ends_, &ending_})
    if (const auto timer = timers->extract(id)) control_.Cancel(timer.mapped());
  terms_.erase(id);
  ledger_.Release(id);
}

void LocalLeases::End(const std::string& id, const std::string& why) {
  const auto ledger = ledger_.Get();
  const Lease* lease = ledger->FindLease(id);
  const auto term = terms_.find(id);
  if (lease == nullptr || term == terms_.end() || term->second.killed) return;
  base::Log(base::kInfo, "terminating the run",
            {{"lease", id}, {"user", lease->user}, {"why", why}});
  term->second.killed = control_.clock().Now() + kKillWait;
  ending_[id] = control_.PostAfter(kKillWait, [this, id] { Kill(id); });
  Signal(id, SIGTERM);
  Signal(id, SIGCONT);  // a stopped process would not handle SIGTERM
  if (on_ending_) on_ending_();
}

void LocalLeases::Kill(const std::string& id) {
  ending_[id] = control_.PostAfter(kKillAgain, [this, id] { Kill(id); });
  Signal(id, SIGKILL);
}

void LocalLeases::Signal(const std::string& id, int signal) const {
  const auto ledger = ledger_.Get();
  const Lease* lease = ledger->FindLease(id);
  if (lease == nullptr) return;
  if (watched_.contains(id)) {
    if (const auto sent = groups_->Signal(id, signal); !sent.ok())
      base::Log(base::kWarn, "cannot signal the processes of the run",
                {{"lease", id}, {"error", sent.error().message()}});
    return;
  }
  for (const Process& process : lease->processes) {
    const auto opened = os::OpenPidfd(process.pid);
    const auto start =
        os::ReadProcessStart(proc_root_, process.pid);  // of the process that the pidfd refers to
    if (opened.ok() && start.ok() && *start == process.start)
      (void)::syscall(SYS_pidfd_send_signal, opened->get(), signal, nullptr, 0);
  }
}

void LocalLeases::RecoverGroup(const std::string& name, const std::vector<Lease>& checkpoint,
                               const std::vector<ledger::LeaseLimits>& limits) {
  if (!groups_->Populated(name)) return RemoveGroup(name, kRemoveAgain);
  base::Result<std::string> note = groups_->Note(name);
  base::Result<Lease> lease =
      note.ok() ? DecodeNote(*note, name) : base::Result<Lease>(note.error());
  if (!lease.ok()) {
    const auto known = std::ranges::find(checkpoint, name, &Lease::id);
    base::Log(
        base::kError,
        known != checkpoint.end()
            ? "lease note of the control group is damaged; using the lease from the checkpoint"
            : "lease note of the control group is damaged; its "
              "processes continue and may hold any device",
        {{"group", name}, {"error", lease.error().message()}});
    if (known != checkpoint.end()) lease = *known;
  }
  if (lease.ok()) {
    ledger::RestoreLimits(limits, *lease);
    lease->cgroup = groups_->Place(name);
    lease->processes = Read(proc_root_, GroupOf(name, {}));
    if (const auto added = ledger_.Add(*lease); !added.ok())
      base::Log(base::kError, "cannot take over the lease",
                {{"lease", name}, {"error", added.error().message()}});
  }
  WatchGroup(name);
}

void LocalLeases::WatchGroup(const std::string& name) {
  const auto watching = groups_->Watch(name, [this, name] { CheckGroup(name); });
  if (!watching.ok())
    base::Log(base::kError, "cannot watch the control group",
              {{"group", name}, {"error", watching.error().message()}});
  watched_.emplace(name, 0);
  CheckGroup(name);
}

void LocalLeases::RecoverTree(const Lease& lease) {
  const ProcessTree tree =
      FindProcessTrees(proc_root_, {{lease.id, lease.user, lease.processes}}).front();
  if (tree.members.empty()) return;
  Lease taken = lease;
  taken.state = LeaseState::kHeld;
  taken.processes = tree.members;
  if (const auto added = ledger_.Add(taken); !added.ok()) {
    base::Log(base::kError, "cannot take over the lease",
              {{"lease", lease.id}, {"error", added.error().message()}});
    return;
  }
  trees_.Follow(tree);
}

void LocalLeases::CloseDevices(std::vector<std::string> cgroups) {
  if (cgroups == to_close_) return;
  to_close_ = std::move(cgroups);
  Close();
}

void LocalLeases::DevicesChanged() {
  const std::uint64_t described = inventory_.published().Get()->facts_generation;
  if (std::exchange(described_, described) != described && !to_close_.empty()) Close();
}

void LocalLeases::Close() {
  control_.Cancel(std::exchange(close_, 0));
  Closed now = TryClose();
  if (now.problem != closed_.problem && !now.problem.empty() && now.problem != kNoDevice)
    base::Log(base::kWarn, "cannot close the devices as configured", {{"why", now.problem}});
  if (now.cgroups != closed_.cgroups)
    base::Log(base::kInfo, "devices are closed to processes that hold none",
              {{"cgroups", base::Join(now.cgroups, ",")}});
  closed_ = std::move(now);
  if (!to_close_.empty()) close_ = control_.PostAfter(kCloseAgain, [this] { Close(); });
}

LocalLeases::Closed LocalLeases::TryClose() {
  TryOpenGroups();
  if (!groups_) return {{}, to_close_.empty() ? "" : "cannot close devices: " + visibility_reason_};
  const auto guarded = RulesFor({}, *inventory_.published().Get()).guarded;
  if (guarded.empty() && !to_close_.empty()) return {{}, kNoDevice};
  if (const auto without = WithoutGroup(); !without.empty() && !to_close_.empty()) {
    (void)groups_->CloseDevices({}, guarded);
    return {{},
            "devices stay open until these runs, started without a control group, have ended: " +
                base::Join(without, ", ")};
  }
  Closed closed;
  std::vector<std::string> problems;
  for (const auto& [cgroup, status] : groups_->CloseDevices(to_close_, guarded)) {
    if (status.ok())
      closed.cgroups.push_back(cgroup);
    else
      problems.push_back(cgroup + ": " + status.error().message());
  }
  closed.problem = base::Join(problems, "; ");
  return closed;
}

// No group of these leases could be admitted: their processes could no longer open the devices that
// they hold.
std::vector<std::string> LocalLeases::WithoutGroup() const {
  std::vector<std::string> without;
  for (const Lease& lease : ledger_.Get()->leases)
    if (lease.allocator == api::kLocalAllocator && lease.enforcement == Enforcement::kVisibility)
      without.push_back(lease.id);
  return without;
}

void LocalLeases::TreeChanged(const ProcessTree& tree) {
  if (tree.members.empty()) return Release(tree.lease);
  const auto ledger = ledger_.Get();
  const Lease* known = ledger->FindLease(tree.lease);
  if (known == nullptr) return;
  Lease lease = *known;
  lease.processes = tree.members;
  (void)ledger_.Update(lease);
}

LocalLeases::Group LocalLeases::GroupOf(const std::string& lease,
                                        const std::vector<Process>& known) const {
  std::vector<pid_t> pids = groups_->Members(lease);
  std::ranges::sort(pids);
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  // Known processes come first: they were found on a device, or are the first of the group.
  if (pids.size() > kMaxProcessesShown) {
    std::stable_partition(pids.begin(), pids.end(), [&](pid_t pid) {
      return std::ranges::any_of(known, [pid](const Process& one) { return one.pid == pid; });
    });
    pids.resize(kMaxProcessesShown);
    std::ranges::sort(pids);
  }
  return {lease, std::move(pids), known};
}

std::vector<Process> LocalLeases::Read(const std::string& proc_root, const Group& group) {
  std::vector<Process> processes;
  for (const pid_t pid : group.pids) {
    const auto info = os::ReadProcess(proc_root, pid);
    if (!info.ok()) continue;
    const auto same = std::ranges::find_if(group.known, [&](const Process& one) {
      return one.pid == pid && one.start == info->start;
    });
    processes.push_back({pid, info->start,
                         same != group.known.end() ? same->user : os::UserName(info->uid),
                         info->command});
  }
  return processes;
}

// The kernel reports a change at most every 10 ms (CGROUP_FILE_NOTIFY_MIN_INTV), so the end of a
// group may not have been reported yet.
void LocalLeases::CheckAllGroups() {
  const auto names = watched_;
  for (const auto& [name, timer] : names) CheckGroup(name);
}

void LocalLeases::RefreshProcesses(std::function<void()> then) {
  const auto requester = std::make_shared<Requester>(Requester{std::move(then)});
  // An answer without the newest processes is better than none: the caller may be looking for what
  // keeps the machine busy.
  requester->timer = control_.PostAfter(kLongestRefresh,
                                        lifetime_.Guard([this, requester] { Answer(*requester); }));
  std::erase_if(requesters_, [](const auto& one) { return one->then == nullptr; });
  requesters_.push_back(requester);
  if (!refreshing_) Refresh();
}

void LocalLeases::Answer(Requester& requester) {
  control_.Cancel(requester.timer);
  if (const auto then = std::exchange(requester.then, nullptr)) then();
}

void LocalLeases::Refresh() {
  CheckAllGroups();
  std::vector<Group> groups;
  for (const Lease& lease : ledger_.Get()->leases)
    if (watched_.contains(lease.id)) groups.push_back(GroupOf(lease.id, lease.processes));
  const Requesters requesters = std::exchange(requesters_, {});
  if (groups.empty()) return Refreshed({}, requesters);
  refreshing_ = true;
  const auto refreshed =
      lifetime_.Guard([this, requesters](const auto& found) { Refreshed(found, requesters); });
  io_.Post([refreshed, &control = control_, proc_root = proc_root_, groups = std::move(groups)] {
    std::map<std::string, std::vector<Process>> found;
    for (const Group& group : groups) found.emplace(group.lease, Read(proc_root, group));
    control.Post([refreshed, found = std::move(found)]() mutable { refreshed(found); });
  });
}

void LocalLeases::Refreshed(const std::map<std::string, std::vector<Process>>& found,
                            const Requesters& requesters) {
  const auto ledger = ledger_.Get();
  for (const auto& [id, processes] : found) {
    const Lease* known = ledger->FindLease(id);
    if (known == nullptr || processes.empty() || processes == known->processes) continue;
    Lease lease = *known;
    lease.processes = processes;
    (void)ledger_.Update(lease);
  }
  refreshing_ = false;
  for (const auto& requester : requesters) Answer(*requester);
  if (!requesters_.empty() && !refreshing_) Refresh();
}

}  // namespace penstock::node::lease
