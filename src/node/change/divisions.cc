// Which layout applies, and when changes begin. LayoutView says what is to be done, DivisionSteps
// does it.
#include "node/change/divisions.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/core/strings.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "node/change/division_steps.h"
#include "node/change/layout_view.h"
#include "node/change/pauses.h"
#include "node/share/allocator.h"
#include "node/share/describe.h"
#include "os/kept_file.h"

namespace penstock::node::change {

using device::Facts;
using inventory::Entry;

namespace {

constexpr char kByLabel[] = "label";  // LayoutRequest::source
constexpr base::Duration kDescribed = std::chrono::minutes(1);
constexpr base::Duration kRefreshed = std::chrono::seconds(5);
constexpr base::Duration kMostUnseen = std::chrono::minutes(20);

}  // namespace

struct Divisions::State : std::enable_shared_from_this<State> {
  State(base::Executor& c, base::Executor& io, Node n, VendorOf v, const std::string& path,
        AppliedLayout remembered, std::string boot_id, std::string kind_name)
      : control(c),
        node(n),
        vendor_of(std::move(v)),
        kind(std::move(kind_name)),
        applied(std::move(remembered)),
        boot(std::move(boot_id)),
        view(node, vendor_of, kind),
        steps(control, node, vendor_of),
        file(c, io, path, "cannot write the layout that applies; a reboot would lose it") {
    if (applied.boot != boot) applied.achieved.clear();
    restoring = applies() && applied.boot != boot;
    state.layout = applied.layout.name;
    state.source = applied.source;
    state.state = applies() ? "pending" : "";
  }

  bool applies() const { return !applied.layout.rules.empty(); }

  void Keep() {
    // Until all is as before the reboot, another agent has to restore it, too.
    if (!restoring) applied.boot = boot;
    file.Keep(EncodeAppliedLayout(applied));
  }

  // --- what others do to the devices

  /// A reset and a driver that was loaded again have destroyed the parts.
  void NoteLosses(const inventory::Snapshot& snapshot) {
    std::set<std::string> lost;
    if (view.AnyWithoutDriver())
      for (const std::string& id : applied.achieved)
        if (snapshot.Find(id) == nullptr) lost.insert(id);
    for (const Entry& entry : snapshot.devices) {
      const auto* vendor = snapshot.FindVendor(entry.facts->vendor);
      const bool no_driver = vendor != nullptr && vendor->driver == nullptr;
      if (no_driver || node.changes.OfKind("reset", entry.facts->id) != nullptr ||
          node.changes.OfKind(kReloadKind, entry.facts->id) != nullptr)
        lost.insert(entry.facts->id);
    }
    if (std::erase_if(applied.achieved, [&](const auto& id) { return lost.contains(id); }) > 0)
      Keep();
  }

  std::vector<DeviceChange> Due() {
    std::vector<DeviceChange> due;
    need = {};
    if (!applies()) return due;
    NoteLosses(*node.inventory.published().Get());
    Look();
    // A reset closes the driver: those that are reset are divided together, and no other meanwhile.
    // One that failed may become as before only much later, and is not waited for.
    std::optional<bool> resets;  // those under way
    for (const LayoutCandidate& candidate : candidates) {
      const DeviceChange* change = node.changes.OfKind(kind, candidate.division.device);
      if (change != nullptr && change->failure.empty())
        resets = resets.value_or(false) || RecordOf(*change).resets;
    }
    for (LayoutCandidate& candidate : candidates) {
      if (!candidate.due ||
          resets.value_or(RecordOf(*candidate.due).resets) != RecordOf(*candidate.due).resets)
        continue;
      resets = RecordOf(*candidate.due).resets;
      due.push_back(*std::exchange(candidate.due, std::nullopt));
    }
    return due;
  }

  void Look() {
    problem.clear();
    candidates.clear();
    if (applied.selected.empty()) {
      auto selected = view.Select(applied.layout);
      if (!selected.ok()) {
        problem = selected.error().message();
        return;
      }
      applied.selected = *std::move(selected);
      Keep();
    }
    candidates = view.LookAt(applied, [this](const auto& id) { return WhyPaused(id); });
    need = NeedOf(candidates, requests);
    if (need.wanted) ExplainReload(candidates, outlook ? outlook(need) : ReloadOutlook{});
    for (const LayoutCandidate& candidate : candidates) {
      if (!candidate.due && candidate.division.state != "dividing")
        gave_way.erase(candidate.division.device);
      NoteOthers(candidate.division);
      if (candidate.division.state == "divided") {
        failures.Forget(candidate.division.device);
        if (applied.achieved.insert(candidate.division.device).second) Keep();
      }
    }
  }

  void NoteOthers(const DeviceDivision& division) {
    if (division.state != "changed")
      changed_by_others.erase(division.device);
    else if (changed_by_others.insert(division.device).second)
      base::Log(
          base::kWarn, "device divided otherwise than its layout says",
          {{"device", division.device}, {"layout", applied.layout.name}, {"why", division.reason}});
  }

  // --- the steps

  /// A holder that has come since the change was planned is not waited for: the device is offered
  /// again, and divided once that is possible.
  StepResult AwaitRelease(const DeviceChange& change) {
    const auto ledger = node.ledger.Get();
    const auto snapshot = node.inventory.published().Get();
    const std::set<std::string> kept = RecordOf(change).kept;
    for (const Entry& entry : snapshot->devices) {
      const std::string& id = entry.facts->id;
      if (!change.Has(id) && (!entry.IsPartOf(change.device()) || kept.contains(id))) continue;
      const std::string holders = share::HoldersOf(*ledger, id).text;
      if (holders.empty()) continue;
      gives_way.insert(change.device());
      return base::Error(base::Code::kFailedPrecondition,
                         share::Describe(*entry.facts) + " is held by " + holders);
    }
    return node.changes.AwaitFree(change);
  }

  StepResult AwaitClients(const DeviceChange& change) const {
    if (!await_clients || applied.source != kByLabel) return std::string();
    const auto snapshot = node.inventory.published().Get();
    const Entry* entry = snapshot->Find(change.device());
    return entry == nullptr ? std::string() : await_clients(*entry->facts);
  }

  /// From the moment at which a change is due, so that several that follow each other stop them
  /// once. Clients run again while a device waits to be divided as it was before, which may take
  /// long.
  std::set<std::string> StopsClientsOf() const {
    std::set<std::string> devices;
    if (applied.source != kByLabel) return devices;
    const auto snapshot = node.inventory.published().Get();
    for (const Entry& entry : snapshot->devices) {
      const DeviceChange* change = node.changes.OfKind(kind, entry.facts->id);
      if (change == nullptr) continue;
      const bool first = !steps.FailedToRestore(entry.facts->id);
      if (IsBeforeDivision(*change) || change->step == kDivide ||
          (change->step == kRestore && !change->failure.empty() && first))
        devices.insert(entry.facts->id);
    }
    for (const LayoutCandidate& candidate : candidates)
      if (candidate.due || candidate.division.reason == kAboutToBegin)
        devices.insert(candidate.division.device);
    return devices;
  }

  StepResult Restore(const DeviceChange& change) {
    const bool wanted = !superseded.contains(change.device()) && view.Wants(applied, change);
    return steps.Restore(change, wanted);
  }

  /// Why a device is not tried again yet; empty: it can be.
  std::string WhyPaused(const std::string& id) const {
    return failures.Why(id, control.clock().Now());
  }

  void Wake() { node.changes.Wake(); }

  /// Looks again after the pause.
  void WakeAfter(base::Duration pause) {
    control.PostAfter(pause, base::IfAlive(this, &State::Wake));
  }

  /// Of devices that are set aside now, or no longer, the layout wants another thing than before.
  void SetOnDemand(const std::vector<std::string>& devices) {
    const std::vector<std::string> before = view.SetOnDemand(devices);
    if (before == devices) return;
    const auto snapshot = node.inventory.published().Get();
    const auto changed = std::erase_if(applied.achieved, [&](const std::string& id) {
      const Entry* entry = snapshot->Find(id);
      return entry != nullptr && share::IsForPartsOnDemand(before, *entry) !=
                                     share::IsForPartsOnDemand(devices, *entry);
    });
    if (changed > 0) Keep();
    Wake();
  }

  void Ended(const DeviceChange& change, const base::Status& result) {
    const std::string& id = change.device();
    steps.Forget(id);
    const bool of_another_layout = superseded.erase(id) > 0;
    const bool gives = gives_way.erase(id) > 0;
    if (result.ok()) {
      base::Log(base::kInfo, "device divided",
                {{"device", id}, {"layout", RecordOf(change).layout}});
      failures.Forget(id);
      return;  // Look finds it divided
    }
    base::Log(
        base::kError, "device not divided",
        {{"device", id}, {"layout", RecordOf(change).layout}, {"why", result.error().message()}});
    if (of_another_layout) return;
    // The next look finds the holder, and the device waits for that.
    if (gives && gave_way.insert(id).second) return;
    WakeAfter(failures.Add(id, result.error().message(), control.clock().Now()));
  }

  // --- requests

  /// Calls the function when all devices were described since now, after a moment at the latest.
  void Refresh(std::function<void()> then) {
    std::set<std::string> vendors;
    for (const Entry& entry : node.inventory.published().Get()->devices)
      if (view.CanBeDivided(entry)) vendors.insert(entry.facts->vendor);
    const auto once = std::make_shared<std::function<void()>>(std::move(then));
    const auto left = std::make_shared<std::size_t>(vendors.size());
    const auto finish = lifetime.Guard([once] {
      if (const auto call = std::exchange(*once, nullptr)) call();
    });
    if (vendors.empty()) return finish();
    control.PostAfter(kRefreshed, finish);
    for (const std::string& vendor : vendors)
      vendor_of(vendor).describe([left, finish] {
        if (--*left == 0) finish();
      });
  }

  void Apply(const LayoutRequest& wanted, Progress progress, Done done) {
    AppliedLayout next{.layout = wanted.layout,
                       .source = wanted.source,
                       .label = wanted.label.value_or(refused ? refused->layout : applied.label),
                       .mode_only = wanted.mode_only,
                       .skip_reset = wanted.skip_reset,
                       .selected = {},
                       .boot = boot,
                       .achieved = {}};
    const Pauses retried = failures;
    failures.ForgetAll();  // tried again at once
    if (wanted.wait != kStanding) {
      const base::Status possible = Check(next);
      // A holder may leave.
      if (!possible.ok() &&
          !(wanted.wait && possible.error().code() == base::Code::kFailedPrecondition)) {
        failures = retried;
        if (done) done(possible.error());
        return;
      }
    }
    base::Log(base::kInfo, "layout applied", {{"layout", next.layout.name}, {"by", next.source}});
    answer.End(
        base::Error(base::Code::kCancelled, "the layout " + next.layout.name + " was applied"));
    const auto snapshot = node.inventory.published().Get();
    for (const Entry& entry : snapshot->devices)
      if (node.changes.OfKind(kind, entry.facts->id) != nullptr) superseded.insert(entry.facts->id);
    steps.RetryNow();
    applied = std::move(next);
    ++requests;
    refused.reset();
    Keep();
    LayoutAnswer::Caller caller{
        .progress = std::move(progress), .done = std::move(done), .waits = wanted.wait.has_value()};
    if (wanted.wait && *wanted.wait < kStanding) {
      caller.until = control.clock().Now() + *wanted.wait;
      WakeAfter(*wanted.wait);
    }
    answer.Begin(std::move(caller));
    node.changes.Wake();
  }

  /// Whether each device that the layout selects can be divided so now.
  base::Status Check(AppliedLayout next) const {
    ASSIGN(next.selected, view.Select(next.layout));
    std::vector<DeviceDivision> impossible, held;
    for (const LayoutCandidate& candidate :
         view.LookAt(next, [this](const auto& id) { return WhyPaused(id); })) {
      if (candidate.division.state == "refused") impossible.push_back(candidate.division);
      if (candidate.division.state == "waiting" && !candidate.due)
        held.push_back(candidate.division);
    }
    if (!impossible.empty()) return base::Error(base::Code::kInvalidArgument, Reasons(impossible));
    if (!held.empty()) return base::Error(base::Code::kFailedPrecondition, Reasons(held));
    return {};
  }

  void Report() {
    NoteUnseen();
    LayoutState now = StateNow();
    const bool over = now.state != "pending";
    answer.Report(now, problem, control.clock().Now());
    if (restoring && over && !IsUnseen()) {
      restoring = false;
      Keep();
    }
    if (restored && !restoring)
      if (auto call = std::exchange(restored, nullptr)) call();
    if (refused) now = *refused;
    auto clients = StopsClientsOf();
    if (now == state && clients == stops_clients_of) return;
    state = std::move(now);
    stops_clients_of = std::move(clients);
    if (on_state) on_state();
  }

  LayoutState StateNow() const {
    LayoutState now{.layout = applied.layout.name, .source = applied.source};
    if (!applies()) return now;
    if (IsUnseen() && problem.empty()) {
      if (state.layout == now.layout && state.source == now.source) now = state;
      if (now.state.empty()) now.state = "pending";
      // The agent's own reload says what it waits for.
      if (now.state == "pending" && (IsOverdue() || node.changes.OfKind(kReloadKind) == nullptr))
        now.reason = "no device is there that it divides: see the state of the driver";
      if (now.state == "pending" && IsOverdue()) now.state = "failed";
      return now;
    }
    for (const LayoutCandidate& candidate : candidates) {
      DeviceDivision division = candidate.division;
      if (const DeviceChange* change = node.changes.OfKind(kind, division.device)) {
        // One that failed under an earlier layout is divided as this one says after its end.
        const bool of_this = !superseded.contains(division.device);
        division.state = of_this && !change->failure.empty() ? "failed" : "dividing";
        division.reason = change->waits_for.empty() ? change->step : change->waits_for;
      }
      now.devices.push_back(std::move(division));
    }
    const bool going_on = std::ranges::any_of(now.devices, [this](const DeviceDivision& one) {
      return one.state == "dividing" || (one.state == "waiting" && WillBegin(one.device));
    });
    now.reason = problem.empty() ? Reasons(now.devices) : problem;
    now.state = going_on ? "pending" : now.reason.empty() ? "success" : "failed";
    if (going_on) now.reason.clear();
    return now;
  }

  /// Whether it has been so for longer than a driver is installed.
  bool IsOverdue() const {
    return unseen_since && control.clock().Now() - *unseen_since >= kMostUnseen;
  }

  void NoteUnseen() {
    if (!IsUnseen()) return unseen_since.reset();
    if (unseen_since) return;
    unseen_since = control.clock().Now();
    WakeAfter(kMostUnseen);
  }

  /// Whether no device is there, as while the driver is loaded again: of how they are divided, what
  /// was last seen is known.
  bool IsUnseen() const {
    return candidates.empty() && (!applied.selected.empty() || view.AnyWithoutDriver());
  }

  /// Whether a device waits only for this agent: its change begins in the next turn.
  bool WillBegin(const std::string& device) const {
    const auto found = std::ranges::find(candidates, device, [](const LayoutCandidate& candidate) {
      return candidate.division.device;
    });
    return found != candidates.end() && found->division.reason == kAboutToBegin;
  }

  base::Executor& control;
  const Node node;
  const VendorOf vendor_of;
  const std::string kind;
  AppliedLayout applied;
  const std::string boot;
  LayoutView view;
  DivisionSteps steps;
  os::KeptFile file;
  std::vector<ChangeStep> change_steps;
  std::vector<LayoutCandidate> candidates;                       // of the last turn
  std::string problem;                                           // why the layout cannot be applied
  Pauses failures{kFirstDivisionPause, kMostDivisionDoublings};  // of devices
  std::set<std::string> gives_way;  // devices whose change ends because a holder has come
  std::set<std::string> changed_by_others;
  std::set<std::string> gave_way;    // those that have not been found held after that
  std::set<std::string> superseded;  // devices whose change began for an earlier layout
  LayoutState state;
  std::optional<LayoutState> refused;  // shown in its place
  std::function<void()> on_state;
  LayoutAnswer answer;
  bool restoring = false;
  std::function<void()> restored;
  base::WallTime restored_by{};
  std::function<std::string(const Facts&)> await_clients;
  std::set<std::string> stops_clients_of;
  ReloadNeed need;  // at the last look
  int requests = 0;
  std::optional<base::TimePoint> unseen_since;
  std::function<ReloadOutlook(const ReloadNeed&)> outlook;
  base::Lifetime lifetime;
};

Divisions::Divisions(base::Executor& control, base::Executor& io, Node node, VendorOf vendor_of,
                     const std::string& path, AppliedLayout remembered, std::string boot_id,
                     std::string kind)
    : state_(std::make_shared<State>(control, io, node, std::move(vendor_of), path,
                                     std::move(remembered), std::move(boot_id), std::move(kind))) {
  State* const state = state_.get();
  state->change_steps = {
      DeviceChanges::Withdraw(),
      {.name = kAwaitRelease,
       .take = [state](const DeviceChange& change) { return state->AwaitRelease(change); },
       .most = kReleasedWithin},
      {.name = kStopClients,
       .take = [state](const DeviceChange& change) { return state->AwaitClients(change); }},
      {.name = kDivide,
       .take = [state](const DeviceChange& change) { return state->steps.Divide(change); },
       .most = kDividesWithin,
       .recorded = true,
       .uses_driver = true},
      {.name = kRestore,
       .take = [state](const DeviceChange& change) { return state->Restore(change); },
       .finally = true},
      {.name = "read",
       .take = [state](const DeviceChange& change) { return state->steps.Read(change); },
       .most = kDescribed,
       .finally = true}};
  node.changes.Add(*this);
}

Divisions::~Divisions() { state_->lifetime.End(); }

std::string Divisions::WhyNotReady(const Entry* device, const VendorOf& vendor_of) {
  if (device == nullptr) return "the device is not there";
  const Vendor vendor = vendor_of(device->facts->vendor);
  return vendor.backend == nullptr || !vendor.ready() ? "its driver is not open" : "";
}

void Divisions::Apply(const LayoutRequest& request, Progress progress, Done done) {
  if (request.wait == kStanding)
    return state_->Apply(request, std::move(progress), std::move(done));
  // What another program has just changed must not pass for the layout.
  state_->Refresh([state = state_.get(), request, progress = std::move(progress),
                   done = std::move(done)] { state->Apply(request, progress, done); });
}

void Divisions::Refuse(const std::string& layout, const std::string& source,
                       const std::string& why) {
  LayoutState refused{.layout = layout, .source = source, .state = "failed", .reason = why};
  if (state_->refused == refused) return;
  base::Log(base::kError, "layout refused", {{"layout", layout}, {"by", source}, {"why", why}});
  state_->refused = std::move(refused);
  state_->Wake();
}

void Divisions::Accept() {
  if (!state_->refused) return;
  state_->refused.reset();
  state_->Wake();
}

void Divisions::ForgetLabel() {
  Accept();
  if (!std::exchange(state_->applied.label, "").empty()) state_->Keep();
}

void Divisions::SetOnDemand(const std::vector<std::string>& devices) {
  state_->SetOnDemand(devices);
}

const AppliedLayout& Divisions::applied() const { return state_->applied; }

const LayoutState& Divisions::state() const { return state_->state; }

void Divisions::OnState(std::function<void()> changed) { state_->on_state = std::move(changed); }

void Divisions::WhenRestored(base::Duration most, std::function<void()> restored) {
  if (!state_->restoring) return restored();
  state_->restored = std::move(restored);
  state_->restored_by = state_->control.clock().Wall() + most;
  state_->control.PostAfter(most, state_->lifetime.Guard([state = state_.get()] {
    if (auto call = std::exchange(state->restored, nullptr)) call();
  }));
  state_->Wake();
}

std::optional<base::WallTime> Divisions::restored_by() const {
  return state_->restored ? std::optional(state_->restored_by) : std::nullopt;
}

void Divisions::SetClients(std::function<std::string(const Facts& device)> await) {
  state_->await_clients = std::move(await);
}

const ReloadNeed& Divisions::reload_need() const { return state_->need; }

void Divisions::SetReloads(std::function<ReloadOutlook(const ReloadNeed&)> outlook) {
  state_->outlook = std::move(outlook);
  state_->Wake();
}

std::set<std::string> Divisions::stops_clients_of() const { return state_->StopsClientsOf(); }

std::string_view Divisions::name() const { return state_->kind; }

const std::vector<ChangeStep>& Divisions::steps() const { return state_->change_steps; }

std::set<std::string> Divisions::KeptParts(const DeviceChange& change) const {
  return RecordOf(change).kept;
}

std::string Divisions::Explain(const DeviceChange& change, const std::string&) const {
  return "being divided as " + RecordOf(change).layout +
         (change.waits_for.empty() ? "" : ": " + change.waits_for);
}

std::vector<DeviceChange> Divisions::Due() { return state_->Due(); }

bool Divisions::AwaitsDevices() const {
  return state_->applies() && state_->state.state != "success";
}

void Divisions::Ended(const DeviceChange& change, const base::Status& result) {
  state_->Ended(change, result);
}

void Divisions::Settled() { state_->Report(); }

}  // namespace penstock::node::change
