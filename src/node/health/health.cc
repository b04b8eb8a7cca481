// One small state per device: what stands, what happened, since when it looks well.
#include "node/health/health.h"

#include "base/log.h"

namespace penstock::node::health {

using device::HealthState;
using device::Severity;

namespace {

constexpr base::Duration kSameEvent = std::chrono::seconds(2);  // the kernel log and the driver's event tell the same thing

bool TakesOut(Severity severity) { return severity >= Severity::kDrain; }

}  // namespace

Monitor::Monitor(base::Executor& executor, inventory::Inventory& inventory, DialectOf dialect_of, Options options)
    : executor_(executor), inventory_(inventory), dialect_of_(std::move(dialect_of)), options_(options) {}

Monitor::~Monitor() {
  for (auto& [id, tracked] : devices_) executor_.Cancel(tracked.timer);
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
  if (evidence.kind == "hang" || evidence.kind == "unreadable" || dialect == nullptr) return {Severity::kReset, evidence.text};
  return dialect->Judge(evidence);
}

void Monitor::Count(const std::string& id, const device::Evidence& evidence, Severity severity) {
  EvidenceCount& count = counts_[{id, evidence.kind, evidence.code}];
  count.device = id;
  count.kind = evidence.kind;
  count.code = evidence.code;
  count.severity = severity;
  ++count.count;
}

std::string Monitor::OnEvidence(const device::Evidence& evidence) {
  const std::string id = IdOf(evidence);
  if (id.empty()) {
    base::Log(base::kWarn, "evidence of an unknown device", {{"kind", evidence.kind}, {"text", evidence.text}});
    return id;
  }
  Tracked& tracked = devices_[id];
  const std::pair what(evidence.kind, evidence.code);
  const base::TimePoint now = executor_.clock().Now();
  if (const auto heard = tracked.heard.find(what); heard != tracked.heard.end() && now - heard->second < kSameEvent) return id;
  tracked.heard[what] = now;

  const device::Verdict verdict = Judge(id, evidence);
  Count(id, evidence, verdict.severity);
  base::Log(TakesOut(verdict.severity) ? base::kError : base::kWarn, verdict.reason,
            {{"device", id}, {"severity", ToString(verdict.severity)}});
  if (!TakesOut(verdict.severity)) return id;
  tracked.happened.insert_or_assign(what, Trouble{verdict.severity, verdict.reason, verdict.silences});
  tracked.well_since.reset();
  tracked.last.reset();  // what was seen before it happened says nothing about now
  Evaluate(id, tracked);
  return id;
}

void Monitor::OnReading(const std::string& id, const device::Reading& reading) {
  Tracked& tracked = devices_[id];
  // What began before the device was silent is over once it answers again; so is what would have silenced it.
  for (auto& [what, trouble] : tracked.happened)
    if (!reading.reachable || trouble.silences) trouble.proven_over = true;
  tracked.last = reading;
  Evaluate(id, tracked);
}

void Monitor::OnDriverOpened(const std::string& vendor, const std::string& version) {
  const bool first = !driver_versions_.contains(vendor);
  driver_versions_[vendor] = version;
  if (first) return;
  const auto snapshot = inventory_.published().Get();
  for (auto& [id, tracked] : devices_) {
    const inventory::Entry* entry = snapshot->Find(id);
    if (entry == nullptr || entry->facts->vendor != vendor || entry->health.state != HealthState::kUnknown) continue;
    for (auto& [what, trouble] : tracked.happened) trouble.proven_over = true;
  }
}

std::optional<std::string> Monitor::StandingTrouble(const std::string& id, const Tracked& tracked) const {
  for (const device::Evidence& evidence : tracked.last->evidence) {
    const device::Verdict verdict = Judge(id, evidence);
    if (TakesOut(verdict.severity)) return verdict.reason;
  }
  if (!tracked.last->reachable) return "it does not answer";
  return std::nullopt;
}

std::optional<std::string> Monitor::HappenedTrouble(const Tracked& tracked, bool driver_tells) const {
  for (const auto& [what, trouble] : tracked.happened)
    if (!trouble.proven_over && !driver_tells)
      return trouble.reason + "; this driver cannot say when it is over: reset the device or reload the driver";
  return std::nullopt;
}

void Monitor::Evaluate(const std::string& id, Tracked& tracked) {
  executor_.Cancel(tracked.timer);
  const base::TimePoint now = executor_.clock().Now();
  const std::string happened = tracked.happened.empty() ? "" : tracked.happened.begin()->second.reason;
  if (!tracked.last) return Set(id, happened.empty() ? HealthState::kUnknown : HealthState::kUnhealthy, happened);

  auto trouble = StandingTrouble(id, tracked);
  const bool hangs = !tracked.last->evidence.empty() && tracked.last->evidence.front().kind == "hang";
  if (!trouble) trouble = HappenedTrouble(tracked, tracked.last->tells_recovery);
  if (trouble) {
    tracked.well_since.reset();
    tracked.was_unwell = true;
    return Set(id, hangs ? HealthState::kUnknown : HealthState::kUnhealthy, happened.empty() ? *trouble : happened);
  }
  if (tracked.happened.empty() && !tracked.was_unwell) return Set(id, HealthState::kHealthy, "");

  tracked.was_unwell = true;
  if (!tracked.well_since) tracked.well_since = now;
  const base::Duration left = *tracked.well_since + options_.probation - now;
  if (left <= base::Duration(0)) {
    tracked.happened.clear();
    tracked.was_unwell = false;
    return Set(id, HealthState::kHealthy, "");
  }
  Set(id, HealthState::kUnhealthy,
      (happened.empty() ? std::string("it was unwell") : happened) + "; looks well again, on probation for " +
          base::FormatDuration(options_.probation));
  tracked.timer = executor_.PostAfter(left, [this, id] { Evaluate(id, devices_[id]); });
}

void Monitor::Set(const std::string& id, HealthState state, const std::string& reason) {
  const auto before = inventory_.published().Get();
  const inventory::Entry* entry = before->Find(id);
  if (entry == nullptr || entry->health.state == HealthState::kGone) return;
  if (entry->health.state != state)
    base::Log(state == HealthState::kHealthy ? base::kInfo : base::kError, "health changed",
              {{"device", id}, {"from", ToString(entry->health.state)}, {"to", ToString(state)}, {"why", reason}});
  inventory_.SetHealth(id, state, reason, executor_.clock().Wall());
}

void Monitor::SetProbation(base::Duration probation) {
  if (options_.probation == probation) return;
  options_.probation = probation;
  for (auto& [id, tracked] : devices_)
    if (tracked.last) Evaluate(id, tracked);
}

std::vector<EvidenceCount> Monitor::Counts() const {
  std::vector<EvidenceCount> counts;
  counts.reserve(counts_.size());
  for (const auto& [what, count] : counts_) counts.push_back(count);
  return counts;
}

}  // namespace penstock::node::health
