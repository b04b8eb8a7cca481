// Compares the allocator that each device belongs to with the desired one. Where they differ, a
// change moves the device.
#include "node/change/device_moves.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/core/strings.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "node/change/manual_assignments.h"
#include "node/change/pauses.h"
#include "node/share/allocator.h"
#include "node/share/describe.h"
#include "os/kept_file.h"

namespace penstock::node::change {

using inventory::Entry;

namespace {

constexpr std::string_view kMove = "move";
constexpr base::Duration kNextMove = std::chrono::minutes(10);

}  // namespace

struct DeviceMoves::State : ChangeKind, std::enable_shared_from_this<State> {
  State(base::Executor& c, base::Executor& i, Node n, share::EnabledAllocators e,
        std::function<void(bool)> await, const std::string& path, ManualAssignments remembered)
      : control(c),
        node(n),
        enabled(std::move(e)),
        await_releases(std::move(await)),
        manual(std::move(remembered)),
        writer(c, i, path, "cannot write manual assignments; a restart would lose them"),
        allocator_of([](const inventory::Entry&) { return std::string(); }),
        moving({{.name = "withdraw",
                 .take = [this](const DeviceChange& change) { return Leave(change); }},
                {.name = "await release",
                 .take = [this](const DeviceChange& change) { return Await(change); }},
                {.name = "assign",
                 .take = [this](const DeviceChange& change) { return Arrive(change); }}}) {}

  // --- desired allocators

  std::string DesiredAllocator(const Entry& entry) const {
    const std::string* assigned = AssignedManually(entry.facts->id);
    // The parts of a device follow it.
    for (const inventory::Ancestor& whole : entry.ancestors)
      if (assigned == nullptr) assigned = AssignedManually(whole.device);
    return assigned != nullptr ? api::FromWord(*assigned) : allocator_of(entry);
  }

  const std::string* AssignedManually(const std::string& id) const {
    const auto found = manual.find(id);
    return found != manual.end() && found->second.allocator ? &*found->second.allocator : nullptr;
  }

  /// The desired allocator of a device that may be gone: then the one it belonged to.
  std::string DesiredAllocator(const std::string& id) const {
    const auto inventory = node.inventory.published().Get();
    if (const Entry* entry = inventory->Find(id)) return DesiredAllocator(*entry);
    const auto found = at.find(id);
    return found == at.end() ? "" : found->second;
  }

  const share::Moves& Configure(const api::NodeConfig& config) {
    allocator_of = share::AssignAllocators(config, enabled);
    configured = true;
    unmoved.ForgetAll();  // tried again at once
    Meet(*node.inventory.published().Get());
    Changed();
    return published = MovesNow();
  }

  void Changed() {
    changed = true;
    node.changes.Wake();
  }

  /// A device that is new belongs to the desired allocator at once, unless it was moving when the
  /// previous agent ended.
  void Meet(const inventory::Snapshot& inventory) {
    std::erase_if(at, [&](const auto& one) {
      return inventory.Find(one.first) == nullptr && MoveOf(one.first) == nullptr;
    });
    for (const Entry& entry : inventory.devices) {
      const std::string& id = entry.facts->id;
      const auto [own, is_new] = at.try_emplace(id, DesiredAllocator(entry));
      if (!is_new) continue;
      const auto found = manual.find(id);
      const bool manually = found != manual.end() && found->second.transfer;
      if (const DeviceChange* change = MoveOf(id))
        own->second = change->devices.front().allocator;
      else if (manually)
        own->second = found->second.transfer->from;
      if (!manually) continue;
      if (found->second.transfer->until)
        SetDeadline(id, *found->second.transfer->until - control.clock().Wall());
      if (own->second == DesiredAllocator(entry)) EndTransfer(id);
    }
  }

  void Publish() {
    share::Moves moves = MovesNow();
    if (moves == published) return;
    published = moves;
    node.offers.SetMoves(std::move(moves));
  }

  /// Every known device, also those that are where the configuration wants them: another
  /// configuration would otherwise offer a device through its new allocator at once.
  share::Moves MovesNow() const {
    share::Moves moves = manual_moves();
    for (const auto& [id, allocator] : at) {
      share::Move& move = moves[id];
      move.allocator = allocator;
      if (const std::string why = WhyPaused(id); !why.empty())
        move.reason = "it stays assigned to " + share::DescribeAllocator(allocator) +
                      " and was to move to " + share::DescribeAllocator(DesiredAllocator(id)) +
                      ": " + why + "; the move is tried again every " +
                      base::FormatDuration(kNextMove);
    }
    for (const auto& [id, assignment] : manual)
      if (!at.contains(id) && assignment.transfer) moves[id].allocator.clear();
    return moves;
  }

  share::Moves manual_moves() const {
    share::Moves moves;
    for (const auto& [id, assignment] : manual)
      if (assignment.allocator)
        moves[id] = {.allocator = api::FromWord(*assignment.allocator), .with_parts = true};
    return moves;
  }

  // --- the change

  static const std::string& IdOf(const DeviceChange& change) { return change.devices.front().id; }

  std::string_view name() const override { return kMove; }
  const std::vector<ChangeStep>& steps() const override { return moving; }
  bool hides_devices() const override { return true; }
  /// Parts have allocators of their own.
  bool includes_parts() const override { return false; }

  std::string Explain(const DeviceChange& change, const std::string&) const override {
    return "being moved to " + share::DescribeAllocator(DesiredAllocator(IdOf(change))) +
           (change.waits_for.empty() ? "" : ": " + change.waits_for);
  }

  std::vector<DeviceChange> Due() override {
    const auto inventory = node.inventory.published().Get();
    const bool new_facts =
        std::exchange(facts_generation, inventory->facts_generation) != inventory->facts_generation;
    std::vector<DeviceChange> due;
    if (!configured) return due;
    const bool reverted = RevertExpired(*node.ledger.Get());
    if (!std::exchange(changed, false) && !new_facts && !reverted) return due;
    Meet(*inventory);
    Publish();
    for (const Entry& entry : inventory->devices) {
      const std::string& id = entry.facts->id;
      if (at.at(id) == DesiredAllocator(entry)) {
        unmoved.Forget(id);
        continue;
      }
      if (MoveOf(id) != nullptr || !WhyPaused(id).empty()) continue;
      due.push_back({.devices = {{.id = id, .allocator = at.at(id)}}});
      changed = true;  // if another change of the device is under way, the move begins after that
    }
    return due;
  }

  StepResult Leave(const DeviceChange& change) const {
    base::Log(base::kInfo, "device withdrawn",
              {{"device", IdOf(change)},
               {"from", api::ToWord(change.devices.front().allocator)},
               {"to", api::ToWord(DesiredAllocator(IdOf(change)))}});
    return std::string();
  }

  /// A device that is to stay where it is was not offered elsewhere meanwhile. A holder may stay as
  /// long as it likes: it is named, and a user's request can say how long it waits.
  StepResult Await(const DeviceChange& change) const {
    if (DesiredAllocator(IdOf(change)) == at.at(IdOf(change))) return std::string();
    return node.changes.AwaitHolders(change);
  }

  StepResult Arrive(const DeviceChange& change) {
    std::string& allocator = at.at(IdOf(change));
    const std::string to = DesiredAllocator(IdOf(change));
    base::Log(
        base::kInfo, allocator == to ? "device keeps its allocator" : "device assigned",
        {{"device", IdOf(change)}, {"from", api::ToWord(allocator)}, {"to", api::ToWord(to)}});
    allocator = to;
    Publish();
    return std::string();
  }

  void Ended(const DeviceChange& change, const base::Status& result) override {
    const std::string id = IdOf(change);
    if (!result.ok() && result.error().code() == Code::kDeadlineExceeded)
      return Stay(id, result.error().message());
    if (!result.ok()) {
      base::Log(base::kWarn, "device not moved",
                {{"device", id}, {"why", result.error().message()}});
      requests.GaveUp(id, result.error());
      // A device that was not there when the agent started moves on when it appears.
      if (at.erase(id) == 0) return;
      Publish();
    }
    EndTransfer(id);
  }

  /// The kubelet has not let the device go, which belongs to its former allocator as before. That
  /// ends a user's request; what the configuration wants is tried again later.
  void Stay(const std::string& id, const std::string& why) {
    const std::string sentence = DescribeDevice(id) + " stays assigned to " +
                                 share::DescribeAllocator(at.at(id)) + ": " + why;
    base::Log(base::kWarn, "device not moved", {{"device", id}, {"why", sentence}});
    requests.GaveUp(id, Error(Code::kDeadlineExceeded, sentence));
    const auto found = manual.find(id);
    if (found != manual.end() && found->second.transfer) {
      found->second.allocator = found->second.transfer->back;
      EndTransfer(id);
    }
    if (DesiredAllocator(id) != at.at(id)) {
      control.PostAfter(unmoved.Add(id, why, control.clock().Now()),
                        base::IfAlive(this, &State::Changed));
      // The next agent, too, must ask the kubelet first.
      manual[id].transfer = ManualAssignment::Transfer{.from = at.at(id)};
      writer.Keep(EncodeManualAssignments(manual));
    }
    Publish();
    Changed();
  }

  std::string DescribeDevice(const std::string& id) const {
    const auto inventory = node.inventory.published().Get();
    const Entry* entry = inventory->Find(id);
    return entry != nullptr ? share::Describe(*entry->facts) : id;
  }

  /// Why a device is not moved again yet; empty: it can be.
  std::string WhyPaused(const std::string& id) const {
    return unmoved.Why(id, control.clock().Now());
  }

  void EndTransfer(const std::string& id) {
    const auto found = manual.find(id);
    if (found == manual.end()) return;
    found->second.transfer.reset();
    if (!found->second.allocator) manual.erase(found);
    writer.Keep(EncodeManualAssignments(manual));
  }

  void Settled() override {
    const auto inventory = node.inventory.published().Get();
    Notify(requests.Update([&](const DeviceMove& before) { return MoveNow(before, *inventory); }));
    if (!await_releases) return;
    const auto ledger = node.ledger.Get();
    bool has_waiters = false;
    for (const auto& [id, allocator] : at)
      has_waiters |= HasDeadline(id) && share::HoldersOf(*ledger, id).counted;
    if (std::exchange(awaiting, has_waiters) != has_waiters) await_releases(has_waiters);
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
    control.PostAfter(left, base::IfAlive(this, &State::Changed));
  }

  /// Returns whether one was.
  bool RevertExpired(const ledger::Snapshot& ledger) {
    const base::TimePoint now = control.clock().Now();
    bool any = false;
    for (auto& [id, assignment] : manual) {
      const auto allocator = at.find(id);
      const auto deadline = deadlines.find(id);
      if (allocator == at.end() || !HasDeadline(id) || deadline == deadlines.end() ||
          deadline->second > now)
        continue;
      const std::string holders = share::HoldersOf(ledger, id).text;
      if (holders.empty()) continue;  // the kubelet acknowledges that soon, or Stay ends the move
      const std::string sentence = DescribeDevice(id) + " is still held by " + holders +
                                   " and stays assigned to " +
                                   share::DescribeAllocator(allocator->second);
      base::Log(base::kWarn, "device not released in time", {{"device", id}, {"why", sentence}});
      assignment.allocator = assignment.transfer->back;
      assignment.transfer->until.reset();
      requests.GaveUp(id, Error(Code::kDeadlineExceeded, sentence));
      any = true;
    }
    return any;
  }

  /// The device by id or index; null where there is none.
  static const Entry* FindNamed(const inventory::Snapshot& inventory, const std::string& name) {
    const auto found = std::ranges::find_if(
        inventory.devices, [&](const auto& entry) { return IsNamed(*entry.facts, name); });
    return found == inventory.devices.end() ? nullptr : &*found;
  }

  Result<std::vector<const Entry*>> FindDevices(const MoveRequest& request,
                                                const inventory::Snapshot& inventory) const {
    const std::string allocator = request.allocator;
    if (!api::FindAllocator(allocator).name.empty() && !enabled.contains(allocator))
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

  /// What would be done with a device: kUnchanged or kWouldMove, with its holders. `all`: the
  /// devices of the request, which lose what they were assigned before.
  DeviceMove PlanMove(const MoveRequest& request, const Entry& entry,
                      const std::vector<const Entry*>& all, const ledger::Snapshot& ledger) const {
    const device::Facts& facts = *entry.facts;
    const auto known = at.find(facts.id);
    const std::string from = known == at.end() ? DesiredAllocator(entry) : known->second;
    std::string to = api::FromWord(request.allocator);
    if (request.allocator == api::kConfiguredAllocator) {
      const std::string* assigned = nullptr;
      for (const inventory::Ancestor& whole : entry.ancestors)
        if (assigned == nullptr && std::ranges::none_of(all, [&](const Entry* one) {
              return one->facts->id == whole.device;
            }))
          assigned = AssignedManually(whole.device);
      to = assigned != nullptr ? api::FromWord(*assigned) : allocator_of(entry);
    }
    DeviceMove move{
        facts.id,
        facts.index,
        api::ToWord(from),
        api::ToWord(to),
        from == to && MoveOf(facts.id) == nullptr ? MoveState::kUnchanged : MoveState::kWouldMove,
        ""};
    if (move.state == MoveState::kUnchanged) return move;
    if (const std::string holders = share::HoldersOf(ledger, facts.id).text; !holders.empty())
      move.reason = "held by " + holders;
    return move;
  }

  /// The move of this device that is under way; null: none.
  const DeviceChange* MoveOf(const std::string& id) const { return node.changes.OfKind(kMove, id); }

  void Set(const MoveRequest& request, Progress progress, Done done) {
    const auto inventory = node.inventory.published().Get();
    const auto named = FindDevices(request, *inventory);
    if (!named.ok()) return done(named.error());
    const auto ledger = node.ledger.Get();
    std::vector<DeviceMove> intended;
    const std::vector<const Entry*> all = WithParts(*named, *inventory);
    for (const Entry* entry : all) intended.push_back(PlanMove(request, *entry, all, *ledger));
    if (request.dry_run) return done(std::move(intended));
    const bool waits = request.wait && *request.wait > base::Duration::zero();
    for (const DeviceMove& move : intended)
      if (!waits && !move.reason.empty() && move.from != move.to)
        return done(Error(Code::kFailedPrecondition,
                          share::Describe(*inventory->Find(move.device)->facts) + " is " +
                              move.reason + ": stop the holder first, or wait with --wait"));
    Begin(request, intended, named->size(), waits, std::move(progress), std::move(done));
  }

  /// The devices, and then their parts.
  std::vector<const Entry*> WithParts(std::vector<const Entry*> devices,
                                      const inventory::Snapshot& inventory) const {
    const std::vector<const Entry*> named = devices;
    for (const Entry& entry : inventory.devices) {
      const auto is_of = [&](const Entry* one) { return entry.IsPartOf(one->facts->id); };
      if (std::ranges::any_of(named, is_of) && std::ranges::find(named, &entry) == named.end())
        devices.push_back(&entry);
    }
    return devices;
  }

  /// `named`: how many of `intended` the request names; the others are parts of them.
  void Begin(const MoveRequest& request, const std::vector<DeviceMove>& intended, std::size_t named,
             bool waits, Progress progress, Done done) {
    std::optional<base::WallTime> until;
    if (waits)
      until = control.clock().Wall() +
              std::chrono::duration_cast<base::WallTime::duration>(*request.wait);
    for (std::size_t i = 0; i < intended.size(); ++i)
      i < named ? SetManual(intended[i], request.allocator, until)
                : SetPartMoving(intended[i], until);
    for (const DeviceMove& move : intended) {
      unmoved.Forget(move.device);  // tried at once
      if (until) SetDeadline(move.device, *request.wait);
    }
    writer.Keep(EncodeManualAssignments(manual));
    Notify(requests.Begin(intended, std::move(progress), std::move(done)));
    Changed();
  }

  void SetManual(const DeviceMove& move, const std::string& allocator,
                 std::optional<base::WallTime> until) {
    const auto found = manual.try_emplace(move.device).first;
    ManualAssignment& assignment = found->second;
    const std::optional<std::string> back =
        assignment.transfer ? assignment.transfer->back : assignment.allocator;
    assignment.allocator =
        allocator == api::kConfiguredAllocator ? std::nullopt : std::optional(allocator);
    assignment.transfer.reset();
    if (move.state != MoveState::kUnchanged)
      assignment.transfer = ManualAssignment::Transfer{
          .from = api::FromWord(move.from), .back = back, .until = until};
    if (!assignment.allocator && !assignment.transfer) manual.erase(found);
  }

  /// A part follows its device, whatever it was assigned before; one that is still held at the
  /// deadline is assigned by itself to where it is.
  void SetPartMoving(const DeviceMove& move, std::optional<base::WallTime> until) {
    manual.erase(move.device);
    if (move.state != MoveState::kUnchanged)
      manual[move.device].transfer = ManualAssignment::Transfer{
          .from = api::FromWord(move.from), .back = move.from, .until = until};
  }

  DeviceMove MoveNow(const DeviceMove& before, const inventory::Snapshot& inventory) const {
    DeviceMove now = before;
    if (before.state == MoveState::kUnchanged) return now;
    now.reason.clear();
    const auto allocator = at.find(before.device);
    if (allocator == at.end()) {  // it is gone: GaveUp has added the error to the answer
      now.state = MoveState::kUnchanged;
      return now;
    }
    const DeviceChange* move = MoveOf(before.device);
    if (move != nullptr || (allocator->second != DesiredAllocator(before.device) &&
                            WhyPaused(before.device).empty())) {
      now.state = MoveState::kWaiting;
      const DeviceChange* other = node.changes.Of(before.device);
      if (move != nullptr)
        now.reason = move->waits_for;
      else if (other != nullptr)
        now.reason = "another change of it (" + other->kind + ") to end";
      return now;
    }
    now.to = api::ToWord(allocator->second);
    now.state = now.to == now.from            ? MoveState::kUnchanged
                : now.to == api::kNoAllocator ? MoveState::kAcknowledged
                                              : MoveState::kOffered;
    if (const auto* entry = inventory.Find(before.device)) now.reason = entry->withheld;
    return now;
  }

  /// What is reported outlives the agent: it waits for the file, unless that cannot be written.
  void Notify(MoveRequests::Notifications notifications) {
    std::ranges::move(notifications, std::back_inserter(unreported));
    Report();
  }

  /// Posted to the executor, because a callback may make another request immediately.
  void Report() {
    if (unreported.empty() || (!writer.IsWritten() && writer.problem().empty())) return;
    control.Post(base::IfAlive(this, [notifications = std::exchange(unreported, {})](State&) {
      for (const auto& notify : notifications) notify();
    }));
  }

  base::Executor& control;
  const Node node;
  const share::EnabledAllocators enabled;
  const std::function<void(bool)> await_releases;
  ManualAssignments manual;
  os::KeptFile writer;
  share::AllocatorOf allocator_of;
  const std::vector<ChangeStep> moving;
  std::map<std::string, base::TimePoint>
      deadlines;                 // of moving devices that have a deadline in `manual`
  Pauses unmoved{kNextMove, 0};  // devices that the kubelet has not let go
  bool configured = false, changed = false, awaiting = false;
  std::map<std::string, std::string>
      at;  // device → the allocator it belongs to; while it moves, the one that it leaves
  share::Moves published;  // to the offers
  MoveRequests requests;
  MoveRequests::Notifications unreported;
  std::uint64_t facts_generation = 0;
};

DeviceMoves::DeviceMoves(base::Executor& control, base::Executor& io, Node node,
                         share::EnabledAllocators enabled, std::function<void(bool)> await_releases,
                         const std::string& path, ManualAssignments remembered)
    : state_(std::make_shared<State>(control, io, node, std::move(enabled),
                                     std::move(await_releases), path, std::move(remembered))) {
  state_->writer.OnWrite([state = state_.get()] { state->Report(); });
  node.changes.Add(*state_);
}

DeviceMoves::~DeviceMoves() { state_->writer.OnWrite(nullptr); }

share::Moves DeviceMoves::Configure(const api::NodeConfig& config) {
  return state_->Configure(config);
}

void DeviceMoves::Set(const MoveRequest& request, Progress progress, Done done) {
  state_->Set(request, std::move(progress), std::move(done));
}

share::Moves DeviceMoves::manual() const { return state_->manual_moves(); }

}  // namespace penstock::node::change
