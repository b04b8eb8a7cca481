// Level-triggered: Reconcile compares the allocator that each device belongs to with the desired
// one, and takes the steps that are possible now.
#include "node/assign/device_moves.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/core/strings.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "node/assign/manual_assignments.h"
#include "node/share/allocator.h"
#include "node/share/describe.h"
#include "os/kept_file.h"

namespace penstock::node::assign {

using inventory::Entry;

namespace {

constexpr base::Duration kInitialRetry = std::chrono::milliseconds(5);
constexpr base::Duration kMaxRetry = std::chrono::seconds(1);
constexpr char kNone[] = "none";

std::string NameOf(const std::string& allocator) { return allocator.empty() ? kNone : allocator; }
std::string FromName(const std::string& name) { return name == kNone ? "" : name; }

}  // namespace

struct DeviceMoves::State : std::enable_shared_from_this<State> {
  /// A device's move to another allocator.
  struct Transfer {
    std::string to;
    bool acknowledged = false;  // by the kubelet, where the device comes from it
    std::uint64_t first_query =
        0;  // the first question to the kubelet that was asked after the device was withdrawn
    std::string waits_for;
  };
  struct Device {
    std::string at;  // the allocator it belongs to; while it moves, the one that it left
    std::optional<Transfer> transfer;
  };

  State(base::Executor& c, base::Executor& i, Node n, share::EnabledAllocators o, Kubelet k,
        const std::string& path, ManualAssignments remembered)
      : control(c),
        node(n),
        enabled(o),
        kubelet(std::move(k)),
        manual(std::move(remembered)),
        writer(c, i, path, "cannot write manual assignments; a restart would lose them"),
        allocator_of([](const inventory::Entry&) { return std::string(); }) {}

  // --- desired allocators

  std::string DesiredAllocator(const Entry& entry) const {
    const auto found = manual.find(entry.facts->id);
    return found != manual.end() && found->second.allocator ? FromName(*found->second.allocator)
                                                            : allocator_of(entry);
  }

  void Configure(const api::NodeConfig& config) {
    allocator_of = share::AssignAllocators(config, enabled);
    configured = true;
    Reconcile();
  }

  // --- moves

  void Schedule() {
    if (std::exchange(reconcile_posted, true)) return;
    control.Post(base::IfAlive(this, &State::Reconcile));
  }

  void Reconcile() {
    reconcile_posted = false;
    if (!configured) return;
    const auto inventory = node.inventory.published().Get();
    const auto ledger = node.ledger.Get();
    RevertExpired(*inventory, *ledger);
    bool has_waiters = false;
    for (const auto& entry : inventory->devices) {
      const share::DeviceHolders holders = share::HoldersOf(*ledger, entry.facts->id);
      Step(entry, holders);
      has_waiters |= holders.counted && HasDeadline(entry.facts->id);
    }
    for (auto& [id, device] : devices)
      if (device.transfer && inventory->Find(id) == nullptr) device = {};  // it was replaced
    Publish();
    Notify(requests.Update([&](const DeviceMove& before) { return MoveNow(before, *inventory); }));
    QueryKubelet();
    if (kubelet.await_releases && std::exchange(awaiting, has_waiters) != has_waiters)
      kubelet.await_releases(has_waiters);
  }

  void Step(const Entry& entry, const share::DeviceHolders& holders) {
    const device::Facts& facts = *entry.facts;
    const std::string desired = DesiredAllocator(entry);
    const auto [at, is_new] = devices.try_emplace(facts.id, Device{desired, {}});
    Device& device = at->second;
    if (is_new) Resume(facts.id, device, desired);
    if (!device.transfer && device.at != desired) Withdraw(facts, device, desired);
    if (!device.transfer) return;
    device.transfer->to = desired;
    if (desired == device.at) return Arrive(facts, device);  // not offered elsewhere meanwhile
    const bool from_kubelet =
        share::FindAllocator(device.at).counts_itself && kubelet.ask_counted != nullptr;
    if (!holders.text.empty()) {
      device.transfer->waits_for = "held by " + holders.text;
    } else if (from_kubelet && !device.transfer->acknowledged) {
      device.transfer->waits_for =
          kubelet_error.empty() ? "the kubelet still lists it as allocatable" : kubelet_error;
    } else {
      Arrive(facts, device);
    }
  }

  /// The device was moving when the previous agent ended.
  void Resume(const std::string& id, Device& device, const std::string& desired) {
    const auto found = manual.find(id);
    if (found == manual.end() || !found->second.transfer) return;
    device.at = found->second.transfer->from;
    if (found->second.transfer->until)
      SetDeadline(id, *found->second.transfer->until - control.clock().Wall());
    if (device.at == desired) EndTransfer(id);
  }

  void Withdraw(const device::Facts& facts, Device& device, const std::string& to) {
    device.transfer = Transfer{.to = to, .first_query = queries + 1};
    base::Log(base::kInfo, "device withdrawn",
              {{"device", facts.id}, {"from", NameOf(device.at)}, {"to", NameOf(to)}});
    // Ask now, even where the back-off of an earlier question has grown.
    retry_after = kInitialRetry;
    if (!query_pending) control.Cancel(std::exchange(query_timer, 0));
  }

  void Arrive(const device::Facts& facts, Device& device) {
    base::Log(
        base::kInfo,
        device.at == device.transfer->to ? "device keeps its allocator" : "device assigned",
        {{"device", facts.id}, {"from", NameOf(device.at)}, {"to", NameOf(device.transfer->to)}});
    device.at = device.transfer->to;
    device.transfer.reset();
    EndTransfer(facts.id);
  }

  void EndTransfer(const std::string& id) {
    const auto found = manual.find(id);
    if (found == manual.end()) return;
    found->second.transfer.reset();
    if (!found->second.allocator) manual.erase(found);
    writer.Keep(EncodeManualAssignments(manual));
  }

  /// Publishes every known device, also those that are where the configuration wants them: a
  /// subscriber that learns of a new configuration before Reconcile has run would otherwise offer a
  /// device through its new allocator at once.
  void Publish() {
    share::Moves moves;
    for (const auto& [id, assignment] : manual) {
      if (assignment.allocator) moves[id] = {FromName(*assignment.allocator), ""};
      if (assignment.transfer) moves[id] = {"", "being moved to another allocator"};
    }
    for (const auto& [id, device] : devices) {
      moves[id] = {device.at, ""};
      if (device.transfer)
        moves[id] = {"", "being moved to " + share::DescribeAllocator(device.transfer->to) + ": " +
                             device.transfer->waits_for};
    }
    if (moves == published) return;
    published = moves;
    node.offers.SetMoves(std::move(moves));
  }

  // --- the kubelet's acknowledgement

  bool KubeletIsAwaited() const {
    return kubelet.ask_counted != nullptr && std::ranges::any_of(devices, [](const auto& one) {
             return one.second.transfer && share::FindAllocator(one.second.at).counts_itself &&
                    !one.second.transfer->acknowledged;
           });
  }

  void QueryKubelet() {
    if (query_pending || query_timer != 0 || !KubeletIsAwaited()) return;
    query_timer = control.PostAfter(retry_after, base::IfAlive(this, &State::SendQuery));
    retry_after = std::min(retry_after * 2, kMaxRetry);
  }

  void SendQuery() {
    query_timer = 0;
    query_pending = true;
    kubelet.ask_counted([weak = weak_from_this(),
                         number = ++queries](const Result<std::set<std::string>>& counted) {
      if (const auto self = weak.lock()) self->HandleAnswer(number, counted);
    });
  }

  void HandleAnswer(std::uint64_t number, const Result<std::set<std::string>>& counted) {
    query_pending = false;
    kubelet_error = counted.ok() ? ""
                                 : "cannot read the kubelet's allocatable devices (" +
                                       counted.error().message() + ")";
    for (auto& [id, device] : devices)
      if (counted.ok() && device.transfer && number >= device.transfer->first_query &&
          !counted->contains(id))
        device.transfer->acknowledged = true;
    Schedule();
  }

  // --- requests of users

  bool HasDeadline(const std::string& id) const {
    const auto found = manual.find(id);
    return found != manual.end() && found->second.transfer && found->second.transfer->until;
  }

  /// Uses the monotonic clock, which cannot be set. The file has wall-clock time, because only
  /// that is valid after a reboot.
  void SetDeadline(const std::string& id, base::Duration left) {
    left = std::max(left, base::Duration::zero());
    deadlines[id] = control.clock().Now() + left;
    control.PostAfter(left, base::IfAlive(this, &State::Reconcile));
  }

  void RevertExpired(const inventory::Snapshot& inventory, const ledger::Snapshot& ledger) {
    const base::TimePoint now = control.clock().Now();
    for (auto& [id, assignment] : manual) {
      const auto device = devices.find(id);
      const auto deadline = deadlines.find(id);
      if (device == devices.end() || !device->second.transfer || !HasDeadline(id) ||
          deadline == deadlines.end() || deadline->second > now)
        continue;
      const std::string holders = share::HoldersOf(ledger, id).text;
      if (holders.empty()) continue;  // the kubelet's acknowledgement is missing, but will come
      const auto* entry = inventory.Find(id);
      const std::string sentence = (entry != nullptr ? share::Describe(*entry->facts) : id) +
                                   " is still held by " + holders + " and stays assigned to " +
                                   share::DescribeAllocator(device->second.at);
      base::Log(base::kWarn, "device not released in time", {{"device", id}, {"why", sentence}});
      assignment.allocator = assignment.transfer->back;
      assignment.transfer->until.reset();
      requests.TimedOut(id, sentence);
    }
  }

  /// The device by id or index; null where there is none.
  static const Entry* FindNamed(const inventory::Snapshot& inventory, const std::string& name) {
    const auto found = std::ranges::find_if(inventory.devices, [&](const auto& entry) {
      return entry.facts->id == name ||
             (entry.facts->index >= 0 && base::ParseInt(name) == entry.facts->index);
    });
    return found == inventory.devices.end() ? nullptr : &*found;
  }

  Result<std::vector<const Entry*>> FindDevices(const MoveRequest& request,
                                                const inventory::Snapshot& inventory) const {
    const std::string allocator = request.allocator;
    if (!share::FindAllocator(allocator).name.empty() && !enabled.contains(allocator))
      return Error(Code::kFailedPrecondition,
                   share::DescribeAllocator(allocator) +
                       " cannot get devices: the allocator is closed (see "
                       "`penstock status`)");
    std::vector<const Entry*> named;
    for (const std::string& name : request.devices) {
      const Entry* entry = FindNamed(inventory, name);
      if (entry == nullptr)
        return Error(Code::kNotFound,
                     "there is no device " + name + " on this node (see `penstock status`)");
      if (std::ranges::find(named, entry) != named.end())
        return Error(Code::kInvalidArgument, "device " + name + " is named twice");
      named.push_back(entry);
    }
    return named;
  }

  /// What would be done with a device: "unchanged" or "would-move", with its holders.
  DeviceMove PlanMove(const MoveRequest& request, const Entry& entry,
                      const ledger::Snapshot& ledger) const {
    const device::Facts& facts = *entry.facts;
    const auto known = devices.find(facts.id);
    const std::string from = known == devices.end() ? DesiredAllocator(entry) : known->second.at;
    const std::string to =
        request.allocator == "default" ? allocator_of(entry) : FromName(request.allocator);
    const bool moving = known != devices.end() && known->second.transfer;
    DeviceMove move{facts.id,
                    facts.index,
                    NameOf(from),
                    NameOf(to),
                    from == to && !moving ? "unchanged" : "would-move",
                    ""};
    if (move.state == "unchanged") return move;
    if (const std::string holders = share::HoldersOf(ledger, facts.id).text; !holders.empty())
      move.reason = "held by " + holders;
    return move;
  }

  void Set(const MoveRequest& request, Progress progress, Done done) {
    const auto inventory = node.inventory.published().Get();
    const auto named = FindDevices(request, *inventory);
    if (!named.ok()) return done(named.error());
    const auto ledger = node.ledger.Get();
    std::vector<DeviceMove> intended;
    for (const Entry* entry : *named) intended.push_back(PlanMove(request, *entry, *ledger));
    if (request.dry_run) return done(std::move(intended));
    const bool waits = request.wait && *request.wait > base::Duration::zero();
    for (std::size_t i = 0; i < intended.size(); ++i)
      if (!waits && !intended[i].reason.empty() && intended[i].from != intended[i].to)
        return done(Error(Code::kFailedPrecondition,
                          share::Describe(*(*named)[i]->facts) + " is " + intended[i].reason +
                              ": stop the holder first, or wait with --wait"));
    Begin(request, intended, waits, std::move(progress), std::move(done));
  }

  void Begin(const MoveRequest& request, const std::vector<DeviceMove>& intended, bool waits,
             Progress progress, Done done) {
    std::optional<base::WallTime> until;
    if (waits)
      until = control.clock().Wall() +
              std::chrono::duration_cast<base::WallTime::duration>(*request.wait);
    for (const DeviceMove& move : intended) SetManual(move, request.allocator, until);
    if (until)
      for (const DeviceMove& move : intended) SetDeadline(move.device, *request.wait);
    writer.Keep(EncodeManualAssignments(manual));
    Notify(requests.Begin(intended, std::move(progress), std::move(done)));
    Reconcile();
  }

  void SetManual(const DeviceMove& move, const std::string& allocator,
                 std::optional<base::WallTime> until) {
    const auto [at, is_new] = manual.try_emplace(move.device);
    ManualAssignment& assignment = at->second;
    const std::optional<std::string> back =
        assignment.transfer ? assignment.transfer->back : assignment.allocator;
    assignment.allocator = allocator == "default" ? std::nullopt : std::optional(allocator);
    assignment.transfer.reset();
    if (move.state != "unchanged")
      assignment.transfer =
          ManualAssignment::Transfer{.from = FromName(move.from), .back = back, .until = until};
    if (!assignment.allocator && !assignment.transfer) manual.erase(at);
  }

  DeviceMove MoveNow(const DeviceMove& before, const inventory::Snapshot& inventory) const {
    DeviceMove now = before;
    const auto device = devices.find(before.device);
    if (device == devices.end() || before.state == "unchanged") return now;
    now.reason.clear();
    if (device->second.transfer) {
      now.state = "waiting";
      now.reason = device->second.transfer->waits_for;
      return now;
    }
    now.to = NameOf(device->second.at);
    now.state = now.to == now.from ? "unchanged" : now.to == kNone ? "acknowledged" : "offered";
    if (const auto* entry = inventory.Find(before.device)) now.reason = entry->withheld;
    return now;
  }

  /// Posted to the executor, because a callback may make another request immediately.
  void Notify(MoveRequests::Notifications notifications) {
    if (notifications.empty()) return;
    control.Post(base::IfAlive(this, [notifications = std::move(notifications)](State&) {
      for (const auto& notify : notifications) notify();
    }));
  }

  base::Executor& control;
  const Node node;
  const share::EnabledAllocators enabled;
  const Kubelet kubelet;
  ManualAssignments manual;
  os::KeptFile writer;
  share::AllocatorOf allocator_of;
  std::map<std::string, base::TimePoint>
      deadlines;  // of moving devices that have a deadline in `manual`
  bool configured = false, reconcile_posted = false, awaiting = false;
  std::map<std::string, Device> devices;  // by id
  share::Moves published;
  MoveRequests requests;
  std::uint64_t queries = 0;      // number of questions to the kubelet so far
  bool query_pending = false;     // a question is not answered yet
  base::TimerId query_timer = 0;  // of the next question
  base::Duration retry_after = kInitialRetry;
  std::string kubelet_error;
  std::uint64_t facts_generation = 0;
  base::Subscription on_inventory, on_ledger;
};

DeviceMoves::DeviceMoves(base::Executor& control, base::Executor& io, Node node,
                         share::EnabledAllocators enabled, Kubelet kubelet, const std::string& path,
                         ManualAssignments remembered)
    : state_(std::make_shared<State>(control, io, node, enabled, std::move(kubelet), path,
                                     std::move(remembered))) {
  State* state = state_.get();
  state->on_inventory = node.inventory.published().Subscribe([state](const auto& snapshot) {
    if (std::exchange(state->facts_generation, snapshot->facts_generation) !=
        snapshot->facts_generation)
      state->Schedule();
  });
  state->on_ledger = node.ledger.published().Subscribe([state](const auto&) {
    const auto moving = [](const auto& one) { return one.second.transfer.has_value(); };
    if (std::ranges::any_of(state->devices, moving)) state->Schedule();
  });
}

DeviceMoves::~DeviceMoves() {
  state_->on_inventory.Reset();
  state_->on_ledger.Reset();
}

void DeviceMoves::Configure(const api::NodeConfig& config) { state_->Configure(config); }

void DeviceMoves::Set(const MoveRequest& request, Progress progress, Done done) {
  state_->Set(request, std::move(progress), std::move(done));
}

share::Moves DeviceMoves::manual() const {
  share::Moves moves;
  for (const auto& [id, assignment] : state_->manual)
    if (assignment.allocator) moves[id] = {FromName(*assignment.allocator), ""};
  return moves;
}

}  // namespace penstock::node::assign
