// Level-triggered: Look compares where each device is with where it is wished, and takes the steps that can be taken now.
#include "door/moves.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/core/strings.h"
#include "base/log.h"
#include "door/doors_keeper.h"
#include "door/move_orders.h"
#include "door/words.h"
#include "node/share/assign.h"

namespace penstock::door {

using base::Code;
using base::Error;
using base::Result;
using edge::broker::DeviceMove;
using edge::broker::DoorRequest;
using node::inventory::Entry;
using node::share::kKubeletDoor;
using node::share::kLocalDoor;

namespace {

constexpr base::Duration kAskFirst = std::chrono::milliseconds(5);
constexpr base::Duration kAskMost = std::chrono::seconds(1);
constexpr char kNone[] = "none";

std::string NameOf(const std::string& door) { return door.empty() ? kNone : door; }
std::string DoorNamed(const std::string& name) { return name == kNone ? "" : name; }

}  // namespace

struct DoorMoves::State : std::enable_shared_from_this<State> {
  /// A device on its way.
  struct Way {
    std::string to;
    bool acknowledged = false;   // by the kubelet, where it comes from there
    std::uint64_t ask_from = 0;  // the first question to the kubelet that was asked after it was withdrawn
    std::string waits_for;
  };
  struct Device {
    std::string at;  // the door it belongs to; while it is on its way, the one that it left
    std::optional<Way> way;
  };

  State(base::Executor& c, base::Executor& i, Node n, node::share::OpenDoors o, Kubelet k, const std::string& path,
        DevicesByHand remembered)
      : control(c),
        node(n),
        open(o),
        kubelet(std::move(k)),
        by_hand(std::move(remembered)),
        keeper(c, i, path),
        door_of([](const node::inventory::Entry&) { return std::string(); }) {}

  // --- what is wished

  std::string WishedDoor(const Entry& entry) const {
    const auto said = by_hand.find(entry.facts->id);
    return said != by_hand.end() && said->second.door ? DoorNamed(*said->second.door) : door_of(entry);
  }

  void Configure(const api::NodeConfig& config) {
    door_of = node::share::AssignDoors(config, open.kubelet, open.local);
    configured = true;
    Look();
  }

  // --- the way of a device

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
    bool somebody_waits = false;
    for (const auto& entry : inventory->devices) {
      const Holders holders = HoldersOf(*ledger, entry.facts->id);
      Step(entry, holders);
      somebody_waits |= holders.of_kubelet && HasDeadline(entry.facts->id);
    }
    for (auto& [id, device] : devices)
      if (device.way && inventory->Find(id) == nullptr) device = {};  // another device took its place
    Publish();
    Tell(orders.Update([&](const DeviceMove& before) { return NowOf(before, *inventory); }));
    AskKubelet();
    if (kubelet.await_releases && std::exchange(awaiting, somebody_waits) != somebody_waits) kubelet.await_releases(somebody_waits);
  }

  void Step(const Entry& entry, const Holders& holders) {
    const device::Facts& facts = *entry.facts;
    const std::string wished = WishedDoor(entry);
    const auto [at, is_new] = devices.try_emplace(facts.id, Device{wished, {}});
    Device& device = at->second;
    if (is_new) Resume(facts.id, device, wished);
    if (!device.way && device.at != wished) Withdraw(facts, device, wished);
    if (!device.way) return;
    device.way->to = wished;
    if (wished == device.at) return Arrive(facts, device);  // nobody else had it
    const bool asks = device.at == kKubeletDoor && kubelet.ask_counted != nullptr;
    if (!holders.text.empty()) {
      device.way->waits_for = "held by " + holders.text;
    } else if (asks && !device.way->acknowledged) {
      device.way->waits_for = kubelet_silence.empty() ? "the kubelet still counts it" : kubelet_silence;
    } else {
      Arrive(facts, device);
    }
  }

  /// It was on its way when the agent before us ended.
  void Resume(const std::string& id, Device& device, const std::string& wished) {
    const auto said = by_hand.find(id);
    if (said == by_hand.end() || !said->second.way) return;
    device.at = said->second.way->from;
    if (said->second.way->until) SetDeadline(id, *said->second.way->until - control.clock().Wall());
    if (device.at == wished) EndWay(id);
  }

  void Withdraw(const device::Facts& facts, Device& device, const std::string& to) {
    device.way = Way{.to = to, .ask_from = asked + 1};
    base::Log(base::kInfo, "a device is withdrawn", {{"device", facts.id}, {"from", NameOf(device.at)}, {"to", NameOf(to)}});
    // Now, however long the kubelet has let an earlier one wait.
    ask_again = kAskFirst;
    if (!asking) control.Cancel(std::exchange(ask_timer, 0));
  }

  void Arrive(const device::Facts& facts, Device& device) {
    base::Log(base::kInfo, device.at == device.way->to ? "a device stays at its door" : "a device changed doors",
              {{"device", facts.id}, {"from", NameOf(device.at)}, {"to", NameOf(device.way->to)}});
    device.at = device.way->to;
    device.way.reset();
    EndWay(facts.id);
  }

  void EndWay(const std::string& id) {
    const auto said = by_hand.find(id);
    if (said == by_hand.end()) return;
    said->second.way.reset();
    if (!said->second.door) by_hand.erase(said);
    keeper.Keep(by_hand);
  }

  /// Every device that is known is said, also where it is where the configuration wants it: who follows the configuration before this has
  /// looked offers it at its old door still.
  void Publish() {
    node::share::Moves moves;
    for (const auto& [id, said] : by_hand) {
      if (said.door) moves[id] = {DoorNamed(*said.door), ""};
      if (said.way) moves[id] = {"", "on its way between doors"};
    }
    for (const auto& [id, device] : devices) {
      moves[id] = {device.at, ""};
      if (device.way) moves[id] = {"", "on its way to " + DoorInWords(device.way->to) + ": " + device.way->waits_for};
    }
    if (moves == published) return;
    published = moves;
    node.offers.SetMoves(std::move(moves));
  }

  // --- the kubelet's word

  bool KubeletIsAwaited() const {
    return kubelet.ask_counted != nullptr && std::any_of(devices.begin(), devices.end(), [](const auto& one) {
             return one.second.way && one.second.at == kKubeletDoor && !one.second.way->acknowledged;
           });
  }

  void AskKubelet() {
    if (asking || ask_timer != 0 || !KubeletIsAwaited()) return;
    ask_timer = control.PostAfter(ask_again, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->AskNow();
    });
    ask_again = std::min(ask_again * 2, kAskMost);
  }

  void AskNow() {
    ask_timer = 0;
    asking = true;
    kubelet.ask_counted([weak = weak_from_this(), number = ++asked](const Result<std::set<std::string>>& counted) {
      if (const auto self = weak.lock()) self->Answered(number, counted);
    });
  }

  void Answered(std::uint64_t number, const Result<std::set<std::string>>& counted) {
    asking = false;
    kubelet_silence = counted.ok() ? "" : "the kubelet does not say what it counts (" + counted.error().message() + ")";
    for (auto& [id, device] : devices)
      if (counted.ok() && device.way && number >= device.way->ask_from && !counted->contains(id)) device.way->acknowledged = true;
    LookSoon();
  }

  // --- by hand

  bool HasDeadline(const std::string& id) const {
    const auto said = by_hand.find(id);
    return said != by_hand.end() && said->second.way && said->second.way->until;
  }

  /// By the clock that nobody sets; the file has the time of people, since only that outlives a reboot.
  void SetDeadline(const std::string& id, base::Duration left) {
    left = std::max(left, base::Duration::zero());
    deadlines[id] = control.clock().Now() + left;
    control.PostAfter(left, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Look();
    });
  }

  void TurnBackWhoWaitedTooLong(const node::inventory::Snapshot& inventory, const node::ledger::Snapshot& ledger) {
    const base::TimePoint now = control.clock().Now();
    for (auto& [id, said] : by_hand) {
      const auto device = devices.find(id);
      const auto deadline = deadlines.find(id);
      if (device == devices.end() || !device->second.way || !HasDeadline(id) || deadline == deadlines.end() || deadline->second > now)
        continue;
      const std::string holders = HoldersOf(ledger, id).text;
      if (holders.empty()) continue;  // only the kubelet's word is missing, which comes
      const auto* entry = inventory.Find(id);
      const std::string sentence = (entry != nullptr ? InWords(*entry->facts) : id) + " is still held by " + holders + " and stays at " +
                                   DoorInWords(device->second.at);
      base::Log(base::kWarn, "a device was waited for in vain", {{"device", id}, {"why", sentence}});
      said.door = said.way->back;
      said.way->until.reset();
      orders.GoneBack(id, sentence);
    }
  }

  /// The device by id or index; null where there is none.
  static const Entry* FindNamed(const node::inventory::Snapshot& inventory, const std::string& name) {
    const auto found = std::find_if(inventory.devices.begin(), inventory.devices.end(), [&](const auto& entry) {
      return entry.facts->id == name || (entry.facts->index >= 0 && base::ParseInt(name) == entry.facts->index);
    });
    return found == inventory.devices.end() ? nullptr : &*found;
  }

  Result<std::vector<const Entry*>> Named(const DoorRequest& request, const node::inventory::Snapshot& inventory) const {
    const std::string door = request.door;
    if ((door == kKubeletDoor && !open.kubelet) || (door == kLocalDoor && !open.local))
      return Error(Code::kFailedPrecondition, DoorInWords(door) + " of this machine is closed (see `penstock status`)");
    std::vector<const Entry*> named;
    for (const std::string& name : request.devices) {
      const Entry* entry = FindNamed(inventory, name);
      if (entry == nullptr) return Error(Code::kNotFound, "there is no device " + name + " on this node (see `penstock status`)");
      if (std::find(named.begin(), named.end(), entry) != named.end())
        return Error(Code::kInvalidArgument, "device " + name + " is named twice");
      named.push_back(entry);
    }
    return named;
  }

  /// What would be done with a device: "unchanged" or "would-move", with who holds it.
  DeviceMove Intended(const DoorRequest& request, const Entry& entry, const node::ledger::Snapshot& ledger) const {
    const device::Facts& facts = *entry.facts;
    const auto known = devices.find(facts.id);
    const std::string from = known == devices.end() ? WishedDoor(entry) : known->second.at;
    const std::string to = request.door == "default" ? door_of(entry) : DoorNamed(request.door);
    const bool under_way = known != devices.end() && known->second.way;
    DeviceMove move{facts.id, facts.index, NameOf(from), NameOf(to), from == to && !under_way ? "unchanged" : "would-move", ""};
    if (move.state == "unchanged") return move;
    if (const std::string holders = HoldersOf(ledger, facts.id).text; !holders.empty()) move.reason = "held by " + holders;
    return move;
  }

  void Set(const DoorRequest& request, Progress progress, Done done) {
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
                          InWords(*(*named)[i]->facts) + " is " + intended[i].reason + ": end that first, or wait for it with --wait"));
    Begin(request, intended, waits, std::move(progress), std::move(done));
  }

  void Begin(const DoorRequest& request, const std::vector<DeviceMove>& intended, bool waits, Progress progress, Done done) {
    std::optional<base::WallTime> until;
    if (waits) until = control.clock().Wall() + std::chrono::duration_cast<base::WallTime::duration>(*request.wait);
    for (const DeviceMove& move : intended) Say(move, request.door, until);
    if (until)
      for (const DeviceMove& move : intended) SetDeadline(move.device, *request.wait);
    keeper.Keep(by_hand);
    Tell(orders.Begin(intended, std::move(progress), std::move(done)));
    Look();
  }

  void Say(const DeviceMove& move, const std::string& door, std::optional<base::WallTime> until) {
    const auto [at, is_new] = by_hand.try_emplace(move.device);
    ByHand& said = at->second;
    const std::optional<std::string> back = said.way ? said.way->back : said.door;
    said.door = door == "default" ? std::nullopt : std::optional(door);
    said.way.reset();
    if (move.state != "unchanged") said.way = ByHand::Way{.from = DoorNamed(move.from), .back = back, .until = until};
    if (!said.door && !said.way) by_hand.erase(at);
  }

  DeviceMove NowOf(const DeviceMove& before, const node::inventory::Snapshot& inventory) const {
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

  /// Later: who is told may ask for more at once.
  void Tell(MoveOrders::Tellings tellings) {
    if (tellings.empty()) return;
    control.Post([weak = weak_from_this(), tellings = std::move(tellings)] {
      if (const auto self = weak.lock())
        for (const auto& tell : tellings) tell();
    });
  }

  base::Executor& control;
  const Node node;
  const node::share::OpenDoors open;
  const Kubelet kubelet;
  DevicesByHand by_hand;
  DoorsKeeper keeper;
  node::share::DoorOf door_of;
  std::map<std::string, base::TimePoint> deadlines;  // of those on their way that have one in by_hand
  bool configured = false, look_posted = false, awaiting = false;
  std::map<std::string, Device> devices;  // by id
  node::share::Moves published;
  MoveOrders orders;
  std::uint64_t asked = 0;      // questions to the kubelet
  bool asking = false;          // one is not answered yet
  base::TimerId ask_timer = 0;  // of the next one
  base::Duration ask_again = kAskFirst;
  std::string kubelet_silence;
  std::uint64_t facts_generation = 0;
  base::Subscription on_inventory, on_ledger;
};

DoorMoves::DoorMoves(base::Executor& control, base::Executor& io, Node node, node::share::OpenDoors open, Kubelet kubelet,
                     const std::string& path, DevicesByHand remembered)
    : state_(std::make_shared<State>(control, io, node, open, std::move(kubelet), path, std::move(remembered))) {
  State* state = state_.get();
  state->on_inventory = node.inventory.published().Subscribe([state](const auto& snapshot) {
    if (std::exchange(state->facts_generation, snapshot->facts_generation) != snapshot->facts_generation) state->LookSoon();
  });
  state->on_ledger = node.ledger.published().Subscribe([state](const auto&) {
    const auto on_its_way = [](const auto& one) { return one.second.way.has_value(); };
    if (std::any_of(state->devices.begin(), state->devices.end(), on_its_way)) state->LookSoon();
  });
}

DoorMoves::~DoorMoves() {
  state_->on_inventory.Reset();
  state_->on_ledger.Reset();
}

void DoorMoves::Configure(const api::NodeConfig& config) { state_->Configure(config); }

void DoorMoves::Set(const DoorRequest& request, Progress progress, Done done) {
  state_->Set(request, std::move(progress), std::move(done));
}

node::share::Moves DoorMoves::by_hand() const {
  node::share::Moves moves;
  for (const auto& [id, said] : state_->by_hand)
    if (said.door) moves[id] = {DoorNamed(*said.door), ""};
  return moves;
}

}  // namespace penstock::door
