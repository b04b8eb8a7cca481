// Where parts can be created, for whom they are, and the steps of the changes.
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
#include "node/ledger/capacity.h"
#include "node/partition/pack.h"
#include "node/partition/space.h"
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
constexpr base::Duration kCreatesWithin = std::chrono::minutes(3);
constexpr base::Duration kNotedWithin = std::chrono::minutes(1);
constexpr base::Duration kFirstPartsPause = std::chrono::seconds(1);
constexpr int kMostPartsDoublings = 6;
constexpr std::string_view kCreateStep = "create";

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

/// "1g.5gb is being created on GPU 0".
std::string InWords(const std::vector<std::pair<std::string, std::string>>& parts) {
  std::vector<std::string> texts;
  for (const auto& [profile, device] : parts)
    texts.push_back(profile + " is being created on " + device);
  return base::Join(texts, "; ");
}

}  // namespace

struct PartsOnDemand::State : std::enable_shared_from_this<State> {
  State(base::Executor& c, base::Executor& io, Divisions::Node n, Divisions::VendorOf v,
        const std::string& path, OnDemandParts remembered)
      : control(c),
        node(n),
        vendor_of(std::move(v)),
        parts(std::move(remembered)),
        file(c, io, path,
             "cannot write which parts were created on demand; a restart would leave them") {}

  void Wake() { node.changes.Wake(); }

  void Changed() {
    Wake();
    if (on_change) on_change();
  }

  void Keep() { file.Keep(EncodeOnDemandParts(parts)); }

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

  /// Why nothing is created on a device now; empty: something can be.
  std::string WhyNot(const Entry& entry, const std::set<std::string>& kept_back) const {
    const Facts& device = *entry.facts;
    if (kept_back.contains(device.id)) return "it is kept for requests ahead in the queue";
    if (entry.health.state != device::HealthState::kHealthy) return entry.health.reason;
    if (node.changes.OfKind(kName, device.id) == nullptr &&
        node.changes.AllocatorOf(device.id) != share::kLocalAllocator)
      return "it is not assigned to local users";
    const device::PartTerms& terms = *vendor_of(device.vendor).dialect->part_terms();
    const auto mode = std::ranges::find(device.modes, terms.mode, &device::Mode::name);
    if (mode == device.modes.end() || mode->current != terms.on)
      return "its mode " + terms.mode + " is not " + terms.on;
    if (const DeviceChange* change = node.changes.Of(device.id);
        change != nullptr && change->kind != kName)
      return "another change of it is under way: " + change->kind;
    return WhyPaused(device.id);
  }

  std::string WhyPaused(const std::string& device) const {
    const auto failed = failures.find(device);
    return failed != failures.end() && control.clock().Now() < failed->second.not_before
               ? failed->second.why
               : "";
  }

  bool IsClaimed(const std::string& part) const {
    return std::ranges::any_of(claims, [&](const auto& claim) {
      return std::ranges::any_of(claim.second, [&](const Claimed& one) { return one.id == part; });
    });
  }

  bool IsIdle(const std::string& part) const {
    return parts.contains(part) && !IsClaimed(part) &&
           share::HoldersOf(*node.ledger.Get(), part).text.empty();
  }

  /// As it will be: without parts that are about to be removed, and with those that are about to be
  /// created.
  Division Expected(const Facts& device) const {
    Division now = DivisionNow(device, *node.inventory.published().Get(), *node.ledger.Get());
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
    for (const auto& [ticket, claim] : claims)
      for (const Claimed& one : claim)
        if (one.device == device.id) expect(one.part, "the request " + ticket);
    if (const DeviceChange* change = node.changes.OfKind(kName, device.id))
      for (const DesiredParts& part : PartsRecordOf(*change).create)
        expect(part, "a request that has left");
    return now;
  }

  // --- requests

  /// A part for a request.
  struct Claimed {
    std::string device;
    DesiredParts part;
    std::string id;  // empty: it is not created yet
  };

  base::Result<std::string> Prepare(const PartsRequest& request) {
    const auto claim = claims.find(request.ticket);
    if (IsPreparing(request.ticket)) {
      if (!IsLost(claim->second)) return Waiting(claim->second);
      Release(request.ticket);
      return Prepare(request);
    }
    if (claim != claims.end() && claim->second.size() + request.missing > request.count)
      return base::Error(base::Code::kUnavailable, "a part that was created cannot be used yet");
    auto found = FindRoom(request);
    if (!found.ok()) {
      Release(request.ticket);  // it must not keep from others what does not serve it
      return found.error();
    }
    auto& parts_of = claims[request.ticket];
    parts_of.insert(parts_of.end(), found->begin(), found->end());
    Wake();
    return Waiting(parts_of);
  }

  bool IsPreparing(const std::string& ticket) const {
    const auto claim = claims.find(ticket);
    return claim != claims.end() &&
           std::ranges::any_of(claim->second, [](const Claimed& one) { return one.id.empty(); });
  }

  /// Whether a part that is not created yet cannot be created any more where it was planned.
  bool IsLost(const std::vector<Claimed>& claim) const {
    const auto snapshot = node.inventory.published().Get();
    return std::ranges::any_of(claim, [&](const Claimed& one) {
      if (!one.id.empty() || node.changes.OfKind(kName, one.device) != nullptr) return false;
      const Entry* entry = snapshot->Find(one.device);
      return entry == nullptr || !IsSetAside(*entry) || !WhyNot(*entry, {}).empty();
    });
  }

  void Release(const std::string& ticket) {
    if (claims.erase(ticket) > 0) Wake();
  }

  std::string Waiting(const std::vector<Claimed>& claim) const {
    const auto snapshot = node.inventory.published().Get();
    std::vector<std::pair<std::string, std::string>> creating;
    for (const Claimed& one : claim)
      if (const Entry* entry = snapshot->Find(one.device); one.id.empty() && entry != nullptr)
        creating.emplace_back(one.part.profile, share::Describe(*entry->facts));
    return InWords(creating);
  }

  /// The devices that are set aside and have what the request asks for.
  std::vector<const Entry*> SitesFor(const PartsRequest& request,
                                     const inventory::Snapshot& snapshot) const {
    std::vector<const Entry*> sites;
    for (const Entry& entry : snapshot.devices)
      if (IsSetAside(entry) && ProfileOn(entry, request.profile) != nullptr &&
          (request.model.empty() || device::ModelMatches(request.model, entry.facts->model)))
        sites.push_back(&entry);
    return sites;
  }

  /// Where all parts that the request lacks can be created at once.
  base::Result<std::vector<Claimed>> FindRoom(const PartsRequest& request) const {
    const auto snapshot = node.inventory.published().Get();
    std::vector<std::string> blocked;
    const std::vector<const Entry*> all = SitesFor(request, *snapshot);
    if (all.empty())
      return base::Error(base::Code::kNotFound, "no device is set aside for " + request.profile);
    std::vector<const Entry*> sites;
    std::vector<Division> divisions, empty;
    for (const Entry* site : all) {
      empty.push_back({.device = site->facts->id, .profiles = site->facts->profiles});
      if (std::string why = WhyNot(*site, request.kept_back); !why.empty()) {
        blocked.push_back(share::Describe(*site->facts) + ": " + why);
        continue;
      }
      sites.push_back(site);
      divisions.push_back(Expected(*site->facts));
    }
    auto divided = divisions;
    std::vector<Claimed> found = Place(request, sites, divided);
    if (found.size() == request.missing) return found;
    if (const auto most = Place(request, all, empty).size(); most < request.missing)
      return base::Error(base::Code::kFailedPrecondition,
                         "requested " + std::to_string(request.count) + " parts " +
                             request.profile + ", and of those there can be " +
                             std::to_string(request.count - request.missing + most));
    for (std::size_t i = 0; i < sites.size(); ++i)
      blocked.push_back(share::Describe(*sites[i]->facts) + ": " + WhyNoRoom(divisions[i]));
    return base::Error(sites.empty() ? base::Code::kUnavailable : base::Code::kResourceExhausted,
                       request.profile + " cannot be created now; " + base::Join(blocked, "; "));
  }

  /// As many parts as the request lacks, or as there is room for. Adds them to the divisions.
  std::vector<Claimed> Place(const PartsRequest& request, const std::vector<const Entry*>& sites,
                             std::vector<Division>& divisions) const {
    std::vector<Claimed> placed;
    while (placed.size() < request.missing) {
      auto next = PlaceOne(request.profile, sites, divisions);
      if (!next) break;
      placed.push_back(*std::move(next));
    }
    return placed;
  }

  std::optional<Claimed> PlaceOne(const std::string& name, const std::vector<const Entry*>& sites,
                                  std::vector<Division>& divisions) const {
    std::vector<const Division*> all;
    for (const Division& one : divisions) all.push_back(&one);
    std::set<std::string> names;  // models can spell a profile differently
    for (const Entry* site : sites) names.insert(ProfileOn(*site, name)->name);
    for (const std::string& profile : names) {
      const auto packed = partition::Pack(all, profile);
      if (!packed) continue;
      const DesiredParts part{.profile = profile, .placement = packed->placement};
      divisions[packed->device].parts.push_back(
          {.id = "new", .profile = profile, .parent = "", .placement = part.placement});
      return Claimed{sites[packed->device]->facts->id, part, ""};
    }
    return std::nullopt;
  }

  static std::string WhyNoRoom(const Division& now) {
    constexpr std::size_t kMost = 4;
    std::vector<std::string> beside;
    for (const ExistingPart& part : now.parts) {
      if (!part.parent.empty()) continue;
      beside.push_back(partition::InWords(part.profile, part.placement) +
                       (part.holder.empty() ? "" : ", held by " + part.holder));
    }
    const std::size_t more = beside.size() - std::min(beside.size(), kMost);
    beside.resize(beside.size() - more);
    return "no room beside " + base::Join(beside, "; ") +
           (more > 0 ? "; and " + std::to_string(more) + " more" : "");
  }

  // --- changes

  std::vector<DeviceChange> Due() {
    const auto snapshot = node.inventory.published().Get();
    Forget(*snapshot);
    UseIdle(*snapshot);
    std::vector<DeviceChange> due;
    for (const Entry& entry : snapshot->devices) {
      const std::string& id = entry.facts->id;
      PartsRecord record = Wanted(id, *snapshot);
      if ((record.create.empty() && record.remove.empty()) || node.changes.Of(id) != nullptr ||
          !WhyPaused(id).empty() || !Divisions::WhyNotReady(&entry, vendor_of).empty())
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
    for (auto& [ticket, claim] : claims)
      for (Claimed& one : claim) {
        if (!one.id.empty() || node.changes.Of(one.device) != nullptr) continue;
        const auto idle = std::ranges::find_if(parts, [&](const auto& part) {
          const Entry* entry = snapshot.Find(part.first);
          return part.second == one.device && entry != nullptr &&
                 entry->facts->profile == one.part.profile && IsIdle(part.first);
        });
        if (idle == parts.end()) continue;
        one.id = idle->first;
        any = true;
      }
    if (any && on_change) on_change();
  }

  /// What is to be created and removed on a device now.
  PartsRecord Wanted(const std::string& device, const inventory::Snapshot& snapshot) const {
    PartsRecord record;
    for (const auto& [ticket, claim] : claims)
      for (const Claimed& one : claim)
        if (one.device == device && one.id.empty()) record.create.push_back(one.part);
    for (const auto& [part, of] : parts)
      if (of == device && snapshot.Find(part) != nullptr && IsIdle(part))
        record.remove.insert(part);
    return record;
  }

  /// Parts that are not there any more, as after a reset. Those of a device that cannot be seen now
  /// may come back.
  void Forget(const inventory::Snapshot& snapshot) {
    const auto is_gone = [](const Entry* entry) {
      return entry == nullptr || entry->health.state == device::HealthState::kGone;
    };
    const auto forgotten = std::erase_if(parts, [&](const auto& part) {
      const Entry* device = snapshot.Find(part.second);
      return !is_gone(device) && node.changes.Of(part.second) == nullptr &&
             Divisions::WhyNotReady(device, vendor_of).empty() &&
             is_gone(snapshot.Find(part.first));
    });
    if (forgotten > 0) Keep();
  }

  struct Run {
    std::unique_ptr<DivisionRun> run;
    std::set<std::string> created = {};  // addresses
    std::optional<base::Status> outcome = {};
    bool looked = false;  // after a failure: for what there is
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
                                                       *node.ledger.Get())
                                            : std::string("its allocator, because it stays");
                               },
                           .reset =
                               [](const Facts&, const std::function<void(base::Status)>& done) {
                                 done(base::Error(base::Code::kInternal, "no part needs a reset"));
                               },
                           .progress =
                               [id](const std::string& step) {
                                 base::Log(base::kInfo, "parts are created on demand",
                                           {{"device", id}, {"step", step}});
                               }},
        DivisionRun::Goal{
            .device = id,
            .address = device.facts->address,
            .desired = [record](const Division& now) { return DesiredBy(record, now); },
            .mode_only = false,
            .skip_reset = true});
    one.run->Start([this, id, describe = vendor.describe](const base::Status& outcome) {
      Run& ended = runs[id];
      ended.outcome = outcome;
      ended.created.insert(ended.run->created().begin(), ended.run->created().end());
      if (describe) describe();
      Wake();
    });
  }

  StepResult Create(const DeviceChange& change) {
    Run& one = runs[IdOf(change)];
    if (!one.run) {
      const auto snapshot = node.inventory.published().Get();
      const Entry* entry = snapshot->Find(IdOf(change));
      if (std::string why = Divisions::WhyNotReady(entry, vendor_of); !why.empty()) return why;
      ASSIGN(const PartsRecord record, DecodePartsRecord(change.details));
      Begin(one, *entry, record);
    }
    if (!one.outcome) return std::string("its driver is asked");
    if (!one.outcome->ok()) return one.outcome->error();
    return std::string();
  }

  /// Remembers which of the parts that are there were created by this change: all of those, if the
  /// agent that began it is gone.
  StepResult Note(const DeviceChange& change) {
    Run& one = runs[IdOf(change)];
    const auto snapshot = node.inventory.published().Get();
    const bool fresh = one.outcome && one.outcome->ok();
    if (!fresh && !std::exchange(one.looked, true)) {
      const Entry* entry = snapshot->Find(IdOf(change));
      if (std::string why = Divisions::WhyNotReady(entry, vendor_of); !why.empty())
        return base::Error(base::Code::kUnavailable, std::move(why));
      Begin(one, *entry, {});
    }
    if (!one.outcome) return std::string("its parts are being read");
    if (!one.outcome->ok()) return one.outcome->error();
    const bool began_here = began.contains(IdOf(change));
    for (const DesiredParts& wanted : PartsRecordOf(change).create)
      for (const Facts& part : one.run->seen())
        if (part.parent == IdOf(change) && IsAt(wanted, part.profile, part.placement) &&
            (!began_here || one.created.contains(part.address)))
          Own(part, wanted, IdOf(change));
    if (!file.IsWritten()) return std::string("the list of its parts is not written yet");
    return IsRead(one.run->seen(), *snapshot) ? std::string()
                                              : std::string("its parts are being read");
  }

  void Own(const Facts& part, const DesiredParts& wanted, const std::string& device) {
    if (parts.emplace(part.id, device).second) Keep();
    for (auto& [ticket, claim] : claims)
      for (Claimed& one : claim)
        if (one.id.empty() && one.device == device && one.part == wanted) one.id = part.id;
  }

  void Ended(const DeviceChange& change, const base::Status& result) {
    const std::string& id = IdOf(change);
    runs.erase(id);
    began.erase(id);
    if (result.ok()) failures.erase(id);
    // What is still missing is placed elsewhere, or later.
    const auto lacks = [&](const auto& claim) {
      return std::ranges::any_of(PartsRecordOf(change).create, [&](const DesiredParts& part) {
        return std::ranges::any_of(claim.second, [&](const Claimed& one) {
          return one.id.empty() && one.device == id && one.part == part;
        });
      });
    };
    const bool other = std::erase_if(claims, lacks) > 0 && result.ok();
    if (!result.ok() || other) {
      Failure& failure = failures[id];
      failure.why = result.ok() ? "another program has created parts where they were planned"
                                : result.error().message();
      const base::Duration pause =
          kFirstPartsPause * (1 << std::min(failure.times++, kMostPartsDoublings));
      failure.not_before = control.clock().Now() + pause;
      control.PostAfter(pause, base::IfAlive(this, &State::Changed));
      base::Log(base::kError, "parts cannot be created or removed on demand",
                {{"device", id}, {"why", failure.why}});
    }
    Changed();
  }

  struct Failure {
    std::string why;
    base::TimePoint not_before{};
    int times = 0;
  };
  base::Executor& control;
  const Divisions::Node node;
  const Divisions::VendorOf vendor_of;
  std::vector<std::string> set_aside;
  OnDemandParts parts;
  os::KeptFile file;
  std::vector<ChangeStep> steps;
  std::map<std::string, std::vector<Claimed>> claims;  // by ticket
  std::map<std::string, Run> runs;                     // by device
  std::set<std::string> began;  // devices of changes whose parts this agent creates
  std::map<std::string, Failure> failures;
  std::function<void()> on_change;
};

PartsOnDemand::PartsOnDemand(base::Executor& control, base::Executor& io, Divisions::Node node,
                             Divisions::VendorOf vendor_of, const std::string& path,
                             OnDemandParts remembered)
    : state_(std::make_shared<State>(control, io, node, std::move(vendor_of), path,
                                     std::move(remembered))) {
  State* const state = state_.get();
  state->file.OnWrite([state] { state->Wake(); });
  state->steps = {
      DeviceChanges::Withdraw(),
      {.name = "await release",
       .take =
           [state](const DeviceChange& change) { return state->node.changes.AwaitUnused(change); },
       .most = kPartsReleasedWithin},
      {.name = kCreateStep,
       .take =
           [state](const DeviceChange& change) {
             if (!change.taken_over) state->began.insert(State::IdOf(change));
             return state->Create(change);
           },
       .most = kCreatesWithin,
       .recorded = true},
      {.name = "note",
       .take = [state](const DeviceChange& change) { return state->Note(change); },
       .most = kNotedWithin,
       .finally = true}};
  node.changes.Add(*this);
}

PartsOnDemand::~PartsOnDemand() { state_->file.OnWrite(nullptr); }

void PartsOnDemand::Configure(const api::NodeConfig& config) {
  if (state_->set_aside == config.parts_on_demand) return;
  state_->set_aside = config.parts_on_demand;
  state_->Changed();
}

void PartsOnDemand::OnChange(std::function<void()> changed) {
  state_->on_change = std::move(changed);
}

base::Result<std::string> PartsOnDemand::Prepare(const PartsRequest& request) {
  return state_->Prepare(request);
}

bool PartsOnDemand::IsPreparing(const std::string& ticket) const {
  return state_->IsPreparing(ticket);
}

void PartsOnDemand::Release(const std::string& ticket) { state_->Release(ticket); }

std::set<std::string> PartsOnDemand::ReservedForOthers(const std::string& ticket) const {
  std::set<std::string> reserved;
  for (const auto& [other, claim] : state_->claims)
    for (const State::Claimed& one : claim)
      if (other != ticket && !one.id.empty()) reserved.insert(one.id);
  return reserved;
}

std::set<std::string> PartsOnDemand::CouldServe(const std::string& profile) const {
  std::set<std::string> devices;
  for (const Entry& entry : state_->node.inventory.published().Get()->devices)
    if (state_->IsSetAside(entry) && state_->ProfileOn(entry, profile) != nullptr)
      devices.insert(entry.facts->id);
  for (const auto& [part, device] : state_->parts)
    if (devices.contains(device)) devices.insert(part);
  return devices;
}

double PartsOnDemand::FractionOf(const std::string& profile) const {
  double largest = 0;
  for (const Entry& entry : state_->node.inventory.published().Get()->devices) {
    if (!state_->IsSetAside(entry)) continue;
    if (const device::PartProfile* found = state_->ProfileOn(entry, profile))
      largest = std::max(
          largest,
          ledger::FractionOf({.ancestors = {{entry.facts->id, device::CapacityOf(*entry.facts)}},
                              .capacity = found->capacity}));
  }
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
  return !state_->parts.empty() || !state_->claims.empty();
}

void PartsOnDemand::Ended(const DeviceChange& change, const base::Status& result) {
  state_->Ended(change, result);
}

}  // namespace penstock::node::change
