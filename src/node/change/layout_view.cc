#include "node/change/layout_view.h"

#include <algorithm>
#include <utility>

#include "node/change/division_now.h"
#include "node/change/division_run.h"
#include "node/partition/desired.h"
#include "node/partition/select.h"
#include "node/share/allocator.h"

namespace penstock::node::change {

using device::Facts;
using inventory::Entry;

namespace {

base::Result<std::map<std::string, int>> SelectAmong(const api::Layout& layout,
                                                     const std::vector<const Facts*>& devices) {
  ASSIGN(const auto selection, partition::SelectDevices(layout, devices));
  std::map<std::string, int> selected;
  for (const auto& [device, rule] : selection.devices)
    if (rule != nullptr) selected[device->id] = static_cast<int>(rule - layout.rules.data());
  return selected;
}

/// The rule for a device: the one that was selected when the layout was applied; of a device that
/// came later, one for all devices.
const api::LayoutRule* RuleOf(const AppliedLayout& layout, const Facts& device) {
  const auto& rules = layout.layout.rules;
  if (const auto found = layout.selected.find(device.id); found != layout.selected.end()) {
    const auto index = static_cast<std::size_t>(found->second);
    return index < rules.size() ? &rules[index] : nullptr;
  }
  for (const api::LayoutRule& rule : rules) {
    if (!rule.all_devices) continue;
    const auto selected = SelectAmong({.name = layout.layout.name, .rules = {rule}}, {&device});
    if (selected.ok() && !selected->empty()) return &rule;
  }
  return nullptr;
}

base::Result<partition::PartitionPlan> PlanOf(const partition::Division& now,
                                              partition::DesiredDivision desired, bool mode_only) {
  const device::Mode* mode = now.FindMode(desired.mode);
  const bool profiles_come_later =
      now.profiles.empty() && mode != nullptr && mode->current != desired.value;
  if (mode_only || profiles_come_later) desired.parts.clear();
  return MakePlan(now, desired, {});
}

DivisionRecord MakeRecord(const AppliedLayout& layout, const partition::Division& now,
                          const partition::DesiredDivision& desired,
                          const partition::PartitionPlan& plan, bool mode_only) {
  DivisionRecord record{.layout = layout.layout.name,
                        .desired = desired,
                        .before = AsItIs(now, desired),
                        .mode_only = mode_only,
                        .skip_reset = layout.skip_reset};
  record.resets = std::ranges::any_of(plan.steps, [](const partition::PlanStep& step) {
    return step.kind == partition::PlanStep::Kind::kReset;
  });
  record.kept = {plan.kept.begin(), plan.kept.end()};
  return record;
}

}  // namespace

bool IsBeforeDivision(const DeviceChange& change) {
  return change.step == DeviceChanges::Withdraw().name || change.step == kAwaitRelease ||
         change.step == kStopClients;
}

DivisionRecord RecordOf(const DeviceChange& change) {
  auto record = DecodeDivision(change.details);
  return record.ok() ? *std::move(record) : DivisionRecord{};
}

ReloadNeed NeedOf(const std::vector<LayoutCandidate>& candidates, int request) {
  const auto awaits = [](const LayoutCandidate& one) { return one.awaits_reload; };
  const auto is_ready = [&](const LayoutCandidate& one) {
    return !awaits(one) || !one.requested.empty();
  };
  return {.known = !candidates.empty(),
          .wanted = std::ranges::any_of(candidates, awaits),
          .ready = std::ranges::all_of(candidates, is_ready),
          .request = request};
}

void ExplainReload(std::vector<LayoutCandidate>& candidates, const ReloadOutlook& outlook) {
  const std::string follows =
      " and takes effect when the driver is loaded again" +
      (outlook.why_not.empty() ? ": unload and load it while no device is in use, or reboot"
                               : ", which the agent does as soon as it can: " + outlook.why_not);
  for (LayoutCandidate& one : candidates) {
    if (one.requested.empty()) continue;
    if (outlook.now)
      one.division.reason = kAboutToBegin;
    else
      one.division.reason += follows;
  }
}

bool LayoutView::CanBeDivided(const Divisions::Vendor& vendor) const {
  return vendor.backend != nullptr && vendor.dialect != nullptr &&
         vendor.dialect->part_terms() != nullptr;
}

bool LayoutView::CanBeDivided(const Entry& entry) const {
  return entry.facts->parent.empty() && entry.health.state != device::HealthState::kGone &&
         CanBeDivided(vendor_of_(entry.facts->vendor));
}

base::Result<std::map<std::string, int>> LayoutView::Select(const api::Layout& layout) const {
  std::vector<const Facts*> devices;
  const auto snapshot = node_.inventory.published().Get();
  for (const Entry& entry : snapshot->devices)
    if (CanBeDivided(entry)) devices.push_back(entry.facts.get());
  return SelectAmong(layout, devices);
}

std::vector<std::string> LayoutView::SetOnDemand(std::vector<std::string> devices) {
  return std::exchange(on_demand_, std::move(devices));
}

bool LayoutView::IsModeOnly(const AppliedLayout& layout, const Facts& device) const {
  if (layout.mode_only) return true;
  const auto snapshot = node_.inventory.published().Get();
  const Entry* entry = snapshot->Find(device.id);
  return entry != nullptr && share::IsForPartsOnDemand(on_demand_, *entry);
}

std::vector<LayoutCandidate> LayoutView::LookAt(const AppliedLayout& layout,
                                                const WhyPaused& why_paused) const {
  const auto snapshot = node_.inventory.published().Get();
  std::vector<LayoutCandidate> found;
  for (const Entry& entry : snapshot->devices) {
    if (!CanBeDivided(entry)) continue;
    const Facts& device = *entry.facts;
    LayoutCandidate candidate{.division = {.device = device.id, .number = device::NumberOf(device)},
                              .due = {}};
    if (const api::LayoutRule* rule = RuleOf(layout, device))
      Decide(layout, *rule, device, why_paused, candidate);
    else
      candidate.division.state = "unselected";
    found.push_back(std::move(candidate));
  }
  return found;
}

void LayoutView::Decide(const AppliedLayout& layout, const api::LayoutRule& rule,
                        const Facts& device, const WhyPaused& why_paused,
                        LayoutCandidate& candidate) const {
  const auto conclude = [&](std::string_view is, std::string reason) {
    candidate.division.state = is;
    candidate.division.reason = std::move(reason);
  };
  const auto desired = partition::DesiredOn(device, rule, *vendor_of_(device.vendor).dialect);
  const partition::Division now = DivisionNow(device, *node_.inventory.published().Get(),
                                              *node_.ledger.Get(), *node_.changes.Servers());
  candidate.awaits_reload = desired.ok() && AwaitsReload(now, desired->division);
  if (const DeviceChange* change = node_.changes.OfKind(kind_, device.id))
    return conclude("dividing", change->waits_for);
  if (!desired.ok()) return conclude("refused", desired.error().message());
  const bool mode_only = IsModeOnly(layout, device);
  const std::string differs = WhyNotAsDesired(now, desired->division, mode_only);
  if (differs.empty() || (mode_only && layout.skip_reset && IsModePending(now, desired->division)))
    return conclude("divided", "");
  if (candidate.awaits_reload &&
      now.FindMode(desired->division.later)->pending == desired->division.later_value) {
    candidate.requested = desired->division.later_value;
    return conclude("waiting", candidate.requested + " was requested");
  }
  if (layout.achieved.contains(device.id))
    return conclude("changed", "since then another program has changed it: " + differs);
  if (const DeviceChange* change = node_.changes.Of(device.id))
    return conclude("waiting", change->kind == kReloadKind
                                   ? std::string(kAboutToBegin)
                                   : "another change of it is under way: " + change->kind);
  const auto plan = PlanOf(now, desired->division, mode_only);
  if (!plan.ok()) {
    const bool may_change = plan.error().code() == base::Code::kFailedPrecondition;
    return conclude(may_change ? "waiting" : "refused", plan.error().message());
  }
  if (std::string why = why_paused(device.id); !why.empty())
    return conclude("failed", std::move(why));
  conclude("waiting", std::string(kAboutToBegin));
  candidate.due = DeviceChange{
      .devices = {{.id = device.id, .allocator = node_.changes.AllocatorOf(device.id)}},
      .details = EncodeDivision(MakeRecord(layout, now, desired->division, *plan, mode_only))};
}

bool LayoutView::Wants(const AppliedLayout& layout, const DeviceChange& change) const {
  const auto snapshot = node_.inventory.published().Get();
  const Entry* entry = snapshot->Find(change.devices.front().id);
  if (entry == nullptr) return false;
  const api::LayoutRule* rule = RuleOf(layout, *entry->facts);
  const device::Dialect* dialect = vendor_of_(entry->facts->vendor).dialect;
  if (rule == nullptr || dialect == nullptr) return false;
  const auto desired = partition::DesiredOn(*entry->facts, *rule, *dialect);
  const DivisionRecord record = RecordOf(change);
  return desired.ok() && desired->division == record.desired &&
         IsModeOnly(layout, *entry->facts) == record.mode_only &&
         layout.skip_reset == record.skip_reset;
}

bool LayoutView::AnyWithoutDriver() const {
  const auto snapshot = node_.inventory.published().Get();
  return std::ranges::any_of(snapshot->vendors, [this](const inventory::VendorEntry& one) {
    return one.driver == nullptr && CanBeDivided(vendor_of_(one.vendor));
  });
}

}  // namespace penstock::node::change
