#include "node/health/monitor.h"

#include <algorithm>

#include "base/core/strings.h"
#include "base/log.h"
#include "device/kinds.h"
#include "node/health/policy.h"

namespace penstock::node::health {

using device::HealthState;
using device::Severity;

namespace {

constexpr std::size_t kMaxFaults = 32;  // per device, counted separately

constexpr base::Duration kDeparturesCount = std::chrono::hours(1);
constexpr std::size_t kMaxDepartures = 3;

constexpr int kReadingsThatProveAReset = 3;  // consecutive; a single one may be wrong

bool TakesOut(Severity severity) { return severity >= Severity::kDrain; }

/// Evidence from the agent itself, not from a vendor: a call that hangs, or fails without a
/// meaning.
bool IsOurs(const device::Evidence& evidence) {
  return evidence.kind == device::kHang || evidence.kind == device::kUnreadable ||
         evidence.kind == device::kDriverSilent;
}

ResetCounters CountersIn(const device::Reading& reading) {
  ResetCounters counters;
  for (const device::Evidence& one : reading.evidence)
    if (one.kind.starts_with(device::kResetCounter))
      counters[one.kind.substr(device::kResetCounter.size())] = one.code;
  return counters;
}

std::string With(const std::string& reason, const std::string& more) {
  return more.empty() ? reason : reason + "; " + more;
}

}  // namespace

Monitor::Monitor(base::Executor& executor, inventory::Inventory& inventory,
                 device::DialectOf dialect_of, Options options)
    : executor_(executor),
      inventory_(inventory),
      dialect_of_(std::move(dialect_of)),
      options_(std::move(options)) {
  on_inventory_ =
      inventory_.published().Subscribe([this](const auto& snapshot) { Update(*snapshot); }, true);
}

Monitor::~Monitor() {
  for (auto& [id, tracked] : devices_) executor_.Cancel(tracked.timer);
}

void Monitor::Update(const inventory::Snapshot& snapshot) {
  for (const inventory::Entry& entry : snapshot.devices) Follow(entry, snapshot);
  if (std::exchange(seen_facts_, snapshot.facts_generation) != snapshot.facts_generation)
    Changed();  // the occupancy may have changed
  for (const std::string& left : history_.Update(snapshot)) {
    if (const auto tracked = devices_.find(left); tracked != devices_.end()) {
      executor_.Cancel(tracked->second.timer);
      devices_.erase(tracked);
    }
    events_.Forget(left);
  }
}

/// Notes a device that is now gone. If its driver is gone as well, the device is not at fault, and
/// OnDriverOpened finds out whether the driver was reloaded. If the driver stayed, the departure
/// ends the device's faults.
void Monitor::Follow(const inventory::Entry& entry, const inventory::Snapshot& snapshot) {
  const bool gone = entry.health.state == HealthState::kGone;
  const auto known = devices_.find(entry.facts->id);
  if (known == devices_.end() || !gone || known->second.departed) return;
  Tracked& tracked = known->second;
  tracked.departed = true;
  const inventory::VendorEntry* vendor = snapshot.FindVendor(entry.facts->vendor);
  if (vendor != nullptr && vendor->driver == nullptr) return;
  EndFaults(tracked);
  const base::TimePoint now = executor_.clock().Now();
  std::erase_if(tracked.departures,
                [now](base::TimePoint at) { return now - at > kDeparturesCount; });
  if (tracked.departures.size() < kMaxDepartures) tracked.departures.push_back(now);
}

/// The device was gone and answers again. One that disappears repeatedly starts a probation.
void Monitor::Return(Tracked& tracked) {
  tracked.departed = false;
  if (tracked.departures.size() < kMaxDepartures) return;
  if (tracked.reason.empty())
    tracked.reason =
        "it disappeared " + std::to_string(kMaxDepartures) + " or more times within an hour";
  tracked.recovery.OnFault(executor_.clock().Now());
  Changed();
}

std::string Monitor::IdOf(const device::Evidence& evidence) const {
  if (!evidence.device.empty() || !evidence.pci) return evidence.device;
  // The kernel's log does not contain the PCI function.
  device::PciAddress wanted = *evidence.pci;
  for (const inventory::Entry& entry : inventory_.published().Get()->devices) {
    if (!entry.facts->pci || !entry.facts->parent.empty()) continue;
    wanted.function = entry.facts->pci->function;
    if (*entry.facts->pci == wanted) return entry.facts->id;
  }
  return "";
}

/// The device that an event about `id` counts against: the part of it that the event names, or, if
/// there is none or its fault is one of all of the device, the device.
std::string Monitor::ConcernedOf(const std::string& id, const device::Evidence& evidence,
                                 Severity severity) const {
  if (evidence.part.empty()) return id;
  const auto snapshot = inventory_.published().Get();
  const inventory::Entry* part = nullptr;
  bool ambiguous = false;
  for (const inventory::Entry& entry : snapshot->devices) {
    const std::string& name = entry.facts->part;
    if (!entry.IsPartOf(id) || entry.health.state == HealthState::kGone ||
        (name != evidence.part && !name.starts_with(evidence.part + "/")))
      continue;
    const std::size_t depth = entry.ancestors.size();
    if (part != nullptr && part->ancestors.size() < depth) continue;
    ambiguous = part != nullptr && part->ancestors.size() == depth;
    part = &entry;
  }
  if (part == nullptr || ambiguous) return id;
  const auto whole = devices_.find(id);
  const bool driver_reports = whole != devices_.end() && whole->second.reports_recovery;
  const bool alone =
      severity <= Severity::kDrain || (severity == Severity::kReset && driver_reports);
  return alone ? part->facts->id : id;
}

device::Verdict Monitor::Judge(const std::string& id, const device::Evidence& evidence) const {
  const auto snapshot = inventory_.published().Get();
  const inventory::Entry* entry = snapshot->Find(id);
  const device::Dialect* dialect = entry != nullptr ? dialect_of_(entry->facts->vendor) : nullptr;
  // At most a drain: only the vendor's documentation can say that a reset helps.
  if (IsOurs(evidence) || dialect == nullptr) return {Severity::kDrain, evidence.text};
  return dialect->Judge(evidence);
}

Severity Monitor::ByPolicy(const device::Evidence& evidence, Severity by_vendor) const {
  return IsOurs(evidence) ? by_vendor
                          : Apply(options_.policy, evidence.kind, evidence.code, by_vendor);
}

std::string Monitor::OnEvidence(const device::Evidence& evidence, base::Duration ago) {
  const std::string whole = IdOf(evidence);
  if (whole.empty()) {
    base::Log(base::kWarn, "evidence for an unknown device ignored",
              {{"kind", evidence.kind}, {"text", evidence.text}});
    return whole;
  }
  const bool history = ago > base::Duration(0);
  const device::Verdict verdict = Judge(whole, evidence);
  const Severity severity = ByPolicy(evidence, verdict.severity);
  std::string id = ConcernedOf(whole, evidence, severity);
  // The second source may report more details of the same event: the higher severity applies.
  if (history || events_.IsNew(id, evidence, executor_.clock().Now())) {
    events_.Count(id, evidence, severity, executor_.clock(), ago);
  } else if (!events_.Worsen(id, evidence, severity)) {
    return id;
  }
  // One message text for all codes, so that the log's rate limit also holds back a storm of many
  // codes.
  const char* const message =
      TakesOut(severity) ? "device taken out of service by an error" : "device reported an error";
  const base::LogLevel level = TakesOut(severity)            ? base::kError
                               : severity == Severity::kWarn ? base::kWarn
                                                             : base::kInfo;
  base::Log(level, message,
            {{"device", id}, {"what", verdict.reason}, {"severity", ToString(severity)}});
  if (!TakesOut(severity)) return id;
  Tracked& tracked = devices_[id];
  Latch(tracked, evidence, verdict, severity, ago);
  tracked.last.reset();  // a reading from before the event is outdated
  if (!history) Evaluate(id, tracked);
  return id;
}

void Monitor::Latch(Tracked& tracked, const device::Evidence& evidence,
                    const device::Verdict& verdict, Severity severity, base::Duration ago) {
  const bool history = ago > base::Duration(0);
  const base::WallTime now =
      executor_.clock().Wall() - std::chrono::duration_cast<base::WallTime::duration>(ago);
  if (history) tracked.remembered_since = std::min(tracked.remembered_since.value_or(now), now);
  // A counter that fell before the event must not end it. For an event from the log's history, the
  // known counters may be older than the event.
  tracked.before = history ? ResetCounters() : tracked.counters;
  tracked.set_back = 0;
  Code code(evidence.kind, evidence.code);
  if (tracked.latched.size() >= kMaxFaults && !tracked.latched.contains(code))
    code = {"other", kOtherCodes};
  const auto [at, fresh] =
      tracked.latched.try_emplace(code, Fault{verdict, severity, now, false, history});
  Fault& fault = at->second;
  const bool was_over = std::exchange(fault.proven_over, false);
  if (was_over) fault.at = now;
  fault.from_history = fault.from_history && history;
  const bool worse = severity > fault.severity;
  if (worse) fault = {verdict, severity, fault.at, false, fault.from_history};
  // Not for each event of a storm, which would outdate every reading.
  if (!fresh && !was_over && !worse) return;
  tracked.latched_at = std::max(tracked.latched_at, executor_.clock().Now() - ago);
  Changed();
}

/// A reset of the device or a reload of the driver is proven: the faults until then are over.
void Monitor::EndFaults(Tracked& tracked, std::optional<base::WallTime> until) {
  for (auto& [what, fault] : tracked.latched) {
    if (fault.proven_over || (until && fault.at > *until)) continue;
    fault.proven_over = true;
    Changed();
  }
  tracked.before.clear();
  tracked.set_back = 0;
}

/// The device answers after an error that silences it until a reset: it was reset, which also ended
/// the faults before that error.
void Monitor::EndSilence(Tracked& tracked) {
  std::optional<base::WallTime> silent;
  for (const auto& [what, fault] : tracked.latched)
    if (fault.verdict.silences && !fault.proven_over)
      silent = std::max(silent.value_or(fault.at), fault.at);
  if (silent) EndFaults(tracked, silent);
}

/// A driver that reports whether action is needed knows better than the log's history whether an
/// old fault is over.
void Monitor::TakeDriverReport(Tracked& tracked) {
  if (std::erase_if(tracked.latched, [](const auto& one) { return one.second.from_history; }) == 0)
    return;
  tracked.remembered_since.reset();
  Changed();
}

/// Detects a reset: a counter that only a reset clears fell below its value at the last error, in
/// several consecutive readings.
void Monitor::DetectReset(const std::string& id, Tracked& tracked, const device::Reading& reading) {
  tracked.counters = CountersIn(reading);
  const ResetCounters& now = tracked.counters;
  const bool waits =
      std::ranges::any_of(tracked.latched, [](const auto& one) { return !one.second.proven_over; });
  if (!waits) return;
  if (tracked.before.empty() && !now.empty()) {
    tracked.before = now;
    return Changed();
  }
  const auto fell = std::ranges::find_if(tracked.before, [&now](const auto& before) {
    const auto found = now.find(before.first);
    return found != now.end() && found->second < before.second;
  });
  tracked.set_back = fell == tracked.before.end() ? 0 : tracked.set_back + 1;
  if (tracked.set_back < kReadingsThatProveAReset) return;
  base::Log(base::kInfo, "counter went backwards: the device was reset or its driver reloaded",
            {{"device", id},
             {"counter", fell->first},
             {"was", fell->second},
             {"is", now.at(fell->first)}});
  EndFaults(tracked);
}

void Monitor::OnReading(const std::string& id, const device::Reading& reading, base::Duration ago) {
  Tracked& tracked = devices_[id];
  // Its answer would end the fault, and what the next one shows would count as another fault.
  if (executor_.clock().Now() - ago < tracked.latched_at) return;
  if (reading.reachable) {
    tracked.reports_recovery = reading.reports_recovery;
    EndSilence(tracked);
    if (reading.reports_recovery) TakeDriverReport(tracked);
    DetectReset(id, tracked, reading);
  }
  const std::string warning = WarningOf(id, tracked);
  tracked.last = reading;
  if (tracked.departed && reading.reachable) Return(tracked);
  Evaluate(id, tracked);
  if (WarningOf(id, tracked) != warning) Changed();
}

void Monitor::OnDriverOpened(const std::string& vendor, const LoadedDriver& driver) {
  const auto known = drivers_.find(vendor);
  const std::optional<LoadedDriver> before =
      known == drivers_.end() ? std::nullopt : std::optional(known->second);
  drivers_[vendor] = driver;
  Changed();
  if (!before) return;
  const bool reports = !driver.instance.empty() && !before->instance.empty();
  const bool reloaded =
      driver.version != before->version || (reports && driver.instance != before->instance);
  const auto snapshot = inventory_.published().Get();
  for (auto& [id, tracked] : devices_) {
    const inventory::Entry* entry = snapshot->Find(id);
    if (entry == nullptr || entry->facts->vendor != vendor) continue;
    // If the module's instances cannot be told apart, a device that was gone together with its
    // driver counts as reloaded.
    if (reloaded || (!reports && tracked.departed)) EndFaults(tracked);
  }
}

std::optional<Monitor::CurrentFault> Monitor::FaultInReading(const std::string& id,
                                                             const Tracked& tracked) const {
  std::optional<CurrentFault> worst;
  for (const device::Evidence& evidence : tracked.last->evidence) {
    const device::Verdict verdict = Judge(id, evidence);
    const Severity severity = ByPolicy(evidence, verdict.severity);
    if (!TakesOut(severity) || (worst && worst->severity >= severity)) continue;
    const bool of_driver = evidence.kind == device::kDriverSilent;
    worst = CurrentFault{severity, verdict.reason, "", evidence.kind == device::kHang || of_driver,
                         false,    of_driver};
  }
  if (!worst && !tracked.last->reachable)
    worst = CurrentFault{Severity::kDrain, "it does not answer", "", false};
  return worst;
}

/// Without a reading, no fault is over.
bool Monitor::IsOver(const std::string& id, const Tracked& tracked, const Fault& fault) const {
  if (!tracked.last) return false;
  if (fault.proven_over) return true;
  if (fault.severity != Severity::kDrain) return tracked.last->reports_recovery;
  return !options_.in_use || !options_.in_use(id);
}

/// A driver that reports that action is needed gives no reason: while it does so, the latched
/// faults are the reason.
std::vector<Concern> Monitor::ConcernsOf(const std::string& id, const Tracked& tracked) const {
  std::vector<Concern> concerns;
  const bool driver_reports =
      tracked.last && tracked.last->reports_recovery && FaultInReading(id, tracked).has_value();
  for (const auto& [what, fault] : tracked.latched) {
    const bool still = driver_reports && !fault.proven_over && fault.severity > Severity::kDrain;
    if (still || !IsOver(id, tracked, fault))
      concerns.push_back({what.first, what.second, fault.severity});
  }
  if (!tracked.last) return concerns;
  for (const device::Evidence& evidence : tracked.last->evidence)
    if (const Severity severity = ByPolicy(evidence, Judge(id, evidence).severity);
        severity != Severity::kIgnore)
      concerns.push_back({evidence.kind, evidence.code, severity});
  return concerns;
}

std::string Monitor::WarningOf(const std::string& id, const Tracked& tracked) const {
  if (!tracked.last) return "";
  std::vector<std::string> warnings;
  for (const device::Evidence& evidence : tracked.last->evidence) {
    device::Verdict verdict = Judge(id, evidence);
    if (ByPolicy(evidence, verdict.severity) == Severity::kWarn)
      warnings.push_back(std::move(verdict.reason));
  }
  return base::Join(warnings, "; ");
}

std::optional<Monitor::CurrentFault> Monitor::LatchedFault(const std::string& id,
                                                           const Tracked& tracked) const {
  std::optional<CurrentFault> worst;
  base::WallTime since{};
  for (const auto& [what, fault] : tracked.latched) {
    if (worst && (worst->severity > fault.severity ||
                  (worst->severity == fault.severity && since <= fault.at)))
      continue;
    if (IsOver(id, tracked, fault)) continue;
    std::string advice;
    if (tracked.last)
      advice =
          fault.severity == Severity::kDrain
              ? "it gets no new work until its running work has ended"
              : "the driver does not report its recovery: reset the device or reload the driver";
    worst = CurrentFault{fault.severity, fault.verdict.reason, std::move(advice), false, true};
    since = fault.at;
  }
  return worst;
}

std::optional<Monitor::CurrentFault> Monitor::WorstFault(const std::string& id,
                                                         const Tracked& tracked) const {
  auto latched = LatchedFault(id, tracked);
  if (!tracked.last) return latched;
  auto current = FaultInReading(id, tracked);
  if (current && current->hangs && latched)
    return CurrentFault{current->severity, latched->reason, "", true, true};
  return !latched || (current && current->severity > latched->severity) ? current : latched;
}

void Monitor::Evaluate(const std::string& id, Tracked& tracked) {
  executor_.Cancel(tracked.timer);
  tracked.probation_until.reset();
  tracked.needs_reset = false;
  if (!tracked.held.empty()) return Set(id, tracked, HealthState::kUnhealthy, tracked.held);
  if (const auto against = WorstFault(id, tracked)) return EvaluateUnhealthy(id, tracked, *against);
  if (!tracked.last) return Set(id, tracked, HealthState::kUnknown, "not read yet");
  EvaluateHealthy(id, tracked);
}

void Monitor::EvaluateUnhealthy(const std::string& id, Tracked& tracked,
                                const CurrentFault& against) {
  if (against.of_driver) {
    if (tracked.recovery.unhealthy()) tracked.recovery.Watch();
    return Set(id, tracked, HealthState::kUnknown, against.reason);
  }
  if (!tracked.recovery.unhealthy()) Changed();
  tracked.recovery.OnFault(executor_.clock().Now());
  // A reason from a reading is replaced by an event of the same severity, and by a milder event
  // once a new reading exists; before that reading the worse finding may still hold.
  const bool reports_more =
      against.event && !tracked.of_event && (against.severity == tracked.worst || tracked.last);
  if (tracked.reason.empty() || against.severity > tracked.worst || reports_more) {
    tracked.reason = against.reason;
    tracked.worst = against.severity;
    tracked.of_event = against.event;
    Changed();
  }
  tracked.needs_reset = tracked.last && against.severity == Severity::kReset;
  if (tracked.recovery.Flaps() > 0)
    return Set(id, tracked, HealthState::kUnhealthy, FlappingReason(tracked));
  // The first fault explains more than its consequences.
  const std::string& reason = tracked.latched.empty() ? against.reason : tracked.reason;
  Set(id, tracked, against.hangs ? HealthState::kUnknown : HealthState::kUnhealthy,
      With(With(reason, against.advice), tracked.note));
}

void Monitor::EvaluateHealthy(const std::string& id, Tracked& tracked) {
  const bool was_unhealthy = tracked.recovery.unhealthy();
  const base::Duration left = tracked.recovery.OnHealthy(executor_.clock().Now(), terms());
  if (left <= base::Duration(0)) {
    tracked.latched.clear();
    tracked.reason.clear();
    tracked.note.clear();
    tracked.worst = Severity::kIgnore;
    if (was_unhealthy) Changed();
    return Set(id, tracked, HealthState::kHealthy, "");
  }
  tracked.timer = executor_.PostAfter(left, [this, id] {
    if (const auto found = devices_.find(id); found != devices_.end()) Evaluate(id, found->second);
  });
  if (tracked.recovery.Flaps() > 0)
    return Set(id, tracked, HealthState::kUnhealthy, FlappingReason(tracked));
  tracked.probation_until = executor_.clock().Wall() + left;
  Set(id, tracked, HealthState::kUnhealthy,
      (tracked.reason.empty() ? "it was unhealthy" : tracked.reason) +
          "; recovered, on probation for " +
          base::FormatDuration(tracked.recovery.Probation(terms())));
}

/// The text is the same with and without a current fault, so that a change is published only once.
std::string Monitor::FlappingReason(const Tracked& tracked) const {
  return tracked.reason + "; it fails and recovers repeatedly (" +
         std::to_string(tracked.recovery.Flaps()) +
         " or more times) and must stay healthy without interruption for " +
         base::FormatDuration(tracked.recovery.Probation(terms()));
}

void Monitor::Set(const std::string& id, Tracked& tracked, HealthState state,
                  const std::string& reason) {
  const auto before = inventory_.published().Get();
  const inventory::Entry* entry = before->Find(id);
  if (entry == nullptr || entry->health.state == HealthState::kGone) return;
  if (entry->health.state == state && entry->health.reason == reason) return;
  if (entry->health.state != state)
    base::Log(state == HealthState::kHealthy ? base::kInfo : base::kError, "health changed",
              {{"device", id},
               {"from", ToString(entry->health.state)},
               {"to", ToString(state)},
               {"why", reason}});
  // A fault restored from the previous agent keeps its time.
  const auto since =
      state == HealthState::kUnhealthy && entry->health.state == HealthState::kUnknown
          ? std::exchange(tracked.remembered_since, std::nullopt)
          : std::nullopt;
  inventory_.SetHealth(id, state, reason, since.value_or(executor_.clock().Wall()));
}

void Monitor::Configure(const api::HealthConfig& config) {
  const bool same_policy = options_.policy == config.policy;
  if (same_policy && options_.probation == config.probation &&
      options_.probation_most == config.probation_most)
    return;
  std::map<std::string, bool> had_fault;
  for (const auto& [id, tracked] : devices_) had_fault[id] = WorstFault(id, tracked).has_value();
  options_.probation = config.probation;
  options_.probation_most = config.probation_most;
  options_.policy = config.policy;
  for (auto& [id, tracked] : devices_) {
    if (!same_policy) Repolicy(id, tracked, had_fault[id]);
    if (tracked.last || !same_policy) Evaluate(id, tracked);
  }
}

void Monitor::Repolicy(const std::string& id, Tracked& tracked, bool had_fault) {
  bool dropped = false;
  for (auto at = tracked.latched.begin(); at != tracked.latched.end();) {
    Fault& fault = at->second;
    fault.severity =
        Apply(options_.policy, at->first.first, at->first.second, fault.verdict.severity);
    if (TakesOut(fault.severity)) {
      ++at;
      continue;
    }
    base::Log(
        base::kInfo, "error no longer keeps the device out of service, as configured",
        {{"device", id}, {"what", fault.verdict.reason}, {"severity", ToString(fault.severity)}});
    dropped = true;
    at = tracked.latched.erase(at);
  }
  if (dropped) Changed();
  const auto worst = WorstFault(id, tracked);
  if (!dropped && worst.has_value() == had_fault) return;
  tracked.reason = worst ? worst->reason : "";
  tracked.worst = worst ? worst->severity : Severity::kIgnore;
  tracked.of_event = worst && worst->event;
  if (!worst && (had_fault || tracked.latched.empty())) tracked.recovery.Forgive();
}

HealthStatuses Monitor::statuses() const {
  HealthStatuses statuses;
  const base::TimePoint now = executor_.clock().Now();
  for (const inventory::Entry& entry : inventory_.published().Get()->devices) {
    HealthStatus& status = statuses[entry.facts->id] = history_.Of(entry.facts->id);
    const auto tracked = devices_.find(entry.facts->id);
    if (tracked == devices_.end()) continue;
    status.probation_until = tracked->second.probation_until;
    status.relapses = tracked->second.recovery.relapses(now);
    status.resetting = !tracked->second.held.empty();
    status.concerns = ConcernsOf(entry.facts->id, tracked->second);
    status.warning = WarningOf(entry.facts->id, tracked->second);
  }
  return statuses;
}

}  // namespace penstock::node::health
