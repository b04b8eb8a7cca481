#include "tests/capacity/agent.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "node/allocate/outlook.h"
#include "node/attribute/attribute.h"
#include "node/inventory/testing/acme_inventory.h"
#include "os/process/process.h"

namespace penstock::capacity {

using namespace std::chrono_literals;
using node::change::Divisions;

namespace {

constexpr char kBoot[] = "boot";
const node::share::EnabledAllocators kBoth{"kubelet", "local"};

/// The kubelet has G0, and G1 in shares; local users have G2, and G3 for parts on demand.
api::NodeConfig Config() {
  api::NodeConfig config;
  config.assignments = {{{"2", "3"}, "local"}};
  config.sharing.rules = {
      {.devices = {"1"}, .strategy = api::ShareStrategy::kTimeSlicing, .replicas = 2}};
  config.parts = api::PartsStrategy::kMixed;
  config.parts_on_demand = {"3"};
  config.health.reset = api::ResetPolicy::kIdle;
  return config;
}

}  // namespace

Agent::Agent(Machine& machine)
    : machine_(machine),
      driver_(machine.devices(), machine.asked, executor_),
      monitor_(
          executor_, inventory_, [this](std::string_view) { return &dialect_; },
          {.in_use =
               [this](const std::string& id) { return ledger_.Get()->HolderOf(id) != nullptr; }}),
      offers_(
          inventory_, ledger_, [this](std::string_view) { return &dialect_; }, kBoth),
      self_(*os::OpenPidfd(::getpid())),
      listing_(adapter::kubelet::ChooseDeviceList(containers_, nullptr, "")),
      allocate_({executor_.clock(), inventory_, ledger_, offers_,
                 [this](std::string_view) { return &dialect_; }}),
      shown_(std::make_shared<const std::vector<node::share::Offer>>()) {
  executor_.Advance(machine.uptime);
  const api::NodeConfig config = Config();
  const std::string disk = machine.disk.path();
  auto leases = node::ledger::LedgerCheckpointWriter::Load(LedgerFiles(disk), kBoot);
  auto health = node::health::HealthCheckpointWriter::Load(disk, kBoot, executor_.clock().Wall());
  auto under_way = node::change::LoadChanges(disk + "/changes.json");
  auto moved = node::change::LoadManualAssignments(disk + "/doors.json");
  auto layout = node::change::LoadAppliedLayout(disk + "/layout.json");
  auto created = node::change::LoadOnDemandParts(disk + "/parts.json", kBoot);
  EXPECT_TRUE(leases.ok() && health.ok() && under_way.ok() && moved.ok() && layout.ok() &&
              created.ok());
  monitor_.Recall(*std::move(health));
  ledger_writer_.emplace(executor_, executor_, ledger_, LedgerFiles(disk), kBoot);
  health_writer_.emplace(executor_, executor_, monitor_, disk, kBoot);
  leases_.emplace(executor_, executor_, machine.proc.path(), inventory_, ledger_,
                  [&machine]() -> base::Result<std::unique_ptr<node::lease::CgroupManager>> {
                    return std::unique_ptr<node::lease::CgroupManager>(
                        std::make_unique<node::lease::FakeCgroupManager>(machine.kernel));
                  });
  leases_->Recover(leases->leases, {}, leases->limits);
  for (const node::ledger::Lease& lease : leases->leases)  // as KubeletAdapter::Recover
    if (lease.allocator == api::kKubeletAllocator) (void)ledger_.Add(lease);
  changes_.emplace(
      executor_, executor_, node::change::DeviceChanges::Node{inventory_, ledger_, offers_},
      [this](const auto& done) { Counted(done); }, disk + "/changes.json", *std::move(under_way));
  moves_.emplace(
      executor_, executor_,
      node::change::DeviceMoves::Node{inventory_, ledger_, offers_, *changes_}, kBoth,
      [this](bool waits) {
        if (waits) PollPods();
      },
      disk + "/doors.json", *std::move(moved));
  const Divisions::Node node{inventory_, ledger_, *changes_};
  const auto vendor = [this](std::string_view) { return Vendor(); };
  divisions_.emplace(executor_, executor_, node, vendor, disk + "/layout.json", *std::move(layout),
                     kBoot);
  on_demand_.emplace(executor_, executor_, node, vendor, disk + "/parts.json", *std::move(created),
                     kBoot);
  on_demand_->OnChange([this] { ServeRuns(); });
  resets_.emplace(executor_, inventory_, ledger_, monitor_, *changes_, [this](std::string_view) {
    return node::change::Resets::Vendor{
        .actions = this,
        .release = [this](std::function<void()> done) { Release(std::move(done)); },
        .reopen = [this] { Reopen(); },
        .read_soon = [this](const std::string&) { Post([this] { Look(); }); }};
  });
  const auto on_demand = node::share::OnDemandDevices(config, kBoth);
  divisions_->SetOnDemand(on_demand);
  on_demand_->SetDevices(on_demand);
  resets_->SetPolicy(config.health.reset);
  monitor_.Configure(config.health);
  offers_.Configure(config, moves_->Configure(config));
  turns_.emplace(executor_, inventory_, ledger_, offers_,
                 [this](const auto& now, const auto& before) { Follow(now, before); });
  Soon(50, [this] {
    Look();
    Serve();
  });
}

Agent::~Agent() {
  turns_.reset();
  resets_.reset();
  on_demand_.reset();
  divisions_.reset();
  moves_.reset();
  changes_.reset();
}

void Agent::Advance(base::Duration time) {
  executor_.Advance(time);
  machine_.uptime = executor_.clock().Now().time_since_epoch();
}

void Agent::Soon(int most_ms, std::function<void()> function) {
  executor_.PostAfter(std::chrono::milliseconds(machine_.Pick(most_ms)), std::move(function));
}

/// All devices were read once.
void Agent::Serve() {
  serves_ = true;
  changes_->Start();
  shown_ = offers_.Get();
  PollPods();
}

void Agent::Follow(const node::share::NodeDevices& now, const node::share::NodeDevices& before) {
  changes_->Follow(now, before);
  if (now.ledger != before.ledger) ledger_writer_->LedgerChanged();
  if (now.inventory != before.inventory) leases_->DevicesChanged();
  if (serves_) shown_ = now.offers;
  if (now.offers != before.offers || now.ledger != before.ledger) ServeRuns();
}

// --- the driver

void Agent::Look() {
  if (!ready_) return;
  const base::WallTime now = executor_.clock().Wall();
  const std::vector<device::Facts> all = machine_.Look();
  inventory_.SetVendor(node::inventory::AcmeVendor());
  inventory_.SetFacts("acme", all, "it is not there", now);
  for (const device::Facts& facts : all) {
    monitor_.OnReading(facts.id, {});
    inventory_.SetReading(facts.id, {}, now);
  }
  inventory_.PublishReadTimes();
}

void Agent::Release(std::function<void()> done) {
  Post([this, done = std::move(done)] {
    ready_ = false;
    Post(done);
  });
}

void Agent::Reopen() {
  Post([this] {
    ready_ = true;
    Look();
  });
}

Divisions::Vendor Agent::Vendor() {
  return {.backend = &driver_,
          .dialect = &dialect_,
          .ready = [this] { return ready_; },
          .describe =
              [this](const std::function<void()>& done) {
                Post([this, done] {
                  Look();
                  if (done) done();
                });
              },
          .actions = this,
          .release = [this](std::function<void()> done) { Release(std::move(done)); },
          .reopen = [this] { Reopen(); }};
}

void Agent::Reset(const std::vector<device::Facts>& devices,
                  std::function<void(base::Status)> done) {
  EXPECT_FALSE(ready_) << "the agent itself keeps the driver open";
  driver_.Ask(
      [&machine = machine_, devices](const auto& did) {
        if (std::exchange(machine.reset_fails, false))
          return did(base::Error(base::Code::kUnknown, "the reset does not work"));
        for (const device::Facts& one : devices) machine.Reset(one.id);
        did(std::string());
      },
      [done = std::move(done)](const base::Result<std::string>& result) {
        done(result.ok() ? base::Status() : result.error());
      });
}

void Agent::Break(const std::string& device, device::Severity severity) {
  monitor_.OnEvidence({.device = device, .kind = "code", .code = static_cast<int>(severity)});
  Post([this] { Look(); });
}

bool Agent::IsHealthy() const {
  const auto snapshot = inventory_.published().Get();
  return std::ranges::all_of(snapshot->devices, [](const node::inventory::Entry& entry) {
    return entry.health.state == device::HealthState::kHealthy ||
           entry.health.state == device::HealthState::kGone;
  });
}

// --- the kubelet

std::set<std::string> Agent::Resources() const { return machine_.kubelet.Resources(*shown_); }

void Agent::KubeletReads(const std::string& resource) {
  if (serves_) machine_.kubelet.Read(resource, *shown_);
}

/// As KubeletAdapter::QueryCounted.
void Agent::Counted(const std::function<void(base::Result<std::set<std::string>>)>& done) {
  if (!polled_) {
    PollPods();
    return done(base::Error(base::Code::kUnavailable, "its pods are not known yet"));
  }
  Soon(20,
       [this, done] { Soon(20, [done, counted = machine_.kubelet.Counted()] { done(counted); }); });
}

void Agent::PollPods() {
  if (!serves_ || std::exchange(polling_, true)) return;
  Soon(20, [this, asked = executor_.clock().Wall()] {
    Soon(200, [this, asked, pods = machine_.kubelet.List()] {
      node::attribute::ApplyPods(pods, asked - 30s, executor_.clock().Wall(), ledger_,
                                 *offers_.Get());
      polling_ = false;
      polled_ = true;
    });
  });
}

void Agent::Allocate() {
  Kubelet& kubelet = machine_.kubelet;
  const Kubelet::Pod pod = *std::exchange(kubelet.asking, std::nullopt);
  std::vector<node::ledger::Slot> slots;
  for (const node::share::Offer& offer : *shown_)
    if (offer.allocator == api::kKubeletAllocator && offer.resource == pod.resource)
      for (const node::share::OfferedSlot& slot : offer.slots)
        if (std::ranges::find(pod.ids, slot.slot.id) != pod.ids.end()) slots.push_back(slot.slot);
  std::vector<std::string> sorted = pod.ids;
  std::ranges::sort(sorted);
  const auto answer =
      allocate_.Allocate(pod.resource, {{sorted}},
                         {*shown_,
                          {.listing = listing_,
                           .config = containers_,
                           .unique = adapter::kubelet::RandomUuid,
                           .host_path = [](const std::string& path) { return path; }}});
  if (!answer.ok()) {
    machine_.Note(pod.uid + " is refused: " + answer.error().message());
    return machine_.Count("refused pod");
  }
  kubelet.pods[pod.uid] = pod;
  machine_.Granted(pod.uid, slots);
  machine_.Count(slots.front().shape.shares > 1    ? "pod with a share"
                 : slots.front().ancestors.empty() ? "pod with a device"
                                                   : "pod with a part");
  executor_.PostAfter(150ms, [this] { PollPods(); });
}

// --- local users

void Agent::Want(node::allocate::Request request) {
  request.allocator = api::kLocalAllocator;
  waiting_.push_back({"q-" + std::to_string(++tickets_), std::move(request)});
  ServeRuns();
}

void Agent::CancelAll() {
  for (const Waiting& one : std::exchange(waiting_, {})) on_demand_->Release(one.ticket);
}

void Agent::ServeRuns() {
  if (std::exchange(runs_posted_, true)) return;
  Post([this] {
    runs_posted_ = false;
    std::erase_if(waiting_, [this](const Waiting& one) {
      const base::Status served = Attempt(one);
      const bool waits = !served.ok() && (served.error().code() == base::Code::kResourceExhausted ||
                                          served.error().code() == base::Code::kUnavailable);
      if (!served.ok() && !waits)
        machine_.Note(one.ticket + " is refused: " + served.error().message());
      if (!waits) on_demand_->Release(one.ticket);
      return !waits;
    });
  });
}

/// As LocalAdapter::Attempt.
base::Status Agent::Attempt(const Waiting& waiting) {
  const auto inventory = inventory_.published().Get();
  const auto dialect_of = [this](std::string_view) { return &dialect_; };
  const auto offers =
      node::allocate::WithoutDevices(*offers_.Get(), on_demand_->ReservedForOthers(waiting.ticket));
  const auto reserved =
      node::allocate::Reserve(waiting.request, *inventory, *ledger_.Get(), offers, dialect_of);
  if (!reserved.ok()) {
    if (!node::allocate::MayBeCreatedFor(waiting.request) ||
        reserved.error().code() == base::Code::kInvalidArgument)
      return reserved.error();
    const auto there = node::allocate::ReserveSome(waiting.request, *inventory, *ledger_.Get(),
                                                   offers, dialect_of);
    const auto preparing =
        on_demand_->Prepare({.ticket = waiting.ticket,
                             .profile = waiting.request.profile,
                             .count = static_cast<std::size_t>(waiting.request.count),
                             .missing = static_cast<std::size_t>(there.missing)},
                            reserved.error());
    if (preparing.ok()) return base::Error(base::Code::kResourceExhausted, *preparing);
    return preparing.error().code() == base::Code::kNotFound ? reserved.error() : preparing.error();
  }
  const auto lease = leases_->Admit({.slots = *reserved,
                                     .uid = 0,
                                     .user = "eva",
                                     .command = "train",
                                     .process = {Machine::kRunner, 1, "eva", "train"},
                                     .pidfd = self_.get()});
  if (!lease.ok()) return lease.error();
  machine_.Granted(lease->id, lease->slots);
  const node::ledger::Slot& first = lease->slots.front();
  machine_.Count(first.shape.shares > 1                   ? "run with a share"
                 : first.ancestors.empty()                ? "run with a device"
                 : first.ancestors.front().device == "G3" ? "run with a part on demand"
                                                          : "run with a part");
  return {};
}

// --- changes

void Agent::Move(const node::change::MoveRequest& request) {
  moves_->Set(
      request, [](const node::change::DeviceMove&) {},
      [&machine = machine_](const base::Result<std::vector<node::change::DeviceMove>>& moved) {
        if (!moved.ok()) return machine.Note("not moved: " + moved.error().message());
        for (const node::change::DeviceMove& one : *moved) {
          if (one.state == node::change::MoveState::kUnchanged) continue;
          machine.Note(one.device + " has moved from " + one.from + " to " + one.to);
          machine.Count("move of a device");
        }
      });
}

void Agent::Divide(const node::change::LayoutRequest& request) {
  divisions_->Apply(request, nullptr, [&machine = machine_](const auto& result) {
    if (!result.ok()) return machine.Note("not divided: " + result.error().message());
    machine.Note("divided");
  });
}

std::vector<std::string> Agent::UnderWay() const {
  std::vector<std::string> all;
  const auto snapshot = inventory_.published().Get();
  for (const node::inventory::Entry& entry : snapshot->devices)
    if (const node::change::DeviceChange* change = changes_->On(entry.facts->id))
      all.push_back(change->kind + " at " + change->step);
  return all;
}

std::string Agent::AllocatorOf(const std::string& device) { return changes_->AllocatorOf(device); }

std::vector<node::share::OfferedSlot> Agent::UsableOf(const std::string& device) {
  std::vector<node::share::OfferedSlot> slots;
  for (const node::share::Offer& offer : *offers_.Get())
    for (const node::share::OfferedSlot& slot : offer.slots)
      if (slot.usable && slot.slot.device == device) slots.push_back(slot);
  return slots;
}

std::string Agent::Describe() {
  std::string text;
  for (const auto& entry : inventory_.published().Get()->devices) {
    text += "\n  " + entry.facts->id + " " + std::string(device::ToString(entry.health.state)) +
            " " + entry.health.reason + ", withheld: " + entry.withheld +
            ", allocator: " + AllocatorOf(entry.facts->id);
    if (const auto* change = changes_->On(entry.facts->id))
      text += ", " + change->kind + " at " + change->step + ": " + change->waits_for;
    for (const auto& mode : entry.facts->modes) text += ", mode " + mode.current;
  }
  for (const auto& lease : ledger_.Get()->leases) {
    text += "\n  lease " + lease.id + ":";
    for (const auto& slot : lease.slots) text += " " + slot.id;
  }
  return text + "\n  layout " + divisions_->state().state + ": " + divisions_->state().reason;
}

}  // namespace penstock::capacity
