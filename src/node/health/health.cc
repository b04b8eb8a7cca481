// One small state per device: what stands, what happened, since when it looks well.
#include "node/health/health.h"

#include "base/log.h"
#include "node/health/policy.h"

namespace penstock::node::health {

using device::HealthState;
using device::Severity;

namespace {

constexpr std::size_t kMostTroubles = 32;  // of one device that are told apart

constexpr base::Duration kDeparturesCount = std::chrono::hours(1);
constexpr std::size_t kMostDepartures = 3;

bool TakesOut(Severity severity) { return severity >= Severity::kDrain; }

/// Of ourselves, not of a vendor: a call that hangs, or fails in a way that says nothing.
bool IsOurs(const device::Evidence& evidence) { return evidence.kind == "hang" || evidence.kind == "unreadable"; }

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

/// Whether it is away. One that is away together with its driver is not to blame for that.
void Monitor::Follow(const inventory::Entry& entry, const inventory::Snapshot& snapshot) {
  const bool gone = entry.health.state == HealthState::kGone;
  const auto known = devices_.find(entry.facts->id);
  if (known == devices_.end() || !gone || known->second.away) return;
  Tracked& tracked = known->second;
  tracked.away = true;
  const inventory::VendorEntry* vendor = snapshot.FindVendor(entry.facts->vendor);
  if (vendor != nullptr && vendor->driver == nullptr) return;
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

std::string Monitor::OnEvidence(const device::Evidence& evidence) {
  const std::string id = IdOf(evidence);
  if (id.empty()) {
    base::Log(base::kWarn, "evidence of an unknown device", {{"kind", evidence.kind}, {"text", evidence.text}});
    return id;
  }
  if (!hearing_.IsNew(id, evidence, executor_.clock().Now())) return id;
  const device::Verdict verdict = Judge(id, evidence);
  const Severity severity = ByPolicy(evidence, verdict.severity);
  hearing_.Count(id, evidence, severity, executor_.clock());
  // The message is one for all codes, so that a storm of many is held back as one of a single code is.
  const char* const message = TakesOut(severity) ? "an error takes a device out of use" : "a device reports an error";
  const base::LogLevel level = TakesOut(severity) ? base::kError : severity == Severity::kWarn ? base::kWarn : base::kInfo;
  base::Log(level, message, {{"device", id}, {"what", verdict.reason}, {"severity", ToString(severity)}});
  if (!TakesOut(severity)) return id;
  Tracked& tracked = devices_[id];
  Hold(tracked, evidence, verdict, severity);
  tracked.last.reset();  // what was seen before it happened says nothing about now
  Evaluate(id, tracked);
  return id;
}

void Monitor::Hold(Tracked& tracked, const device::Evidence& evidence, const device::Verdict& verdict, Severity severity) {
  Code code(evidence.kind, evidence.code);
  if (tracked.happened.size() >= kMostTroubles && !tracked.happened.contains(code)) code = {"other", kOtherCodes};
  const auto [at, fresh] = tracked.happened.try_emplace(code, Trouble{verdict, severity, executor_.clock().Wall()});
  Trouble& trouble = at->second;
  if (fresh) return Changed();
  const bool was_over = std::exchange(trouble.proven_over, false);
  if (was_over) trouble.at = executor_.clock().Wall();
  const bool worse = severity > trouble.severity;
  if (worse) trouble = {verdict, severity, trouble.at};
  if (was_over || worse) Changed();
}

void Monitor::OnReading(const std::string& id, const device::Reading& reading) {
  Tracked& tracked = devices_[id];
  // What began before the device was silent is over once it answers again; so is what would have silenced it.
  for (auto& [what, trouble] : tracked.happened) {
    if (trouble.proven_over || (reading.reachable && !trouble.verdict.silences)) continue;
    trouble.proven_over = true;
    Changed();
  }
  tracked.last = reading;
  if (tracked.away && reading.reachable) Return(tracked);
  Evaluate(id, tracked);
}

void Monitor::OnDriverOpened(const std::string& vendor, const std::string& version) {
  const bool first = !driver_versions_.contains(vendor);
  driver_versions_[vendor] = version;
  const auto remembered = remembered_drivers_.find(vendor);
  Changed();
  // Another version than the agent before us had was loaded in between.
  if (first && (remembered == remembered_drivers_.end() || remembered->second == version)) return;
  const auto snapshot = inventory_.published().Get();
  for (auto& [id, tracked] : devices_) {
    const inventory::Entry* entry = snapshot->Find(id);
    if (entry == nullptr || entry->facts->vendor != vendor || entry->health.state != HealthState::kUnknown) continue;
    for (auto& [what, trouble] : tracked.happened) trouble.proven_over = true;
  }
}

std::optional<Monitor::Against> Monitor::Standing(const std::string& id, const Tracked& tracked) const {
  std::optional<Against> worst;
  for (const device::Evidence& evidence : tracked.last->evidence) {
    const device::Verdict verdict = Judge(id, evidence);
    const Severity severity = ByPolicy(evidence, verdict.severity);
    if (!TakesOut(severity) || (worst && worst->severity >= severity)) continue;
    worst = Against{severity, verdict.reason, "", evidence.kind == "hang"};
  }
  if (!worst && !tracked.last->reachable) worst = Against{Severity::kDrain, "it does not answer", "", false};
  return worst;
}

std::optional<Monitor::Against> Monitor::Happened(const std::string& id, const Tracked& tracked) const {
  std::optional<Against> worst;
  base::WallTime since{};
  for (const auto& [what, trouble] : tracked.happened) {
    if (worst && (worst->severity > trouble.severity || (worst->severity == trouble.severity && since <= trouble.at))) continue;
    std::string advice;
    if (tracked.last) {
      const bool drained = trouble.severity == Severity::kDrain;
      const bool busy = drained && options_.in_use && options_.in_use(id);
      if (trouble.proven_over || (drained ? !busy : tracked.last->tells_recovery)) continue;
      advice = drained ? "it gets no new work until what runs on it has ended"
                       : "this driver cannot say when it is over: reset the device or reload the driver";
    }
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
  if (!tracked.recovery.unwell()) Changed();
  tracked.recovery.Fall(executor_.clock().Now());
  const bool tells_more = against.severity == tracked.worst && against.event && !tracked.of_event;
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
  }
  return statuses;
}

}  // namespace penstock::node::health
