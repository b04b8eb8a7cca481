// Level-triggered: Look compares the allocator that each device belongs to with the desired one,
// and takes the steps that are possible now.
#include "node/assign/device_moves.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/core/strings.h"
#include "base/log.h"
#include "node/assign/manual_assignments_writer.h"
#include "node/assign/move_requests.h"
#include "node/share/allocator_rules.h"
#include "node/share/describe.h"

namespace penstock::node::assign {

using base::Code;
using base::Error;
using base::Result;
using inventory::Entry;
using share::kKubeletAllocator;
using share::kLocalAllocator;

namespace {

constexpr base::Duration kInitialRetry = std::chrono::milliseconds(5);
constexpr base::Duration kMaxRetry = std::chrono::seconds(1);
constexpr char kNone[] = "none";

std::string NameOf(const std::string& allocator) { return allocator.empty() ? kNone : allocator; }
std::string AllocatorNamed(const std::string& name) { return name == kNone ? "" : name; }

}  // namespace

struct DeviceMoves::State : std::enable_shared_from_this<State> {
  /// A device's move to another allocator.
  struct Way {
    std::string to;
    bool acknowledged = false;  // by the kubelet, where the device comes from it
    std::uint64_t ask_from =
        0;  // the first question to the kubelet that was asked after the device was withdrawn
    std::string waits_for;
  };
  struct Device {
    std::string at;  // the allocator it belongs to; while it moves, the one that it left
    std::optional<Way> way;
  };

  State(base::Executor& c, base::Executor& i, Node n, share::EnabledAllocators o, Kubelet k,
        const std::string& path, ManualAssignments remembered)
      : control(c),
        node(n),
        open(o),
        kubelet(std::move(k)),
        manual(std::move(remembered)),
        keeper(c, i, path),
        allocator_of([](const inventory::Entry&) { return std::string(); }) {}

  // --- desired allocators

  std::string DesiredAllocator(const Entry& entry) const {
    const auto said = manual.find(entry.facts->id);
    return said != manual.end() && said->second.allocator ? AllocatorNamed(*said->second.allocator)
                                                          : allocator_of(entry);
  }

  void Configure(const api::NodeConfig& config) {
    allocator_of = share::AssignAllocators(config, open.kubelet, open.local);
    configured = true;
    Look();
  }

  // --- moves

  void LookSoon() {
    if (std::exchange(look_posted, true)) return;
    control.Post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Look();
    });
  }

  void Look() {
    look_posted = false;
    if (!configured) return;
    const auto inventory = node.inventory.published().Get();
    const auto ledger = node.ledger.Get();
    TurnBackWhoWaitedTooLong(*inventory, *ledger);
    bool has_waiters = false;
    for (const auto& entry : inventory->devices) {
      const share::DeviceHolders holders = share::HoldersOf(*ledger, entry.facts->id);
      Step(entry, holders);
      has_waiters |= holders.of_kubelet && HasDeadline(entry.facts->id);
    }
    for (auto& [id, device] : devices)
      if (device.way && inventory->Find(id) == nullptr) device = {};  // another device replaced it
    Publish();
    Notify(orders.Update([&](const DeviceMove& before) { return NowOf(before, *inventory); }));
    AskKubelet();
    if (kubelet.await_releases && std::exchange(awaiting, has_waiters) != has_waiters)
      kubelet.await_releases(has_waiters);
  }

  void Step(const Entry& entry, const share::DeviceHolders& holders) {
    const device::Facts& facts = *entry.facts;
    const std::string desired = DesiredAllocator(entry);
    const auto [at, is_new] = devices.try_emplace(facts.id, Device{desired, {}});
    Device& device = at->second;
    if (is_new) Resume(facts.id, device, desired);
    if (!device.way && device.at != desired) Withdraw(facts, device, desired);
    if (!device.way) return;
    device.way->to = desired;
    if (desired == device.at) return Arrive(facts, device);  // not offered elsewhere meanwhile
    const bool asks = device.at == kKubeletAllocator && kubelet.ask_counted != nullptr;
    if (!holders.text.empty()) {
      device.way->waits_for = "held by " + holders.text;
    } else if (asks && !device.way->acknowledged) {
      device.way->waits_for =
          kubelet_silence.empty() ? "the kubelet still lists it as allocatable" : kubelet_silence;
    } else {
      Arrive(facts, device);
    }
  }

  /// The device was moving when the previous agent ended.
  void Resume(const std::string& id, Device& device, const std::string& desired) {
    const auto said = manual.find(id);
    if (said == manual.end() || !said->second.way) return;
    device.at = said->second.way->from;
    if (said->second.way->until) SetDeadline(id, *said->second.way->until - control.clock().Wall());
    if (device.at == desired) EndWay(id);
  }

  void Withdraw(const device::Facts& facts, Device& device, const std::string& to) {
    device.way = Way{.to = to, .ask_from = asked + 1};
    base::Log(base::kInfo, "device withdrawn",
              {{"device", facts.id}, {"from", NameOf(device.at)}, {"to", NameOf(to)}});
    // Ask now, even where the back-off of an earlier question has grown.
    ask_again = kInitialRetry;
    if (!asking) control.Cancel(std::exchange(ask_timer, 0));
  }

  void Arrive(const device::Facts& facts, Device& device) {
    base::Log(base::kInfo,
              device.at == device.way->to ? "device keeps its allocator" : "device assigned",
              {{"device", facts.id}, {"from", NameOf(device.at)}, {"to", NameOf(device.way->to)}});
    device.at = device.way->to;
    device.way.reset();
    EndWay(facts.id);
  }

  void EndWay(const std::string& id) {
    const auto said = manual.find(id);
    if (said == manual.end()) return;
    said->second.way.reset();
    if (!said->second.allocator) manual.erase(said);
    keeper.Keep(manual);
  }

  /// Publishes every known device, also those that are where the configuration wants them: a
  /// subscriber that learns of a new configuration before Look has run would otherwise offer a
  /// device through its new allocator at once.
  void Publish() {
    share::Moves moves;
    for (const auto& [id, said] : manual) {
      if (said.allocator) moves[id] = {AllocatorNamed(*said.allocator), ""};
      if (said.way) moves[id] = {"", "being moved to another allocator"};
    }
    for (const auto& [id, device] : devices) {
      moves[id] = {device.at, ""};
      if (device.way)
        moves[id] = {"", "being moved to " + share::DescribeAllocator(device.way->to) + ": " +
                             device.way->waits_for};
    }
    if (moves == published) return;
    published = moves;
    node.offers.SetMoves(std::move(moves));
  }

  // --- the kubelet's acknowledgement

  bool KubeletIsAwaited() const {
    return kubelet.ask_counted != nullptr &&
           std::any_of(devices.begin(), devices.end(), [](const auto& one) {
             return one.second.way && one.second.at == kKubeletAllocator &&
                    !one.second.way->acknowledged;
           });
  }

  void AskKubelet() {
    if (asking || ask_timer != 0 || !KubeletIsAwaited()) return;
    ask_timer = control.PostAfter(ask_again, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->AskNow();
    });
    ask_again = std::min(ask_again * 2, kMaxRetry);
  }

  void AskNow() {
    ask_timer = 0;
    asking = true;
    kubelet.ask_counted(
        [weak = weak_from_this(), number = ++asked](const Result<std::set<std::string>>& counted) {
          if (const auto self = weak.lock()) self->Answered(number, counted);
        });
  }

  void Answered(std::uint64_t number, const Result<std::set<std::string>>& counted) {
    asking = false;
    kubelet_silence = counted.ok() ? ""
                                   : "cannot read the kubelet's allocatable devices (" +
                                         counted.error().message() + ")";
    for (auto& [id, device] : devices)
      if (counted.ok() && device.way && number >= device.way->ask_from && !counted->contains(id))
        device.way->acknowledged = true;
    LookSoon();
  }

  // --- requests of users

  bool HasDeadline(const std::string& id) const {
    const auto said = manual.find(id);
    return said != manual.end() && said->second.way && said->second.way->until;
  }

  /// Uses the monotonic clock, which cannot be set. The file has wall-clock time, because only
  /// that is valid after a reboot.
  void SetDeadline(const std::string& id, base::Duration left) {
    left = std::max(left, base::Duration::zero());
    deadlines[id] = control.clock().Now() + left;
    control.PostAfter(left, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Look();
    });
  }

  void TurnBackWhoWaitedTooLong(const inventory::Snapshot& inventory,
                                const ledger::Snapshot& ledger) {
    const base::TimePoint now = control.clock().Now();
    for (auto& [id, said] : manual) {
      const auto device = devices.find(id);
      const auto deadline = deadlines.find(id);
      if (device == devices.end() || !device->second.way || !HasDeadline(id) ||
          deadline == deadlines.end() || deadline->second > now)
        continue;
      const std::string holders = share::HoldersOf(ledger, id).text;
      if (holders.empty()) continue;  // the kubelet's acknowledgement is missing, but will come
      const auto* entry = inventory.Find(id);
      const std::string sentence = (entry != nullptr ? share::Describe(*entry->facts) : id) +
                                   " is still held by " + holders + " and stays assigned to " +
                                   share::DescribeAllocator(device->second.at);
      base::Log(base::kWarn, "device not released in time", {{"device", id}, {"why", sentence}});
      said.allocator = said.way->back;
      said.way->until.reset();
      orders.TimedOut(id, sentence);
    }
  }

  /// The device by id or index; null where there is none.
  static const Entry* FindNamed(const inventory::Snapshot& inventory, const std::string& name) {
    const auto found =
        std::find_if(inventory.devices.begin(), inventory.devices.end(), [&](const auto& entry) {
          return entry.facts->id == name ||
                 (entry.facts->index >= 0 && base::ParseInt(name) == entry.facts->index);
        });
    return found == inventory.devices.end() ? nullptr : &*found;
  }

  Result<std::vector<const Entry*>> Named(const MoveRequest& request,
                                          const inventory::Snapshot& inventory) const {
    const std::string allocator = request.allocator;
    if ((allocator == kKubeletAllocator && !open.kubelet) ||
        (allocator == kLocalAllocator && !open.local))
      return Error(Code::kFailedPrecondition, share::DescribeAllocator(allocator) +
                                                  " cannot get devices: allocators." + allocator +
                                                  ".enabled is off (see `penstock status`)");
    std::vector<const Entry*> named;
    for (const std::string& name : request.devices) {
      const Entry* entry = FindNamed(inventory, name);
      if (entry == nullptr)
        return Error(Code::kNotFound,
                     "there is no device " + name + " on this node (see `penstock status`)");
      if (std::find(named.begin(), named.end(), entry) != named.end())
        return Error(Code::kInvalidArgument, "device " + name + " is named twice");
      named.push_back(entry);
    }
    return named;
  }

  /// What would be done with a device: "unchanged" or "would-move", with its holders.
  DeviceMove Intended(const MoveRequest& request, const Entry& entry,
                      const ledger::Snapshot& ledger) const {
    const device::Facts& facts = *entry.facts;
    const auto known = devices.find(facts.id);
    const std::string from = known == devices.end() ? DesiredAllocator(entry) : known->second.at;
    const std::string to =
        request.allocator == "default" ? allocator_of(entry) : AllocatorNamed(request.allocator);
    const bool under_way = known != devices.end() && known->second.way;
    DeviceMove move{facts.id,
                    facts.index,
                    NameOf(from),
                    NameOf(to),
                    from == to && !under_way ? "unchanged" : "would-move",
                    ""};
    if (move.state == "unchanged") return move;
    if (const std::string holders = share::HoldersOf(ledger, facts.id).text; !holders.empty())
      move.reason = "held by " + holders;
    return move;
  }

  void Set(const MoveRequest& request, Progress progress, Done done) {
    const auto inventory = node.inventory.published().Get();
    const auto named = Named(request, *inventory);
    if (!named.ok()) return done(named.error());
    const auto ledger = node.ledger.Get();
    std::vector<DeviceMove> intended;
    for (const Entry* entry : *named) intended.push_back(Intended(request, *entry, *ledger));
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
    for (const DeviceMove& move : intended) Say(move, request.allocator, until);
    if (until)
      for (const DeviceMove& move : intended) SetDeadline(move.device, *request.wait);
    keeper.Keep(manual);
    Notify(orders.Begin(intended, std::move(progress), std::move(done)));
    Look();
  }

  void Say(const DeviceMove& move, const std::string& allocator,
           std::optional<base::WallTime> until) {
    const auto [at, is_new] = manual.try_emplace(move.device);
    ManualAssignment& said = at->second;
    const std::optional<std::string> back = said.way ? said.way->back : said.allocator;
    said.allocator = allocator == "default" ? std::nullopt : std::optional(allocator);
    said.way.reset();
    if (move.state != "unchanged")
      said.way =
          ManualAssignment::Way{.from = AllocatorNamed(move.from), .back = back, .until = until};
    if (!said.allocator && !said.way) manual.erase(at);
  }

  DeviceMove NowOf(const DeviceMove& before, const inventory::Snapshot& inventory) const {
    DeviceMove now = before;
    const auto device = devices.find(before.device);
    if (device == devices.end() || before.state == "unchanged") return now;
    now.reason.clear();
    if (device->second.way) {
      now.state = "waiting";
      now.reason = device->second.way->waits_for;
      return now;
    }
    now.to = NameOf(device->second.at);
    now.state = now.to == now.from ? "unchanged" : now.to == kNone ? "acknowledged" : "offered";
    if (const auto* entry = inventory.Find(before.device)) now.reason = entry->facts->withheld;
    return now;
  }

  /// Posted to the executor, because a callback may make another request immediately.
  void Notify(MoveRequests::Notifications notifications) {
    if (notifications.empty()) return;
    control.Post([weak = weak_from_this(), notifications = std::move(notifications)] {
      if (const auto self = weak.lock())
        for (const auto& notify : notifications) notify();
    });
  }

  base::Executor& control;
  const Node node;
  const share::EnabledAllocators open;
  const Kubelet kubelet;
  ManualAssignments manual;
  ManualAssignmentsWriter keeper;
  share::AllocatorOf allocator_of;
  std::map<std::string, base::TimePoint>
      deadlines;  // of moving devices that have a deadline in by_hand
  bool configured = false, look_posted = false, awaiting = false;
  std::map<std::string, Device> devices;  // by id
  share::Moves published;
  MoveRequests orders;
  std::uint64_t asked = 0;      // number of questions to the kubelet so far
  bool asking = false;          // a question is not answered yet
  base::TimerId ask_timer = 0;  // of the next question
  base::Duration ask_again = kInitialRetry;
  std::string kubelet_silence;
  std::uint64_t facts_generation = 0;
  base::Subscription on_inventory, on_ledger;
};

DeviceMoves::DeviceMoves(base::Executor& control, base::Executor& io, Node node,
                         share::EnabledAllocators open, Kubelet kubelet, const std::string& path,
                         ManualAssignments remembered)
    : state_(std::make_shared<State>(control, io, node, open, std::move(kubelet), path,
                                     std::move(remembered))) {
  State* state = state_.get();
  state->on_inventory = node.inventory.published().Subscribe([state](const auto& snapshot) {
    if (std::exchange(state->facts_generation, snapshot->facts_generation) !=
        snapshot->facts_generation)
      state->LookSoon();
  });
  state->on_ledger = node.ledger.published().Subscribe([state](const auto&) {
    const auto on_its_way = [](const auto& one) { return one.second.way.has_value(); };
    if (std::any_of(state->devices.begin(), state->devices.end(), on_its_way)) state->LookSoon();
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
  for (const auto& [id, said] : state_->manual)
    if (said.allocator) moves[id] = {AllocatorNamed(*said.allocator), ""};
  return moves;
}

}  // namespace penstock::node::assign
