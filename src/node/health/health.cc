// One small state per device: what stands, what happened, since when it looks well.
#include "node/health/health.h"

#include <algorithm>

#include "base/log.h"
#include "device/kinds.h"
#include "node/health/policy.h"

namespace penstock::node::health {

using device::HealthState;
using device::Severity;

namespace {

constexpr std::size_t kMostTroubles = 32;  // of one device that are told apart

constexpr base::Duration kDeparturesCount = std::chrono::hours(1);
constexpr std::size_t kMostDepartures = 3;

constexpr int kReadingsThatProveAReset = 3;  // in a row: one may be nonsense

bool TakesOut(Severity severity) { return severity >= Severity::kDrain; }

/// Of ourselves, not of a vendor: a call that hangs, or fails in a way that says nothing.
bool IsOurs(const device::Evidence& evidence) {
  return evidence.kind == device::kHang || evidence.kind == device::kUnreadable || evidence.kind == device::kDriverSilent;
}

Counters CountersIn(const device::Reading& reading) {
  Counters counters;
  for (const device::Evidence& one : reading.evidence)
    if (one.kind.starts_with(device::kResetCounter)) counters[one.kind.substr(device::kResetCounter.size())] = one.code;
  return counters;
}

std::string With(const std::string& reason, const std::string& more) { return more.empty() ? reason : reason + "; " + more; }

}  // namespace

Monitor::Monitor(base::Executor& executor, inventory::Inventory& inventory, DialectOf dialect_of, Options options)
    : executor_(executor), inventory_(inventory), dialect_of_(std::move(dialect_of)), options_(std::move(options)) {
  on_inventory_ = inventory_.published().Subscribe([this](const auto& snapshot) { See(*snapshot); }, true);
}

Monitor::~Monitor() {
  for (auto& [id, tracked] : devices_) executor_.Cancel(tracked.timer);
}

void Monitor::See(const inventory::Snapshot& snapshot) {
  for (const inventory::Entry& entry : snapshot.devices) Follow(entry, snapshot);
  if (std::exchange(seen_facts_, snapshot.facts_generation) != snapshot.facts_generation) Changed();  // who sits where
  for (const std::string& left : chronicle_.See(snapshot)) {
    if (const auto tracked = devices_.find(left); tracked != devices_.end()) {
      executor_.Cancel(tracked->second.timer);
      devices_.erase(tracked);
    }
    hearing_.Forget(left);
  }
}

/// Whether it is away. One that is away together with its driver is not to blame for that; whether the driver was reloaded shows when it is
/// opened again. One that left the list of a driver that is there begins anew.
void Monitor::Follow(const inventory::Entry& entry, const inventory::Snapshot& snapshot) {
  const bool gone = entry.health.state == HealthState::kGone;
  const auto known = devices_.find(entry.facts->id);
  if (known == devices_.end() || !gone || known->second.away) return;
  Tracked& tracked = known->second;
  tracked.away = true;
  const inventory::VendorEntry* vendor = snapshot.FindVendor(entry.facts->vendor);
  if (vendor != nullptr && vendor->driver == nullptr) return;
  EndTroubles(tracked);
  const base::TimePoint now = executor_.clock().Now();
  std::erase_if(tracked.departures, [now](base::TimePoint at) { return now - at > kDeparturesCount; });
  if (tracked.departures.size() < kMostDepartures) tracked.departures.push_back(now);
}

/// It was away and answers. One that keeps going is not believed at once.
void Monitor::Return(Tracked& tracked) {
  tracked.away = false;
  if (tracked.departures.size() < kMostDepartures) return;
  if (tracked.reason.empty()) tracked.reason = "it was away " + std::to_string(kMostDepartures) + " times and more within an hour";
  tracked.recovery.Fall(executor_.clock().Now());
  Changed();
}

std::string Monitor::IdOf(const device::Evidence& evidence) const {
  if (!evidence.device.empty() || !evidence.pci) return evidence.device;
  // A kernel log names no function.
  device::PciAddress wanted = *evidence.pci;
  for (const inventory::Entry& entry : inventory_.published().Get()->devices) {
    if (!entry.facts->pci || !entry.facts->parent.empty()) continue;
    wanted.function = entry.facts->pci->function;
    if (*entry.facts->pci == wanted) return entry.facts->id;
  }
  return "";
}

device::Verdict Monitor::Judge(const std::string& id, const device::Evidence& evidence) const {
  const auto snapshot = inventory_.published().Get();
  const inventory::Entry* entry = snapshot->Find(id);
  const device::Dialect* dialect = entry != nullptr ? dialect_of_(entry->facts->vendor) : nullptr;
  // No more than a drain: whether a reset would help is for the vendor to say.
  if (IsOurs(evidence) || dialect == nullptr) return {Severity::kDrain, evidence.text};
  return dialect->Judge(evidence);
}

Severity Monitor::ByPolicy(const device::Evidence& evidence, Severity by_vendor) const {
  return IsOurs(evidence) ? by_vendor : Apply(options_.policy, evidence.kind, evidence.code, by_vendor);
}

std::string Monitor::OnEvidence(const device::Evidence& evidence, base::Duration ago) {
  const std::string id = IdOf(evidence);
  if (id.empty()) {
    base::Log(base::kWarn, "evidence of an unknown device", {{"kind", evidence.kind}, {"text", evidence.text}});
    return id;
  }
  const bool history = ago > base::Duration(0);
  const device::Verdict verdict = Judge(id, evidence);
  const Severity severity = ByPolicy(evidence, verdict.severity);
  // One of two sources may tell more of the same event: the worse verdict holds.
  if (history || hearing_.IsNew(id, evidence, executor_.clock().Now())) {
    hearing_.Count(id, evidence, severity, executor_.clock(), ago);
  } else if (!hearing_.Worsen(id, evidence, severity)) {
    return id;
  }
  // The message is one for all codes, so that a storm of many is held back as one of a single code is.
  const char* const message = TakesOut(severity) ? "an error takes a device out of use" : "a device reports an error";
  const base::LogLevel level = TakesOut(severity) ? base::kError : severity == Severity::kWarn ? base::kWarn : base::kInfo;
  base::Log(level, message, {{"device", id}, {"what", verdict.reason}, {"severity", ToString(severity)}});
  if (!TakesOut(severity)) return id;
  Tracked& tracked = devices_[id];
  Hold(tracked, evidence, verdict, severity, ago);
  tracked.last.reset();  // what was seen before it happened says nothing about now
  if (!history) Evaluate(id, tracked);
  return id;
}

void Monitor::Hold(Tracked& tracked, const device::Evidence& evidence, const device::Verdict& verdict, Severity severity,
                   base::Duration ago) {
  const bool history = ago > base::Duration(0);
  const base::WallTime now = executor_.clock().Wall() - std::chrono::duration_cast<base::WallTime::duration>(ago);
  if (history) tracked.remembered_since = std::min(tracked.remembered_since.value_or(now), now);
  // A reset that came before it must not end it; of one that nobody saw happen, all that is known of the counters may be older.
  tracked.before = history ? Counters() : tracked.counters;
  tracked.set_back = 0;
  Code code(evidence.kind, evidence.code);
  if (tracked.happened.size() >= kMostTroubles && !tracked.happened.contains(code)) code = {"other", kOtherCodes};
  const auto [at, fresh] = tracked.happened.try_emplace(code, Trouble{verdict, severity, now, false, history});
  Trouble& trouble = at->second;
  if (fresh) return Changed();
  const bool was_over = std::exchange(trouble.proven_over, false);
  if (was_over) trouble.at = now;
  trouble.from_history = trouble.from_history && history;
  const bool worse = severity > trouble.severity;
  if (worse) trouble = {verdict, severity, trouble.at, false, trouble.from_history};
  if (was_over || worse) Changed();
}

/// A reset is proven, or a reload of the driver: what happened until then is over.
void Monitor::EndTroubles(Tracked& tracked, std::optional<base::WallTime> until) {
  for (auto& [what, trouble] : tracked.happened) {
    if (trouble.proven_over || (until && trouble.at > *until)) continue;
    trouble.proven_over = true;
    Changed();
  }
  tracked.before.clear();
  tracked.set_back = 0;
}

/// It answers although it had fallen silent for good: only a reset does that, and it ended what had happened before as well.
void Monitor::EndSilence(Tracked& tracked) {
  std::optional<base::WallTime> silent;
  for (const auto& [what, trouble] : tracked.happened)
    if (trouble.verdict.silences && !trouble.proven_over) silent = std::max(silent.value_or(trouble.at), trouble.at);
  if (silent) EndTroubles(tracked, silent);
}

/// A driver that can say what needs doing knows better than the log whether what happened long ago is over.
void Monitor::TakeDriversWord(Tracked& tracked) {
  if (std::erase_if(tracked.happened, [](const auto& one) { return one.second.from_history; }) == 0) return;
  tracked.remembered_since.reset();
  Changed();
}

/// Counters that only a reset sets back fell below what they were when something happened last, and stay there.
void Monitor::LookForReset(const std::string& id, Tracked& tracked, const device::Reading& reading) {
  tracked.counters = CountersIn(reading);
  const Counters& now = tracked.counters;
  const bool waits = std::any_of(tracked.happened.begin(), tracked.happened.end(), [](const auto& one) { return !one.second.proven_over; });
  if (!waits) return;
  if (tracked.before.empty() && !now.empty()) {
    tracked.before = now;
    return Changed();
  }
  const auto fell = std::find_if(tracked.before.begin(), tracked.before.end(), [&now](const auto& before) {
    const auto found = now.find(before.first);
    return found != now.end() && found->second < before.second;
  });
  tracked.set_back = fell == tracked.before.end() ? 0 : tracked.set_back + 1;
  if (tracked.set_back < kReadingsThatProveAReset) return;
  base::Log(base::kInfo, "a counter was set back: the device was reset, or its driver loaded anew",
            {{"device", id}, {"counter", fell->first}, {"was", fell->second}, {"is", now.at(fell->first)}});
  EndTroubles(tracked);
}

void Monitor::OnReading(const std::string& id, const device::Reading& reading) {
  Tracked& tracked = devices_[id];
  if (reading.reachable) {
    EndSilence(tracked);
    if (reading.tells_recovery) TakeDriversWord(tracked);
    LookForReset(id, tracked, reading);
  }
  tracked.last = reading;
  if (tracked.away && reading.reachable) Return(tracked);
  Evaluate(id, tracked);
}

void Monitor::OnDriverOpened(const std::string& vendor, const LoadedDriver& driver) {
  const auto known = drivers_.find(vendor);
  const std::optional<LoadedDriver> before = known == drivers_.end() ? std::nullopt : std::optional(known->second);
  drivers_[vendor] = driver;
  Changed();
  if (!before) return;
  const bool tells = !driver.instance.empty() && !before->instance.empty();
  const bool reloaded = driver.version != before->version || (tells && driver.instance != before->instance);
  const auto snapshot = inventory_.published().Get();
  for (auto& [id, tracked] : devices_) {
    const inventory::Entry* entry = snapshot->Find(id);
    if (entry == nullptr || entry->facts->vendor != vendor) continue;
    // Where nothing tells one loading of the module from another: the driver was away, and its devices with it.
    if (reloaded || (!tells && tracked.away)) EndTroubles(tracked);
  }
}

std::optional<Monitor::Against> Monitor::Standing(const std::string& id, const Tracked& tracked) const {
  std::optional<Against> worst;
  for (const device::Evidence& evidence : tracked.last->evidence) {
    const device::Verdict verdict = Judge(id, evidence);
    const Severity severity = ByPolicy(evidence, verdict.severity);
    if (!TakesOut(severity) || (worst && worst->severity >= severity)) continue;
    const bool of_driver = evidence.kind == device::kDriverSilent;
    worst = Against{severity, verdict.reason, "", evidence.kind == device::kHang || of_driver, false, of_driver};
  }
  if (!worst && !tracked.last->reachable) worst = Against{Severity::kDrain, "it does not answer", "", false};
  return worst;
}

/// Of a device that was not looked at yet nothing is over.
bool Monitor::IsOver(const std::string& id, const Tracked& tracked, const Trouble& trouble) const {
  if (!tracked.last) return false;
  if (trouble.proven_over) return true;
  if (trouble.severity != Severity::kDrain) return tracked.last->tells_recovery;
  return !options_.in_use || !options_.in_use(id);
}

/// A driver that can say whether a device needs something done does not say why: while it says so, what happened is the reason.
std::vector<Concern> Monitor::ConcernsOf(const std::string& id, const Tracked& tracked) const {
  std::vector<Concern> concerns;
  const bool driver_says_so = tracked.last && tracked.last->tells_recovery && Standing(id, tracked).has_value();
  for (const auto& [what, trouble] : tracked.happened) {
    const bool still = driver_says_so && !trouble.proven_over && trouble.severity > Severity::kDrain;
    if (still || !IsOver(id, tracked, trouble)) concerns.push_back({what.first, what.second, trouble.severity});
  }
  if (!tracked.last) return concerns;
  for (const device::Evidence& evidence : tracked.last->evidence)
    if (const Severity severity = ByPolicy(evidence, Judge(id, evidence).severity); severity != Severity::kIgnore)
      concerns.push_back({evidence.kind, evidence.code, severity});
  return concerns;
}

std::optional<Monitor::Against> Monitor::Happened(const std::string& id, const Tracked& tracked) const {
  std::optional<Against> worst;
  base::WallTime since{};
  for (const auto& [what, trouble] : tracked.happened) {
    if (worst && (worst->severity > trouble.severity || (worst->severity == trouble.severity && since <= trouble.at))) continue;
    if (IsOver(id, tracked, trouble)) continue;
    std::string advice;
    if (tracked.last)
      advice = trouble.severity == Severity::kDrain ? "it gets no new work until what runs on it has ended"
                                                    : "this driver cannot say when it is over: reset the device or reload the driver";
    worst = Against{trouble.severity, trouble.verdict.reason, std::move(advice), false, true};
    since = trouble.at;
  }
  return worst;
}

std::optional<Monitor::Against> Monitor::Speaks(const std::string& id, const Tracked& tracked) const {
  auto happened = Happened(id, tracked);
  if (!tracked.last) return happened;
  auto standing = Standing(id, tracked);
  if (standing && standing->hangs && happened) return Against{standing->severity, happened->reason, "", true, true};
  return !happened || (standing && standing->severity > happened->severity) ? standing : happened;
}

void Monitor::Evaluate(const std::string& id, Tracked& tracked) {
  executor_.Cancel(tracked.timer);
  tracked.probation_until.reset();
  tracked.needs_reset = false;
  if (!tracked.held.empty()) return Set(id, tracked, HealthState::kUnhealthy, tracked.held);
  if (const auto against = Speaks(id, tracked)) return EvaluateUnwell(id, tracked, *against);
  if (!tracked.last) return Set(id, tracked, HealthState::kUnknown, "not looked at yet");
  EvaluateWell(id, tracked);
}

void Monitor::EvaluateUnwell(const std::string& id, Tracked& tracked, const Against& against) {
  if (against.of_driver) {
    if (tracked.recovery.unwell()) tracked.recovery.Watch();
    return Set(id, tracked, HealthState::kUnknown, against.reason);
  }
  if (!tracked.recovery.unwell()) Changed();
  tracked.recovery.Fall(executor_.clock().Now());
  // What a look showed is over where the next one leaves an event to speak; before that look it may be as bad still.
  const bool tells_more = against.event && !tracked.of_event && (against.severity == tracked.worst || tracked.last);
  if (tracked.reason.empty() || against.severity > tracked.worst || tells_more) {
    tracked.reason = against.reason;
    tracked.worst = against.severity;
    tracked.of_event = against.event;
    Changed();
  }
  tracked.needs_reset = tracked.last && against.severity == Severity::kReset;
  if (tracked.recovery.Flaps() > 0) return Set(id, tracked, HealthState::kUnhealthy, Restless(tracked));
  // What it began with tells more than what followed from it.
  const std::string& reason = tracked.happened.empty() ? against.reason : tracked.reason;
  Set(id, tracked, against.hangs ? HealthState::kUnknown : HealthState::kUnhealthy, With(With(reason, against.advice), tracked.note));
}

void Monitor::EvaluateWell(const std::string& id, Tracked& tracked) {
  const bool was_unwell = tracked.recovery.unwell();
  const base::Duration left = tracked.recovery.LookWell(executor_.clock().Now(), terms());
  if (left <= base::Duration(0)) {
    tracked.happened.clear();
    tracked.reason.clear();
    tracked.note.clear();
    tracked.worst = Severity::kIgnore;
    if (was_unwell) Changed();
    return Set(id, tracked, HealthState::kHealthy, "");
  }
  tracked.timer = executor_.PostAfter(left, [this, id] {
    if (const auto found = devices_.find(id); found != devices_.end()) Evaluate(id, found->second);
  });
  if (tracked.recovery.Flaps() > 0) return Set(id, tracked, HealthState::kUnhealthy, Restless(tracked));
  tracked.probation_until = executor_.clock().Wall() + left;
  Set(id, tracked, HealthState::kUnhealthy,
      (tracked.reason.empty() ? "it was unwell" : tracked.reason) + "; looks well again, on probation for " +
          base::FormatDuration(tracked.recovery.Probation(terms())));
}

/// The same words while it is well and while it is not, so that whoever is told of changes is told once.
std::string Monitor::Restless(const Tracked& tracked) const {
  return tracked.reason + "; it comes and goes (" + std::to_string(tracked.recovery.Flaps()) +
         " times and more) and must look well without a break for " + base::FormatDuration(tracked.recovery.Probation(terms()));
}

void Monitor::Set(const std::string& id, Tracked& tracked, HealthState state, const std::string& reason) {
  const auto before = inventory_.published().Get();
  const inventory::Entry* entry = before->Find(id);
  if (entry == nullptr || entry->health.state == HealthState::kGone) return;
  if (entry->health.state == state && entry->health.reason == reason) return;
  if (entry->health.state != state)
    base::Log(state == HealthState::kHealthy ? base::kInfo : base::kError, "health changed",
              {{"device", id}, {"from", ToString(entry->health.state)}, {"to", ToString(state)}, {"why", reason}});
  // What an agent before us found is as old as it was then.
  const auto since = state == HealthState::kUnhealthy && entry->health.state == HealthState::kUnknown
                         ? std::exchange(tracked.remembered_since, std::nullopt)
                         : std::nullopt;
  inventory_.SetHealth(id, state, reason, since.value_or(executor_.clock().Wall()));
}

void Monitor::Configure(const api::HealthConfig& config) {
  const bool same_policy = options_.policy == config.policy;
  if (same_policy && options_.probation == config.probation && options_.probation_most == config.probation_most) return;
  std::map<std::string, bool> spoke;
  for (const auto& [id, tracked] : devices_) spoke[id] = Speaks(id, tracked).has_value();
  options_.probation = config.probation;
  options_.probation_most = config.probation_most;
  options_.policy = config.policy;
  for (auto& [id, tracked] : devices_) {
    if (!same_policy) Repolicy(id, tracked, spoke[id]);
    if (tracked.last || !same_policy) Evaluate(id, tracked);
  }
}

void Monitor::Repolicy(const std::string& id, Tracked& tracked, bool spoke) {
  bool dropped = false;
  for (auto at = tracked.happened.begin(); at != tracked.happened.end();) {
    Trouble& trouble = at->second;
    trouble.severity = Apply(options_.policy, at->first.first, at->first.second, trouble.verdict.severity);
    if (TakesOut(trouble.severity)) {
      ++at;
      continue;
    }
    base::Log(base::kInfo, "an error holds a device back no more, as the configuration wants it",
              {{"device", id}, {"what", trouble.verdict.reason}, {"severity", ToString(trouble.severity)}});
    dropped = true;
    at = tracked.happened.erase(at);
  }
  if (dropped) Changed();
  const auto speaks = Speaks(id, tracked);
  if (!dropped && speaks.has_value() == spoke) return;
  tracked.reason = speaks ? speaks->reason : "";
  tracked.worst = speaks ? speaks->severity : Severity::kIgnore;
  tracked.of_event = speaks && speaks->event;
  if (!speaks && (spoke || tracked.happened.empty())) tracked.recovery.Forgive();
}

Statuses Monitor::statuses() const {
  Statuses statuses;
  const base::TimePoint now = executor_.clock().Now();
  for (const inventory::Entry& entry : inventory_.published().Get()->devices) {
    Status& status = statuses[entry.facts->id] = chronicle_.Of(entry.facts->id);
    const auto tracked = devices_.find(entry.facts->id);
    if (tracked == devices_.end()) continue;
    status.probation_until = tracked->second.probation_until;
    status.relapses = tracked->second.recovery.relapses(now);
    status.resetting = !tracked->second.held.empty();
    status.concerns = ConcernsOf(entry.facts->id, tracked->second);
  }
  return statuses;
}

}  // namespace penstock::node::health
