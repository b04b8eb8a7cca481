// Level-triggered: a turn begins what is due and takes every step that can be taken now.
#include "node/change/device_changes.h"

#include <algorithm>
#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/lifetime.h"
#include "base/log.h"
#include "node/share/describe.h"
#include "os/kept_file.h"

namespace penstock::node::change {
namespace {

constexpr base::Duration kJournalWritten = std::chrono::minutes(1);

}  // namespace

struct DeviceChanges::State : std::enable_shared_from_this<State> {
  struct Active {
    DeviceChange change;
    ChangeKind* kind = nullptr;  // null: of the previous agent, and its kind was not added yet
    std::size_t step = 0;
    bool taken = false;                               // the step was taken by this agent
    base::Status result{};                            // of the steps so far
    base::TimePoint entered{};                        // the step
    std::map<std::string, std::string> allocators{};  // of parts, before they were withdrawn
    std::set<pid_t> served{};  // processes on its devices while these had a sharing server
    std::optional<base::TimePoint> unheld{};  // since when only the kubelet is awaited
  };

  State(base::Executor& c, base::Executor& io, Node n, KubeletList::Ask ask,
        const std::string& path, std::vector<DeviceChange> remembered)
      : control(c),
        node(n),
        journal(c, io, path,
                "cannot write the journal of changes; a restart would forget those under way"),
        kubelet(c, std::move(ask), [this] { Schedule(); }) {
    kept = EncodeChanges(remembered);
    for (DeviceChange& change : remembered) {
      change.taken_over = true;
      active.push_back({.change = std::move(change)});
    }
  }

  void Schedule() {
    if (std::exchange(posted, true)) return;
    control.Post(base::IfAlive(this, &State::Turn));
  }

  // --- which devices

  /// The devices of a change, with their parts if its kind includes them.
  std::set<std::string> Affected(const Active& one) const {
    std::set<std::string> ids;
    const DeviceChange& change = one.change;
    for (const ChangedDevice& device : change.devices) ids.insert(device.id);
    if (one.kind == nullptr || !one.kind->includes_parts()) return ids;
    const std::set<std::string> staying = one.kind->KeptParts(change);
    for (const inventory::Entry& entry : node.inventory.published().Get()->devices)
      for (const inventory::Ancestor& ancestor : entry.ancestors)
        if (change.Has(ancestor.device) && !staying.contains(entry.facts->id))
          ids.insert(entry.facts->id);
    return ids;
  }

  const DeviceChange* Of(std::string_view device) const {
    const auto inventory = node.inventory.published().Get();
    const inventory::Entry* entry = inventory->Find(std::string(device));
    for (const Active& one : active) {
      if (one.change.Has(device)) return &one.change;
      const auto of_tree = [&](const inventory::Ancestor& ancestor) {
        return one.change.Has(ancestor.device);
      };
      if (entry != nullptr && std::ranges::any_of(entry->ancestors, of_tree)) return &one.change;
      for (const ChangedDevice& changed : one.change.devices) {
        const inventory::Entry* part = inventory->Find(changed.id);
        if (part != nullptr && part->IsPartOf(device)) return &one.change;
      }
    }
    return nullptr;
  }

  /// Fails if a device of the change is not there.
  base::Status Present(const DeviceChange& change) const {
    const auto inventory = node.inventory.published().Get();
    for (const ChangedDevice& device : change.devices) {
      if (inventory->Find(device.id) != nullptr) continue;
      const bool replaced =
          !device.address.empty() &&
          std::ranges::any_of(inventory->devices, [&](const inventory::Entry& entry) {
            return entry.health.state != device::HealthState::kGone &&
                   AddressOf(entry) == device.address;
          });
      if (replaced)
        return base::Error(base::Code::kAborted, device.id + " was replaced by another device");
      return base::Error(base::Code::kNotFound, device.id + " is not there");
    }
    return {};
  }

  /// Parts have the address of their device, and are identified by their id alone.
  static std::string AddressOf(const inventory::Entry& entry) {
    return entry.facts->pci && entry.facts->parent.empty() ? device::ToString(*entry.facts->pci)
                                                           : "";
  }

  // --- beginning

  void Adopt(ChangeKind& kind) {
    for (Active& one : active)
      if (one.change.kind == kind.name()) one.kind = &kind;
    Withdraw();
  }

  /// Continues the changes of the previous agent.
  void Continue() {
    std::erase_if(active, [&](Active& one) {
      if (const auto step = StepOf(one)) {
        if (!one.change.failure.empty())
          one.result = base::Error(base::Code::kAborted, one.change.failure);
        Enter(one, *step);
        return false;
      }
      base::Log(base::kWarn, "a change that this version does not know was abandoned",
                {{"kind", one.change.kind},
                 {"device", one.change.devices.front().id},
                 {"step", one.change.step}});
      return true;
    });
  }

  /// The step at which a change of the previous agent continues; nothing if it makes no sense.
  static std::optional<std::size_t> StepOf(const Active& one) {
    if (one.kind == nullptr) return std::nullopt;
    const auto& steps = one.kind->steps();
    const auto found = std::ranges::find(steps, one.change.step, &ChangeStep::name);
    if (found == steps.end() || (!one.change.failure.empty() && !found->finally))
      return std::nullopt;
    return static_cast<std::size_t>(found - steps.begin());
  }

  void Begin(ChangeKind& kind, DeviceChange change) {
    const auto inventory = node.inventory.published().Get();
    for (ChangedDevice& device : change.devices) {
      const inventory::Entry* entry = inventory->Find(device.id);
      if (entry == nullptr) return;
      device.address = AddressOf(*entry);
    }
    change.kind = kind.name();
    Active next{.change = std::move(change), .kind = &kind};
    const std::set<std::string> devices = Affected(next);
    for (const Active& one : active)
      for (const std::string& id : Affected(one))
        if (devices.contains(id)) return;
    for (const std::string& id : devices) next.allocators[id] = AllocatorOf(id);
    active.push_back(std::move(next));
    Enter(active.back(), 0);
  }

  /// A step that an earlier agent began counts as begun now.
  void Enter(Active& one, std::size_t step) {
    const ChangeStep& next = one.kind->steps()[step];
    one.step = step;
    one.taken = false;
    if (!one.change.taken_over) {
      one.change.step = next.name;
      one.change.since = control.clock().Wall();
    }
    one.change.waits_for.clear();
    one.entered = control.clock().Now();
    WakeAfter(next.most);
    if (next.recorded) WakeAfter(kJournalWritten);
  }

  void WakeAfter(base::Duration time) {
    if (time > base::Duration::zero())
      control.PostAfter(time, base::IfAlive(this, &State::Schedule));
  }

  // --- steps

  void Turn() {
    posted = false;
    if (!started) return;
    for (ChangeKind* kind : kinds)
      for (DeviceChange& change : kind->Due()) Begin(*kind, std::move(change));
    do { Withdraw(); } while (AdvanceAll());
    Withdraw();  // with what they wait for now
    Keep();
    AwaitKubelet();
    for (ChangeKind* kind : kinds) kind->Settled();
  }

  /// Whether a change made progress, which can let others make progress.
  bool AdvanceAll() {
    bool any = false;
    for (auto one = active.begin(); one != active.end();) {
      any |= Advance(*one);
      if (one->step < one->kind->steps().size()) {
        ++one;
        continue;
      }
      const Active ended = std::move(*one);
      one = active.erase(one);
      ended.kind->Ended(ended.change, ended.result);
      Schedule();  // a change that wanted one of its devices can begin
    }
    return any;
  }

  /// Takes the steps of one change that can be taken now. Returns whether a step ended.
  bool Advance(Active& one) {
    const auto& steps = one.kind->steps();
    bool any = false;
    while (one.step < steps.size()) {
      const StepResult taken = Take(one, steps[one.step]);
      if (taken.ok() && !taken->empty()) {
        one.change.waits_for = *taken;
        break;
      }
      any = true;
      if (!taken.ok() && one.result.ok()) {
        one.result = taken.error();
        one.change.failure = taken.error().message();
      }
      one.change.taken_over = false;
      do ++one.step;
      while (one.step < steps.size() && !one.result.ok() && !steps[one.step].finally);
      if (one.step < steps.size()) Enter(one, one.step);
    }
    return any;
  }

  StepResult Take(Active& one, const ChangeStep& step) {
    const bool began = step.recorded && (one.taken || one.change.taken_over);
    if (!step.finally && !began) TRY(Present(one.change));
    const base::Duration passed = control.clock().Now() - one.entered;
    if (step.recorded && !began) {
      Keep();
      if (!journal.IsWritten()) {
        const std::string why = "the journal of changes is not written yet" +
                                (journal.problem().empty() ? "" : ": " + journal.problem());
        if (passed < kJournalWritten) return why;
        return base::Error(base::Code::kUnavailable, why);
      }
    }
    one.taken = true;
    StepResult taken = step.take(one.change);
    if (!taken.ok() || taken->empty() || step.most == base::Duration::zero() || passed < step.most)
      return taken;
    return base::Error(base::Code::kDeadlineExceeded,
                       "the step \"" + std::string(step.name) + "\" did not end within " +
                           base::FormatDuration(step.most) + ": " + *taken);
  }

  // --- what others see

  void Withdraw() {
    share::Withdrawals now;
    for (const Active& one : active) {
      if (one.kind == nullptr) continue;
      for (const std::string& id : Affected(one))
        now[id] = {one.kind->Explain(one.change, id), !one.kind->hides_devices()};
      if (!one.kind->includes_parts()) continue;
      for (const ChangedDevice& device : one.change.devices) {
        now[device.id].with_parts = true;
        now[device.id].except = one.kind->KeptParts(one.change);
      }
    }
    if (now == withdrawn) return;
    withdrawn = now;
    node.offers.SetWithdrawals(std::move(now));
  }

  void Keep() {
    if (active.empty() && kept_none) return;
    kept_none = active.empty();
    std::vector<DeviceChange> changes;
    for (const Active& one : active) changes.push_back(one.change);
    std::string text = EncodeChanges(changes);
    if (text == kept) return;
    kept = std::move(text);
    journal.Keep(kept);
  }

  void AwaitKubelet() {
    std::set<std::string> ids;
    for (const Active& one : active)
      for (const std::string& id : Affected(one))
        if (FromKubelet(one, id)) ids.insert(id);
    kubelet.Await(ids);
  }

  /// Parts have an allocator of their own. That of a part that an earlier agent withdrew is
  /// unknown: then it may have been the kubelet.
  static bool FromKubelet(const Active& one, const std::string& id) {
    const auto device = std::ranges::find(one.change.devices, id, &ChangedDevice::id);
    const auto part = one.allocators.find(id);
    if (device == one.change.devices.end() && part == one.allocators.end()) return true;
    return api::FindAllocator(device == one.change.devices.end() ? part->second : device->allocator)
        .counts_itself;
  }

  std::string AllocatorOf(const std::string& id) const {
    const auto desired = node.offers.Desired();
    const auto found = desired->assignments.find(id);
    return found == desired->assignments.end() ? "" : found->second.allocator;
  }

  Active& ActiveOf(const DeviceChange& change) {
    return *std::ranges::find(active, &change, [](const Active& one) { return &one.change; });
  }

  /// The leases on devices of a change, as what it waits for; empty: there are none.
  std::string HeldBy(const Active& one) const {
    const auto ledger = node.ledger.Get();
    for (const std::string& id : Affected(one)) {
      const std::string holders = share::HoldersOf(*ledger, id).text;
      if (holders.empty()) continue;
      return (one.change.Has(id) ? "held by " : "its part " + id + " is held by ") + holders;
    }
    return "";
  }

  /// Likewise that the kubelet may still allocate such a device.
  std::string CountedBy(const Active& one) const {
    for (const std::string& id : Affected(one)) {
      if (!FromKubelet(one, id) || kubelet.HasTakenNote(id)) continue;
      return kubelet.problem().empty() ? "the kubelet still lists it as allocatable"
                                       : kubelet.problem();
    }
    return "";
  }

  StepResult AwaitUnused(const DeviceChange& change) {
    const Active& one = ActiveOf(change);
    std::string waits = HeldBy(one);
    return waits.empty() ? CountedBy(one) : waits;
  }

  StepResult AwaitHolders(const DeviceChange& change) {
    Active& one = ActiveOf(change);
    std::string waits = HeldBy(one);
    if (!waits.empty()) {
      one.unheld.reset();
      return waits;
    }
    waits = CountedBy(one);
    const base::TimePoint now = control.clock().Now();
    if (!one.unheld) {
      one.unheld = now;
      WakeAfter(kReleasedWithin);
    }
    if (waits.empty() || now - *one.unheld < kReleasedWithin) return waits;
    return base::Error(base::Code::kDeadlineExceeded,
                       "the kubelet did not acknowledge its withdrawal within " +
                           base::FormatDuration(kReleasedWithin) + " (" + waits +
                           "): make sure that the kubelet runs, and restart it if it does");
  }

  StepResult AwaitUnserved(const DeviceChange& change) {
    Active& one = ActiveOf(change);
    const auto servers = node.offers.Servers();
    const auto snapshot = node.inventory.published().Get();
    const std::set<std::string> ids = Affected(one);
    std::string waits;
    for (const std::string& id : ids) {
      const auto server = servers->find(id);
      if (server == servers->end()) continue;
      const std::set<pid_t> now = PidsOn(*snapshot, id);
      one.served.insert(now.begin(), now.end());
      waits = "the sharing server of " + server->second.set + " has not exited yet (" +
              std::to_string(server->second.clients) + " clients)";
    }
    if (!waits.empty()) return waits;
    // What the driver still listed when it was last asked would count as holders.
    for (const std::string& id : ids)
      for (const pid_t pid : PidsOn(*snapshot, id))
        if (one.served.contains(pid))
          return "a new reading of " + id + " is awaited, after its sharing server has exited";
    return std::string();
  }

  static std::set<pid_t> PidsOn(const inventory::Snapshot& snapshot, const std::string& id) {
    const inventory::Entry* entry = snapshot.Find(id);
    std::set<pid_t> pids;
    if (entry != nullptr && entry->reading != nullptr)
      for (const device::DeviceProcess& process : entry->reading->processes)
        pids.insert(process.pid);
    return pids;
  }

  base::Executor& control;
  const Node node;
  std::vector<ChangeKind*> kinds;
  std::list<Active> active;
  bool started = false, posted = false;
  share::Withdrawals withdrawn;
  std::string kept;  // the journal as given to the writer last
  bool kept_none = false;
  os::KeptFile journal;
  KubeletList kubelet;
};

DeviceChanges::DeviceChanges(base::Executor& control, base::Executor& io, Node node,
                             KubeletList::Ask ask, const std::string& path,
                             std::vector<DeviceChange> remembered)
    : state_(
          std::make_shared<State>(control, io, node, std::move(ask), path, std::move(remembered))) {
  state_->journal.OnWrite([state = state_.get()] { state->Schedule(); });
}

DeviceChanges::~DeviceChanges() { state_->journal.OnWrite(nullptr); }

void DeviceChanges::Add(ChangeKind& kind) {
  state_->kinds.push_back(&kind);
  state_->Adopt(kind);
}

void DeviceChanges::Start() {
  if (std::exchange(state_->started, true)) return;
  state_->Continue();
  state_->Schedule();
}

void DeviceChanges::Follow(const share::NodeDevices& now, const share::NodeDevices& before) {
  const auto awaits = [](const ChangeKind* kind) { return kind->AwaitsDevices(); };
  const bool new_facts = before.inventory == nullptr ||
                         now.inventory->facts_generation != before.inventory->facts_generation;
  if (new_facts || !state_->active.empty() || std::ranges::any_of(state_->kinds, awaits))
    state_->Schedule();
}

void DeviceChanges::Wake() { state_->Schedule(); }

const DeviceChange* DeviceChanges::Of(std::string_view device) const { return state_->Of(device); }

const DeviceChange* DeviceChanges::On(std::string_view device) const {
  for (const State::Active& one : state_->active)
    if (one.change.Has(device)) return &one.change;
  return nullptr;
}

const DeviceChange* DeviceChanges::OfKind(std::string_view kind, std::string_view device) const {
  for (const State::Active& one : state_->active)
    if (one.change.kind == kind && (device.empty() || one.change.Has(device))) return &one.change;
  return nullptr;
}

bool DeviceChanges::any() const { return !state_->active.empty(); }

bool DeviceChanges::AnyAt(std::string_view step) const {
  return std::ranges::any_of(state_->active,
                             [&](const State::Active& one) { return one.change.step == step; });
}

bool DeviceChanges::AnyUsesDriver(const std::set<std::string>& but_of) const {
  return std::ranges::any_of(state_->active, [&](const State::Active& one) {
    return one.kind != nullptr && one.step < one.kind->steps().size() &&
           one.kind->steps()[one.step].uses_driver &&
           std::ranges::none_of(one.change.devices, [&](const ChangedDevice& device) {
             return but_of.contains(device.id);
           });
  });
}

std::string DeviceChanges::AllocatorOf(const std::string& device) const {
  return state_->AllocatorOf(device);
}

ChangeStep DeviceChanges::Withdraw() {
  return {.name = "withdraw", .take = [](const DeviceChange&) { return std::string(); }};
}

std::shared_ptr<const device::SharedDevices> DeviceChanges::Servers() const {
  return state_->node.offers.Servers();
}

StepResult DeviceChanges::AwaitUnused(const DeviceChange& change) const {
  return state_->AwaitUnused(change);
}

StepResult DeviceChanges::AwaitHolders(const DeviceChange& change) const {
  return state_->AwaitHolders(change);
}

StepResult DeviceChanges::AwaitFree(const DeviceChange& change) const {
  auto waits = state_->AwaitUnused(change);
  return waits.ok() && waits->empty() ? state_->AwaitUnserved(change) : waits;
}

}  // namespace penstock::node::change
