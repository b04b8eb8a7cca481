// For whom parts are created, and when they are removed.
#include "node/change/parts_on_demand.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "base/core/strings.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "node/change/division_now.h"
#include "node/change/part_reservations.h"
#include "node/change/part_room.h"
#include "node/change/part_sites.h"
#include "node/change/part_steps.h"
#include "node/change/pauses.h"
#include "node/ledger/capacity.h"
#include "node/share/describe.h"
#include "os/kept_file.h"

namespace penstock::node::change {

using device::Facts;
using inventory::Entry;
using partition::DesiredParts;
using partition::Division;
using partition::ExistingPart;

namespace {

constexpr base::Duration kPartsCreatedWithin = std::chrono::minutes(3);
constexpr base::Duration kFirstPartsPause = std::chrono::seconds(1);
// In a forecast, a device that is left alone for less than this after a failure counts: no run ends
// for what the next attempt may serve.
constexpr base::Duration kShortPause = std::chrono::seconds(30);
constexpr int kMostPartsDoublings = 6;

bool IsThere(const Entry* entry) {
  return entry != nullptr && entry->health.state != device::HealthState::kGone;
}

}  // namespace

struct PartsOnDemand::State : std::enable_shared_from_this<State> {
  State(base::Executor& c, base::Executor& io, Divisions::Node n, Divisions::VendorOf v,
        const std::string& path, OnDemandParts remembered, std::string boot_id)
      : control(c),
        node(n),
        vendor_of(std::move(v)),
        boot(std::move(boot_id)),
        sites(node, vendor_of),
        steps(control, node, vendor_of),
        parts(std::move(remembered)),
        file(c, io, path,
             "cannot write which parts were created on demand; a restart would leave them") {}

  void Wake() { node.changes.Wake(); }

  void Changed() {
    Wake();
    if (on_change) on_change();
  }

  void Keep() { file.Keep(EncodeOnDemandParts(parts, boot)); }

  base::TimePoint Now() const { return control.clock().Now(); }

  // --- devices and their parts

  const DeviceChange* OwnChangeOf(const std::string& device) const {
    return node.changes.OfKind(kName, device);
  }

  /// Why nothing is created on a device now; empty: something can be. It is not left alone any more
  /// after a failure `at` that time.
  std::string WhyNot(const Entry& entry, const std::set<std::string>& kept_back,
                     base::TimePoint at) const {
    const std::string& id = entry.facts->id;
    if (kept_back.contains(id)) return "it is kept for requests ahead in the queue";
    if (entry.health.state != device::HealthState::kHealthy) return entry.health.reason;
    if (const DeviceChange* change = node.changes.On(id); change != nullptr) {
      if (change->kind != kName) return "another change of it is under way: " + change->kind;
      if (!change->failure.empty()) return change->failure;
    }
    if (std::string why = sites.WhyClosed(entry); !why.empty()) return why;
    return pauses.Why(id, at);
  }
  std::string WhyNot(const Entry& entry, const std::set<std::string>& kept_back) const {
    return WhyNot(entry, kept_back, Now());
  }

  /// Whether the part was created on demand and is to be removed now.
  bool IsIdle(const std::string& part) const { return IsIdle(part, *node.ledger.Get()); }
  bool IsIdle(const std::string& part, const ledger::Snapshot& ledger) const {
    return parts.contains(part) && !reservations.Has(part) && node.changes.On(part) == nullptr &&
           pauses.Why(part, Now()).empty() && ledger.Free(part);
  }

  /// As it will be with this ledger: without parts that are about to be removed, and with those
  /// that are about to be created.
  Division Expected(const Facts& device, const ledger::Snapshot& ledger) const {
    Division now =
        DivisionNow(device, *node.inventory.published().Get(), ledger, *node.changes.Servers());
    std::erase_if(now.parts, [&](const ExistingPart& part) { return IsIdle(part.id, ledger); });
    const auto expect = [&](const DesiredParts& part, const std::string& holder) {
      const auto there = std::ranges::find_if(now.parts, [&](const ExistingPart& one) {
        return one.parent.empty() && IsAt(part, one.profile, one.placement);
      });
      if (there != now.parts.end())
        there->holder = there->holder.empty() ? holder : there->holder;
      else
        now.parts.push_back({.id = "new",
                             .profile = part.profile,
                             .parent = "",
                             .placement = part.placement,
                             .holder = holder});
    };
    for (const ReservedPart& one : reservations.On(device.id))
      expect(one.part, "a request that is about to be served");
    if (const DeviceChange* change = OwnChangeOf(device.id))
      for (const DesiredParts& part : PartsRecordOf(*change).create)
        expect(part, "a request that has left");
    return now;
  }

  // --- requests

  base::Result<std::string> Prepare(const PartsRequest& request, const base::Error& why_not) {
    if (const Reservation* reserved = reservations.Of(request.ticket)) {
      const bool preparing = IsPreparing(request.ticket);
      if (preparing && !IsLost(*reserved)) return Waiting(*reserved);
      if (preparing || AnyGone(*reserved)) {
        Release(request.ticket);
      } else if (reserved->size() + request.missing > request.count) {
        return GiveUp(request.ticket, why_not);
      }
    }
    auto room = FindRoom(request);
    if (!room.ok()) {
      Release(request.ticket);  // it must not keep from others what does not serve it
      return room.error();
    }
    Wake();
    return Waiting(reservations.Add(request.ticket, *room));
  }

  /// From the first plan until the last change of its devices has ended: only then are the parts
  /// offered.
  bool IsPreparing(const std::string& ticket) const {
    const Reservation* reserved = reservations.Of(ticket);
    return reserved != nullptr && std::ranges::any_of(*reserved, [this](const auto& one) {
             return one.id.empty() || OwnChangeOf(one.device) != nullptr;
           });
  }

  /// Whether a part that is not created yet cannot be created any more where it was planned.
  bool IsLost(const Reservation& reserved) const {
    const auto snapshot = node.inventory.published().Get();
    return std::ranges::any_of(reserved, [&](const ReservedPart& one) {
      if (!one.id.empty() || OwnChangeOf(one.device) != nullptr) return false;
      const Entry* entry = snapshot->Find(one.device);
      return entry == nullptr || !sites.IsSetAside(*entry) || !WhyNot(*entry, {}).empty();
    });
  }

  bool AnyGone(const Reservation& reserved) const {
    const auto snapshot = node.inventory.published().Get();
    return std::ranges::any_of(
        reserved, [&](const ReservedPart& one) { return !IsThere(snapshot->Find(one.id)); });
  }

  /// All parts are there, and the request cannot have them: as their number of shares or their
  /// health is, for example. It is not served so by creating them once more.
  base::Error GiveUp(const std::string& ticket, const base::Error& why_not) {
    for (const ReservedPart& one : *reservations.Of(ticket))
      Pause(one.device, "a part that was created there was of no use: " + why_not.message());
    Release(ticket);
    return why_not;
  }

  void Release(const std::string& ticket) {
    if (reservations.Release(ticket)) Wake();
  }

  /// "1g.5gb is being created on GPU 0".
  std::string Waiting(const Reservation& reserved) const {
    const auto snapshot = node.inventory.published().Get();
    std::vector<std::string> texts;
    for (const ReservedPart& one : reserved)
      if (const Entry* entry = snapshot->Find(one.device))
        texts.push_back(one.part.profile + " is being created on " +
                        share::Describe(*entry->facts));
    return base::Join(texts, "; ");
  }

  /// Where all parts that the request lacks can be created at once.
  base::Result<Reservation> FindRoom(const PartsRequest& request) const {
    const auto snapshot = node.inventory.published().Get();
    const std::vector<const Entry*> all = sites.For(request.profile, request.model, *snapshot);
    if (all.empty())
      return base::Error(base::Code::kNotFound, "no device is set aside for " + request.profile);
    std::vector<std::string> reasons;
    std::vector<PartSite> open, empty;
    for (const Entry* entry : all) {
      const Facts& device = *entry->facts;
      PartSite site{.device = device.id,
                    .text = share::Describe(device),
                    .profile = sites.ProfileOn(*entry, request.profile)->name,
                    .division = {.device = device.id, .profiles = device.profiles}};
      empty.push_back(site);
      if (std::string why = WhyNot(*entry, request.kept_back); !why.empty()) {
        reasons.push_back(site.text + ": " + why);
        continue;
      }
      site.division = Expected(device, *node.ledger.Get());
      open.push_back(std::move(site));
    }
    const std::vector<PartPlace> places = PlaceParts(open, request.missing);
    if (places.size() == request.missing) {
      Reservation reserved;
      for (const PartPlace& place : places)
        reserved.push_back({open[place.site].device, place.part, ""});
      return reserved;
    }
    if (const auto most = PlaceParts(empty, request.missing).size(); most < request.missing)
      return base::Error(base::Code::kFailedPrecondition,
                         "requested " + std::to_string(request.count) + " parts " +
                             request.profile + ", and of those there can be " +
                             std::to_string(request.count - request.missing + most));
    if (!open.empty()) reasons.push_back(WhyNoRoom(open, request.missing, places));
    return base::Error(open.empty() ? base::Code::kUnavailable : base::Code::kResourceExhausted,
                       request.profile + " cannot be created now; " + base::Join(reasons, "; "));
  }

  /// Parts that do not exist and are held in a forecast, by id.
  using Foreseen = std::map<std::string, ReservedPart>;

  std::vector<ledger::Slot> Foresee(const PartsRequest& request, const ledger::Snapshot& then,
                                    Foreseen& foreseen) const {
    const auto snapshot = node.inventory.published().Get();
    std::vector<PartSite> open;
    std::vector<const Entry*> entries;
    for (const Entry* entry : sites.For(request.profile, request.model, *snapshot)) {
      if (!WhyNot(*entry, request.kept_back, Now() + kShortPause).empty()) continue;
      const Facts& device = *entry->facts;
      Division division = Expected(device, then);
      for (const ledger::Lease& lease : then.leases)
        for (const ledger::Slot& slot : lease.slots)
          if (const auto part = foreseen.find(slot.id);
              part != foreseen.end() && part->second.device == device.id)
            division.parts.push_back({.id = slot.id,
                                      .profile = part->second.part.profile,
                                      .parent = "",
                                      .placement = part->second.part.placement,
                                      .holder = lease.id});
      open.push_back({.device = device.id,
                      .text = "",
                      .profile = sites.ProfileOn(*entry, request.profile)->name,
                      .division = std::move(division)});
      entries.push_back(entry);
    }
    const std::vector<PartPlace> places = PlaceParts(open, request.missing);
    if (places.size() < request.missing) return {};
    std::vector<ledger::Slot> slots;
    for (const PartPlace& place : places) {
      const Entry& entry = *entries[place.site];
      const std::string id = "foreseen " + std::to_string(foreseen.size());
      foreseen[id] = {entry.facts->id, place.part, id};
      slots.push_back({.id = id,
                       .device = id,
                       .ancestors = {{entry.facts->id, device::CapacityOf(*entry.facts)}},
                       .capacity = sites.ProfileOn(entry, place.part.profile)->capacity});
    }
    return slots;
  }

  // --- changes

  std::vector<DeviceChange> Due() {
    const auto snapshot = node.inventory.published().Get();
    Forget(*snapshot);
    UseIdle(*snapshot);
    // What divides or resets devices may need the driver for itself.
    if (node.changes.AnyAt("divide") || node.changes.AnyAt("reset")) return {};
    std::vector<DeviceChange> due;
    for (const Entry& entry : snapshot->devices) {
      const std::string& id = entry.facts->id;
      PartsRecord record = Wanted(id, *snapshot);
      if ((record.create.empty() && record.remove.empty()) || node.changes.On(id) != nullptr ||
          !Divisions::WhyNotReady(&entry, vendor_of).empty())
        continue;
      for (const Entry& part : snapshot->devices)
        if (part.IsPartOf(id) && !record.remove.contains(part.facts->id))
          record.kept.insert(part.facts->id);
      due.push_back({.devices = {{.id = id, .allocator = node.changes.AllocatorOf(id)}},
                     .details = EncodePartsRecord(record)});
    }
    return due;
  }

  /// A part that became idle serves a request that waits for another one like it.
  void UseIdle(const inventory::Snapshot& snapshot) {
    const auto use = [&](ReservedPart& one) {
      if (node.changes.On(one.device) != nullptr) return;
      const auto idle = std::ranges::find_if(parts, [&](const auto& part) {
        const Entry* entry = snapshot.Find(part.first);
        return part.second == one.device && IsThere(entry) &&
               entry->health.state == device::HealthState::kHealthy &&
               entry->facts->profile == one.part.profile && IsIdle(part.first) &&
               HolderOf(part.first, snapshot, *node.ledger.Get(), *node.changes.Servers()).empty();
      });
      if (idle == parts.end()) return;
      one.id = idle->first;
      one.part.placement = snapshot.Find(one.id)->facts->placement;
    };
    if (reservations.Replace(use) && on_change) on_change();
  }

  /// What is to be created and removed on a device now.
  PartsRecord Wanted(const std::string& device, const inventory::Snapshot& snapshot) const {
    PartsRecord record{.boot = boot};
    for (const ReservedPart& one : reservations.On(device))
      if (one.id.empty() && pauses.Why(device, Now()).empty()) record.create.push_back(one.part);
    for (const auto& [part, of] : parts)
      if (of == device && IsThere(snapshot.Find(part)) && IsIdle(part)) record.remove.insert(part);
    return record;
  }

  /// Parts that are not there any more, as after a reset. Those of a device that cannot be seen now
  /// may come back.
  void Forget(const inventory::Snapshot& snapshot) {
    const auto forgotten = std::erase_if(parts, [&](const auto& part) {
      const Entry* device = snapshot.Find(part.second);
      const bool gone = IsThere(device) && node.changes.On(part.second) == nullptr &&
                        Divisions::WhyNotReady(device, vendor_of).empty() &&
                        !IsThere(snapshot.Find(part.first));
      if (gone) pauses.Forget(part.first);
      return gone;
    });
    if (forgotten > 0) Keep();
  }

  StepResult Create(const DeviceChange& change) {
    ASSIGN(const PartsRecord record, DecodePartsRecord(change.details));
    if (record.boot != boot) return std::string();  // nothing of it outlived the reboot
    StepResult created = steps.Create(change);
    // What is left to do here may take long: the requests that lack a part are served elsewhere.
    if (!created.ok() && reservations.DropLacking(change.device(), record.create)) Changed();
    return created;
  }

  /// Remembers the parts that this change has created.
  StepResult Note(const DeviceChange& change) {
    if (PartsRecordOf(change).boot != boot) return std::string();
    const StepResult looked = steps.Look(
        change, [this, &device = change.device()](const Facts& part, const DesiredParts& wanted) {
          if (parts.emplace(part.id, device).second) Keep();
          reservations.Created(device, wanted, part.id);
        });
    if (!looked.ok() || !looked->empty()) return looked;
    if (!file.IsWritten())
      return "the list of its parts is not written yet" +
             (file.problem().empty() ? "" : ": " + file.problem());
    return steps.Read(change);
  }

  void Ended(const DeviceChange& change, const base::Status& result) {
    const std::string& id = change.device();
    const PartsRecord record = PartsRecordOf(change);
    const std::string why = result.ok() ? "another program has created parts where they were "
                                          "planned"
                                        : result.error().message();
    const std::set<std::string> left = steps.Ended(change);
    for (const std::string& part : left) Pause(part, why);
    const bool lacking = reservations.DropLacking(id, record.create);
    if (left.empty() && (lacking || !result.ok()))  // else creation was not tried
      Pause(id, why);
    else if (!record.create.empty() && result.ok())
      pauses.Forget(id);
    Changed();
  }

  void Pause(const std::string& id, const std::string& why) {
    base::Log(base::kError, "parts on demand: a device or part is left alone for a while",
              {{"device", id}, {"why", why}});
    control.PostAfter(pauses.Add(id, why, Now()), base::IfAlive(this, &State::Changed));
  }

  base::Executor& control;
  const Divisions::Node node;
  const Divisions::VendorOf vendor_of;
  const std::string boot;
  PartSites sites;
  PartSteps steps;
  OnDemandParts parts;
  os::KeptFile file;
  std::vector<ChangeStep> change_steps;
  PartReservations reservations;
  Pauses pauses{kFirstPartsPause, kMostPartsDoublings};  // of devices and of parts
  std::function<void()> on_change;
};

PartsOnDemand::PartsOnDemand(base::Executor& control, base::Executor& io, Divisions::Node node,
                             Divisions::VendorOf vendor_of, const std::string& path,
                             OnDemandParts remembered, std::string boot_id)
    : state_(std::make_shared<State>(control, io, node, std::move(vendor_of), path,
                                     std::move(remembered), std::move(boot_id))) {
  State* const state = state_.get();
  state->file.OnWrite([state] { state->Wake(); });
  state->change_steps = {
      DeviceChanges::Withdraw(),
      {.name = "await release",
       .take =
           [state](const DeviceChange& change) { return state->node.changes.AwaitFree(change); },
       .most = kReleasedWithin},
      {.name = "create",
       .take = [state](const DeviceChange& change) { return state->Create(change); },
       .most = kPartsCreatedWithin,
       .recorded = true,
       .uses_driver = true},
      {.name = "note",
       .take = [state](const DeviceChange& change) { return state->Note(change); },
       .finally = true}};
  node.changes.Add(*this);
}

PartsOnDemand::~PartsOnDemand() { state_->file.OnWrite(nullptr); }

void PartsOnDemand::SetDevices(const std::vector<std::string>& set_aside) {
  if (state_->sites.Set(set_aside)) state_->Changed();
}

void PartsOnDemand::OnChange(std::function<void()> changed) {
  state_->on_change = std::move(changed);
}

base::Result<std::string> PartsOnDemand::Prepare(const PartsRequest& request,
                                                 const base::Error& why_not) {
  return state_->Prepare(request, why_not);
}

PartsOnDemand::Forecast PartsOnDemand::Foresee() const {
  const auto snapshot = state_->node.inventory.published().Get();
  if (std::ranges::none_of(snapshot->devices,
                           [&](const Entry& entry) { return state_->sites.IsSetAside(entry); }))
    return nullptr;
  return [state = state_, foreseen = std::make_shared<State::Foreseen>()](
             const PartsRequest& request, const ledger::Snapshot& then) {
    return state->Foresee(request, then, *foreseen);
  };
}

bool PartsOnDemand::IsPreparing(const std::string& ticket) const {
  return state_->IsPreparing(ticket);
}

void PartsOnDemand::Release(const std::string& ticket) { state_->Release(ticket); }

std::set<std::string> PartsOnDemand::ReservedForOthers(const std::string& ticket) const {
  return state_->reservations.OfOthers(ticket);
}

std::set<std::string> PartsOnDemand::CouldServe(const std::string& profile,
                                                const std::string& model) const {
  std::set<std::string> devices;
  const auto snapshot = state_->node.inventory.published().Get();
  for (const Entry* entry : state_->sites.For(profile, model, *snapshot))
    if (state_->sites.WhyClosed(*entry).empty()) devices.insert(entry->facts->id);
  for (const auto& [part, device] : state_->parts)
    if (devices.contains(device)) devices.insert(part);
  return devices;
}

double PartsOnDemand::FractionOf(const std::string& profile) const {
  double largest = 0;
  const auto snapshot = state_->node.inventory.published().Get();
  for (const Entry* entry : state_->sites.For(profile, "", *snapshot))
    largest = std::max(
        largest,
        ledger::FractionOf({.ancestors = {{entry->facts->id, device::CapacityOf(*entry->facts)}},
                            .capacity = state_->sites.ProfileOn(*entry, profile)->capacity}));
  return largest;
}

const std::vector<ChangeStep>& PartsOnDemand::steps() const { return state_->change_steps; }

std::set<std::string> PartsOnDemand::KeptParts(const DeviceChange& change) const {
  return PartsRecordOf(change).kept;
}

std::string PartsOnDemand::Explain(const DeviceChange& change, const std::string&) const {
  return std::string(PartsRecordOf(change).create.empty()
                         ? "an unused part of it is being removed"
                         : "a part of it is being created for a request") +
         (change.waits_for.empty() ? "" : ": " + change.waits_for);
}

std::vector<DeviceChange> PartsOnDemand::Due() { return state_->Due(); }

bool PartsOnDemand::AwaitsDevices() const {
  return !state_->parts.empty() || !state_->reservations.empty();
}

void PartsOnDemand::Ended(const DeviceChange& change, const base::Status& result) {
  state_->Ended(change, result);
}

}  // namespace penstock::node::change
