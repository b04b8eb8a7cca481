// For whom parts are created, when they are removed, and the steps of the changes.
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
#include "node/change/division_run.h"
#include "node/change/part_room.h"
#include "node/change/pauses.h"
#include "node/ledger/capacity.h"
#include "node/partition/desired.h"
#include "node/share/allocator.h"
#include "node/share/describe.h"
#include "os/kept_file.h"

namespace penstock::node::change {

using device::Facts;
using inventory::Entry;
using partition::DesiredDivision;
using partition::DesiredParts;
using partition::Division;
using partition::ExistingPart;

namespace {

constexpr base::Duration kPartsReleasedWithin = std::chrono::minutes(2);
constexpr base::Duration kPartsCreatedWithin = std::chrono::minutes(3);
constexpr base::Duration kFirstPartsPause = std::chrono::seconds(1);
constexpr int kMostPartsDoublings = 6;
constexpr base::Duration kLookAgain = std::chrono::seconds(1);

bool IsAt(const DesiredParts& wanted, const std::string& profile,
          const std::optional<device::Placement>& placement) {
  return wanted.profile == profile && wanted.placement == placement;
}

PartsRecord PartsRecordOf(const DeviceChange& change) {
  auto record = DecodePartsRecord(change.details);
  return record.ok() ? *std::move(record) : PartsRecord{};
}

/// As it is now, without what is removed and with what is created.
DesiredDivision DesiredBy(const PartsRecord& record, Division now) {
  std::erase_if(now.parts,
                [&](const ExistingPart& part) { return record.remove.contains(part.id); });
  DesiredDivision desired = AsItIs(now, "");
  for (const DesiredParts& part : record.create)
    if (std::ranges::none_of(desired.parts, [&](const DesiredParts& one) {
          return !one.outer && IsAt(part, one.profile, one.placement);
        }))
      desired.parts.push_back(part);
  return desired;
}

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

  bool IsSetAside(const Entry& entry) const {
    return entry.facts->parent.empty() && entry.health.state != device::HealthState::kGone &&
           share::IsForPartsOnDemand(set_aside, entry);
  }

  /// Of a device that is set aside; null: it has no such parts. Only those whose placements the
  /// driver lists are created, because a restarted agent finds them by their placement.
  const device::PartProfile* ProfileOn(const Entry& entry, const std::string& name) const {
    const device::Dialect* dialect = vendor_of(entry.facts->vendor).dialect;
    if (dialect == nullptr || dialect->part_terms() == nullptr) return nullptr;
    const auto profile = dialect->FindProfile(name, entry.facts->profiles);
    const bool usable =
        profile.ok() && (*profile)->within.empty() && !(*profile)->placements.empty();
    return usable ? *profile : nullptr;
  }

  /// The devices that are set aside and have the profile.
  std::vector<const Entry*> SitesFor(const std::string& profile, const std::string& model,
                                     const inventory::Snapshot& snapshot) const {
    std::vector<const Entry*> sites;
    for (const Entry& entry : snapshot.devices)
      if (IsSetAside(entry) && ProfileOn(entry, profile) != nullptr &&
          (model.empty() || device::ModelMatches(model, entry.facts->model)))
        sites.push_back(&entry);
    return sites;
  }

  const DeviceChange* OwnChangeOf(const std::string& device) const {
    return node.changes.OfKind(kName, device);
  }

  /// Why parts are never created on a device as it is assigned and configured; empty: they are.
  std::string WhyClosed(const Entry& entry) const {
    const Facts& device = *entry.facts;
    if (OwnChangeOf(device.id) != nullptr) return "";  // it is withdrawn meanwhile
    if (node.changes.AllocatorOf(device.id) != share::kLocalAllocator)
      return "it is not assigned to local users";
    const device::PartTerms& terms = *vendor_of(device.vendor).dialect->part_terms();
    const auto mode = std::ranges::find(device.modes, terms.mode, &device::Mode::name);
    return mode == device.modes.end() || mode->current != terms.on
               ? "its mode " + terms.mode + " is not " + terms.on
               : "";
  }

  /// Why nothing is created on a device now; empty: something can be.
  std::string WhyNot(const Entry& entry, const std::set<std::string>& kept_back) const {
    const std::string& id = entry.facts->id;
    if (kept_back.contains(id)) return "it is kept for requests ahead in the queue";
    if (entry.health.state != device::HealthState::kHealthy) return entry.health.reason;
    if (const DeviceChange* change = node.changes.On(id); change != nullptr) {
      if (change->kind != kName) return "another change of it is under way: " + change->kind;
      if (!change->failure.empty()) return change->failure;
    }
    if (std::string why = WhyClosed(entry); !why.empty()) return why;
    return pauses.Why(id, Now());
  }

  bool IsReserved(const std::string& part) const {
    return std::ranges::any_of(reservations, [&](const auto& reserved) {
      return std::ranges::any_of(reserved.second,
                                 [&](const ReservedPart& one) { return one.id == part; });
    });
  }

  /// Whether the part was created on demand and is to be removed now.
  bool IsIdle(const std::string& part) const {
    return parts.contains(part) && !IsReserved(part) && node.changes.On(part) == nullptr &&
           pauses.Why(part, Now()).empty() &&
           share::HoldersOf(*node.ledger.Get(), part).text.empty();
  }

  /// As it will be: without parts that are about to be removed, and with those that are about to be
  /// created.
  Division Expected(const Facts& device) const {
    Division now = DivisionNow(device, *node.inventory.published().Get(), *node.ledger.Get(),
                               *node.changes.Servers());
    std::erase_if(now.parts, [this](const ExistingPart& part) { return IsIdle(part.id); });
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
    for (const auto& [ticket, reserved] : reservations)
      for (const ReservedPart& one : reserved)
        if (one.device == device.id) expect(one.part, "a request that is about to be served");
    if (const DeviceChange* change = OwnChangeOf(device.id))
      for (const DesiredParts& part : PartsRecordOf(*change).create)
        expect(part, "a request that has left");
    return now;
  }

  // --- requests

  /// A part for a request.
  struct ReservedPart {
    std::string device;
    DesiredParts part;
    std::string id;  // empty: it is not created yet
  };
  using Reservation = std::vector<ReservedPart>;

  base::Result<std::string> Prepare(const PartsRequest& request, const base::Error& why_not) {
    const auto found = reservations.find(request.ticket);
    if (found != reservations.end()) {
      const Reservation& reserved = found->second;
      const bool preparing = IsPreparing(request.ticket);
      if (preparing && !IsLost(reserved)) return Waiting(reserved);
      if (preparing || AnyGone(reserved)) {
        Release(request.ticket);
      } else if (reserved.size() + request.missing > request.count) {
        return GiveUp(request.ticket, why_not);
      }
    }
    auto room = FindRoom(request);
    if (!room.ok()) {
      Release(request.ticket);  // it must not keep from others what does not serve it
      return room.error();
    }
    Reservation& reserved = reservations[request.ticket];
    reserved.insert(reserved.end(), room->begin(), room->end());
    Wake();
    return Waiting(reserved);
  }

  /// From the first plan until the last change of its devices has ended: only then are the parts
  /// offered.
  bool IsPreparing(const std::string& ticket) const {
    const auto reserved = reservations.find(ticket);
    return reserved != reservations.end() &&
           std::ranges::any_of(reserved->second, [this](const auto& one) {
             return one.id.empty() || OwnChangeOf(one.device) != nullptr;
           });
  }

  /// Whether a part that is not created yet cannot be created any more where it was planned.
  bool IsLost(const Reservation& reserved) const {
    const auto snapshot = node.inventory.published().Get();
    return std::ranges::any_of(reserved, [&](const ReservedPart& one) {
      if (!one.id.empty() || OwnChangeOf(one.device) != nullptr) return false;
      const Entry* entry = snapshot->Find(one.device);
      return entry == nullptr || !IsSetAside(*entry) || !WhyNot(*entry, {}).empty();
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
    for (const ReservedPart& one : reservations[ticket])
      Pause(one.device, "a part that was created there was of no use: " + why_not.message());
    Release(ticket);
    return why_not;
  }

  void Release(const std::string& ticket) {
    if (reservations.erase(ticket) > 0) Wake();
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
    const std::vector<const Entry*> all = SitesFor(request.profile, request.model, *snapshot);
    if (all.empty())
      return base::Error(base::Code::kNotFound, "no device is set aside for " + request.profile);
    std::vector<std::string> reasons;
    std::vector<PartSite> sites, empty;
    for (const Entry* entry : all) {
      const Facts& device = *entry->facts;
      PartSite site{.device = device.id,
                    .text = share::Describe(device),
                    .profile = ProfileOn(*entry, request.profile)->name,
                    .division = {.device = device.id, .profiles = device.profiles}};
      empty.push_back(site);
      if (std::string why = WhyNot(*entry, request.kept_back); !why.empty()) {
        reasons.push_back(site.text + ": " + why);
        continue;
      }
      site.division = Expected(device);
      sites.push_back(std::move(site));
    }
    const std::vector<PartPlace> places = PlaceParts(sites, request.missing);
    if (places.size() == request.missing) {
      Reservation reserved;
      for (const PartPlace& place : places)
        reserved.push_back({sites[place.site].device, place.part, ""});
      return reserved;
    }
    if (const auto most = PlaceParts(empty, request.missing).size(); most < request.missing)
      return base::Error(base::Code::kFailedPrecondition,
                         "requested " + std::to_string(request.count) + " parts " +
                             request.profile + ", and of those there can be " +
                             std::to_string(request.count - request.missing + most));
    if (!sites.empty()) reasons.push_back(WhyNoRoom(sites, request.missing, places));
    return base::Error(sites.empty() ? base::Code::kUnavailable : base::Code::kResourceExhausted,
                       request.profile + " cannot be created now; " + base::Join(reasons, "; "));
  }

  // --- changes

  std::vector<DeviceChange> Due() {
    const auto snapshot = node.inventory.published().Get();
    Forget(*snapshot);
    UseIdle(*snapshot);
    // What divides or resets devices may need the driver for itself.
    if (node.changes.AnyAt("divide", "divide") || node.changes.AnyAt("reset", "reset")) return {};
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
    bool any = false;
    for (auto& [ticket, reserved] : reservations)
      for (ReservedPart& one : reserved) {
        if (!one.id.empty() || node.changes.On(one.device) != nullptr) continue;
        const auto idle = std::ranges::find_if(parts, [&](const auto& part) {
          const Entry* entry = snapshot.Find(part.first);
          return part.second == one.device && IsThere(entry) &&
                 entry->health.state == device::HealthState::kHealthy &&
                 entry->facts->profile == one.part.profile && IsIdle(part.first) &&
                 HolderOf(part.first, snapshot, *node.ledger.Get(), *node.changes.Servers())
                     .empty();
        });
        if (idle == parts.end()) continue;
        one.id = idle->first;
        one.part.placement = snapshot.Find(one.id)->facts->placement;
        any = true;
      }
    if (any && on_change) on_change();
  }

  /// What is to be created and removed on a device now.
  PartsRecord Wanted(const std::string& device, const inventory::Snapshot& snapshot) const {
    PartsRecord record{.boot = boot};
    for (const auto& [ticket, reserved] : reservations)
      for (const ReservedPart& one : reserved)
        if (one.device == device && one.id.empty() && pauses.Why(device, Now()).empty())
          record.create.push_back(one.part);
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

  struct Run {
    std::unique_ptr<DivisionRun> run;
    std::optional<base::Status> outcome = {};
    // Of the creation; what is run after that only looks.
    std::set<std::string> before = {};   // ids of parts that were there
    std::set<std::string> created = {};  // addresses
    bool unanswered = false;             // a part may have been created
    bool taken_over = false;             // by the previous agent
    base::TimePoint look_again{};
  };

  static const std::string& IdOf(const DeviceChange& change) { return change.devices.front().id; }

  void Begin(Run& one, const Entry& device, const PartsRecord& record) {
    const std::string id = device.facts->id;
    const Divisions::Vendor vendor = vendor_of(device.facts->vendor);
    one.outcome.reset();
    one.run = std::make_unique<DivisionRun>(
        DivisionRun::Tools{.backend = *vendor.backend,
                           .holder_of =
                               [this, remove = record.remove](const std::string& part) {
                                 return remove.contains(part)
                                            ? HolderOf(part, *node.inventory.published().Get(),
                                                       *node.ledger.Get(), *node.changes.Servers())
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
        DivisionRun::Goal{
            .device = id,
            .address = device.facts->address,
            .desired = [record](const Division& now) { return DesiredBy(record, now); },
            .mode_only = false,
            .skip_reset = true});
    one.run->Start([this, id, describe = vendor.describe](const base::Status& outcome) {
      runs[id].outcome = outcome;
      if (describe) describe({});
      Wake();
    });
  }

  StepResult Create(const DeviceChange& change) {
    const std::string& id = IdOf(change);
    ASSIGN(const PartsRecord record, DecodePartsRecord(change.details));
    if (record.boot != boot) return std::string();  // nothing of it outlived the reboot
    Run& one = runs[id];
    if (!one.run) {
      const auto snapshot = node.inventory.published().Get();
      const Entry* entry = snapshot->Find(id);
      if (std::string why = Divisions::WhyNotReady(entry, vendor_of); !why.empty()) return why;
      one.taken_over = change.taken_over;
      Begin(one, *entry, record);
    }
    if (!one.outcome) return std::string("its driver is asked");
    if (!one.taken_over) one.before = one.run->first_seen();
    one.created = one.run->created();
    one.unanswered = one.unanswered || one.run->unanswered();
    if (one.outcome->ok()) return std::string();
    // What is left to do here may take long: they are served elsewhere.
    if (DropLacking(id, record)) Changed();
    return one.outcome->error();
  }

  /// The requests for which parts were to be created that are not there are placed again.
  bool DropLacking(const std::string& device, const PartsRecord& record) {
    const auto lacks = [&](const auto& reserved) {
      return std::ranges::any_of(reserved.second, [&](const ReservedPart& one) {
        return one.id.empty() && one.device == device &&
               std::ranges::find(record.create, one.part) != record.create.end();
      });
    };
    return std::erase_if(reservations, lacks) > 0;
  }

  /// Finds out which parts there are, and remembers those that this change has created. Waits for
  /// the driver as long as it takes: another program's parts and these could not be
  /// distinguished later.
  StepResult Note(const DeviceChange& change) {
    const std::string& id = IdOf(change);
    const PartsRecord record = PartsRecordOf(change);
    if (record.boot != boot) return std::string();
    const auto snapshot = node.inventory.published().Get();
    const Entry* entry = snapshot->Find(id);
    if (!IsThere(entry)) return base::Error(base::Code::kNotFound, "the device is not there");
    const auto [found, unknown] = runs.try_emplace(id);
    Run& one = found->second;
    if (unknown) one.taken_over = true;
    if (!Looked(one, *entry)) return std::string("its parts are being read");
    for (const DesiredParts& wanted : record.create)
      for (const Facts& part : one.run->seen())
        if (part.parent == id && IsAt(wanted, part.profile, part.placement) &&
            !record.kept.contains(part.id) &&
            (one.created.contains(part.address) ||
             ((one.unanswered || one.taken_over) && !one.before.contains(part.id))))
          Own(part, wanted, id);
    if (!file.IsWritten())
      return "the list of its parts is not written yet" +
             (file.problem().empty() ? "" : ": " + file.problem());
    return IsRead(one.run->seen(), *snapshot) ? std::string()
                                              : std::string("its parts are being read");
  }

  /// Whether the run has seen the device as it is now. Looks again after a run that failed.
  bool Looked(Run& one, const Entry& device) {
    if (one.outcome && one.outcome->ok()) return true;
    const bool looking = one.run && !one.outcome;
    if (looking || Now() < one.look_again || !Divisions::WhyNotReady(&device, vendor_of).empty())
      return false;
    one.look_again = Now() + kLookAgain;
    control.PostAfter(kLookAgain, base::IfAlive(this, &State::Wake));
    Begin(one, device, {});
    return one.outcome && one.outcome->ok();
  }

  void Own(const Facts& part, const DesiredParts& wanted, const std::string& device) {
    if (parts.emplace(part.id, device).second) Keep();
    for (auto& [ticket, reserved] : reservations)
      for (ReservedPart& one : reserved)
        if (one.id.empty() && one.device == device && one.part == wanted) one.id = part.id;
  }

  void Ended(const DeviceChange& change, const base::Status& result) {
    const std::string& id = IdOf(change);
    const PartsRecord record = PartsRecordOf(change);
    const auto run = runs.extract(id);
    const std::string why = result.ok() ? "another program has created parts where they were "
                                          "planned"
                                        : result.error().message();
    bool removed = true;
    if (run && run.mapped().run)
      for (const Facts& part : run.mapped().run->seen())
        if (record.remove.contains(part.id)) {
          Pause(part.id, why);
          removed = false;
        }
    const bool lacking = DropLacking(id, record);
    if (removed && (lacking || !result.ok()))  // else creation was not tried
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
  std::vector<std::string> set_aside;
  OnDemandParts parts;
  os::KeptFile file;
  std::vector<ChangeStep> steps;
  std::map<std::string, Reservation> reservations;       // by ticket
  std::map<std::string, Run> runs;                       // by device
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
  state->steps = {
      DeviceChanges::Withdraw(),
      {.name = "await release",
       .take =
           [state](const DeviceChange& change) { return state->node.changes.AwaitFree(change); },
       .most = kPartsReleasedWithin},
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
  if (state_->set_aside == set_aside) return;
  state_->set_aside = set_aside;
  state_->Changed();
}

void PartsOnDemand::OnChange(std::function<void()> changed) {
  state_->on_change = std::move(changed);
}

base::Result<std::string> PartsOnDemand::Prepare(const PartsRequest& request,
                                                 const base::Error& why_not) {
  return state_->Prepare(request, why_not);
}

bool PartsOnDemand::IsPreparing(const std::string& ticket) const {
  return state_->IsPreparing(ticket);
}

void PartsOnDemand::Release(const std::string& ticket) { state_->Release(ticket); }

std::set<std::string> PartsOnDemand::ReservedForOthers(const std::string& ticket) const {
  std::set<std::string> ids;
  for (const auto& [other, reserved] : state_->reservations)
    for (const State::ReservedPart& one : reserved)
      if (other != ticket && !one.id.empty()) ids.insert(one.id);
  return ids;
}

std::set<std::string> PartsOnDemand::CouldServe(const std::string& profile,
                                                const std::string& model) const {
  std::set<std::string> devices;
  const auto snapshot = state_->node.inventory.published().Get();
  for (const Entry* entry : state_->SitesFor(profile, model, *snapshot))
    if (state_->WhyClosed(*entry).empty()) devices.insert(entry->facts->id);
  for (const auto& [part, device] : state_->parts)
    if (devices.contains(device)) devices.insert(part);
  return devices;
}

double PartsOnDemand::FractionOf(const std::string& profile) const {
  double largest = 0;
  const auto snapshot = state_->node.inventory.published().Get();
  for (const Entry* entry : state_->SitesFor(profile, "", *snapshot))
    largest = std::max(
        largest,
        ledger::FractionOf({.ancestors = {{entry->facts->id, device::CapacityOf(*entry->facts)}},
                            .capacity = state_->ProfileOn(*entry, profile)->capacity}));
  return largest;
}

const std::vector<ChangeStep>& PartsOnDemand::steps() const { return state_->steps; }

std::set<std::string> PartsOnDemand::KeptParts(const DeviceChange& change) const {
  return PartsRecordOf(change).kept;
}

std::string PartsOnDemand::Explain(const DeviceChange& change, const std::string&) const {
  return PartsRecordOf(change).create.empty() ? "an unused part of it is being removed"
                                              : "a part of it is being created for a request";
}

std::vector<DeviceChange> PartsOnDemand::Due() { return state_->Due(); }

bool PartsOnDemand::AwaitsDevices() const {
  return !state_->parts.empty() || !state_->reservations.empty();
}

void PartsOnDemand::Ended(const DeviceChange& change, const base::Status& result) {
  state_->Ended(change, result);
}

}  // namespace penstock::node::change
