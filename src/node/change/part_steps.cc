#include "node/change/part_steps.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "node/change/division_now.h"
#include "node/partition/desired.h"

namespace penstock::node::change {

using device::Facts;
using inventory::Entry;
using partition::DesiredDivision;
using partition::DesiredParts;
using partition::Division;
using partition::ExistingPart;

namespace {

constexpr base::Duration kLookAgain = std::chrono::seconds(1);

/// As it is now, without what is removed and with what is created.
DesiredDivision DesiredBy(const PartsRecord& record, Division now) {
  std::erase_if(now.parts,
                [&](const ExistingPart& part) { return record.remove.contains(part.id); });
  DesiredDivision desired = AsItIs(now, {});
  for (const DesiredParts& part : record.create)
    if (std::ranges::none_of(desired.parts, [&](const DesiredParts& one) {
          return !one.outer && IsAt(part, one.profile, one.placement);
        }))
      desired.parts.push_back(part);
  return desired;
}

}  // namespace

bool IsAt(const DesiredParts& wanted, const std::string& profile,
          const std::optional<device::Placement>& placement) {
  return wanted.profile == profile && wanted.placement == placement;
}

PartsRecord PartsRecordOf(const DeviceChange& change) {
  auto record = DecodePartsRecord(change.details);
  return record.ok() ? *std::move(record) : PartsRecord{};
}

void PartSteps::Begin(Run& one, const Entry& device, const PartsRecord& record) {
  const std::string id = device.facts->id;
  const Divisions::Vendor vendor = vendor_of_(device.facts->vendor);
  one.outcome.reset();
  one.run = std::make_unique<DivisionRun>(
      DivisionRun::Tools{.backend = *vendor.backend,
                         .holder_of =
                             [this, remove = record.remove](const std::string& part) {
                               return remove.contains(part)
                                          ? HolderOf(part, *node_.inventory.published().Get(),
                                                     *node_.ledger.Get(), *node_.changes.Servers())
                                          : std::string("its allocator, because it stays");
                             },
                         .reset =
                             [](const Facts&, const std::function<void(base::Status)>& done) {
                               done(base::Error(base::Code::kInternal, "no part needs a reset"));
                             },
                         .progress =
                             [id](const std::string& step) {
                               base::Log(base::kInfo,
                                         "parts of a device are being changed on demand",
                                         {{"device", id}, {"step", step}});
                             }},
      DivisionRun::Goal{.device = id,
                        .address = device.facts->address,
                        .desired = [record](const Division& now) { return DesiredBy(record, now); },
                        .mode_only = false,
                        .skip_reset = true});
  one.run->Start([this, id, describe = vendor.describe](const base::Status& outcome) {
    runs_[id].outcome = outcome;
    if (describe) describe({});
    node_.changes.Wake();
  });
}

StepResult PartSteps::Create(const DeviceChange& change) {
  const std::string& id = change.device();
  ASSIGN(const PartsRecord record, DecodePartsRecord(change.details));
  Run& one = runs_[id];
  if (!one.run) {
    const auto snapshot = node_.inventory.published().Get();
    const Entry* entry = snapshot->Find(id);
    if (std::string why = Divisions::WhyNotReady(entry, vendor_of_); !why.empty()) return why;
    one.taken_over = change.taken_over;
    Begin(one, *entry, record);
  }
  if (!one.outcome) return std::string("its driver is asked");
  if (!one.taken_over) one.before = one.run->first_seen();
  one.created = one.run->created();
  one.unanswered = one.unanswered || one.run->unanswered();
  if (!one.outcome->ok()) return one.outcome->error();
  return std::string();
}

StepResult PartSteps::Look(const DeviceChange& change, const Own& own) {
  const std::string& id = change.device();
  const PartsRecord record = PartsRecordOf(change);
  const auto snapshot = node_.inventory.published().Get();
  const Entry* entry = snapshot->Find(id);
  if (entry == nullptr || entry->health.state == device::HealthState::kGone)
    return base::Error(base::Code::kNotFound, "the device is not there");
  const auto [found, unknown] = runs_.try_emplace(id);
  Run& one = found->second;
  if (unknown) one.taken_over = true;
  if (!Looked(one, *entry)) return std::string("its parts are being read");
  for (const DesiredParts& wanted : record.create)
    for (const Facts& part : one.run->seen())
      if (part.parent == id && IsAt(wanted, part.profile, part.placement) &&
          !record.kept.contains(part.id) &&
          (one.created.contains(part.address) ||
           ((one.unanswered || one.taken_over) && !one.before.contains(part.id))))
        own(part, wanted);
  return std::string();
}

/// Whether the run has seen the device as it is now. Looks again after a run that failed.
bool PartSteps::Looked(Run& one, const Entry& device) {
  if (one.outcome && one.outcome->ok()) return true;
  const bool looking = one.run && !one.outcome;
  if (looking || control_.clock().Now() < one.look_again ||
      !Divisions::WhyNotReady(&device, vendor_of_).empty())
    return false;
  one.look_again = control_.clock().Now() + kLookAgain;
  control_.PostAfter(kLookAgain, lifetime_.Guard([this] { node_.changes.Wake(); }));
  Begin(one, device, {});
  return one.outcome && one.outcome->ok();
}

StepResult PartSteps::Read(const DeviceChange& change) const {
  const auto run = runs_.find(change.device());
  return run == runs_.end() || !run->second.run ||
                 IsRead(run->second.run->seen(), *node_.inventory.published().Get())
             ? std::string()
             : std::string("its parts are being read");
}

std::set<std::string> PartSteps::Ended(const DeviceChange& change) {
  const PartsRecord record = PartsRecordOf(change);
  const auto run = runs_.extract(change.device());
  std::set<std::string> left;
  if (run && run.mapped().run)
    for (const Facts& part : run.mapped().run->seen())
      if (record.remove.contains(part.id)) left.insert(part.id);
  return left;
}

}  // namespace penstock::node::change
