#include "view/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace penstock::view {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

const base::WallTime kWhen{1700000000s};

node::inventory::Entry Device(const std::string& id, int index) {
  device::Facts facts;
  facts.id = id;
  facts.vendor = "nvidia";
  facts.model = "NVIDIA A100";
  facts.index = index;
  facts.pci = device::PciAddress{.bus = 7};
  facts.memory = base::Mebibytes(1);
  return {.facts = std::make_shared<device::Facts>(facts),
          .health = {.state = device::HealthState::kHealthy, .reason = "", .since = kWhen}};
}

struct Fixture {
  Fixture() {
    inventory.facts_generation = 2;
    inventory.state_generation = 30;
    device::Driver driver;
    driver.version = "550.54.15";
    driver.runtime_version = "12.4";
    inventory.vendors = {{.vendor = "nvidia", .driver = std::make_shared<device::Driver>(driver)},
                         {.vendor = "amd", .reason = "there is no amdgpu module"}};
    inventory.devices = {Device("GPU-0", 0), Device("GPU-1", 1), Device("GPU-2", 2)};
    inventory.devices[2].health = {
        .state = device::HealthState::kUnhealthy, .reason = "XID 79", .since = kWhen};
    ledger.generation = 400;
    context.node = "gpu-7";
    context.allocators = [] {
      return std::vector<api::AllocatorReport>{
          {.name = "kubelet", .state = "open", .enforcement = "devices"},
          {.name = "cluster", .state = "open"}};
    };
    context.configuration = [] {
      return api::ConfigurationReport{.origin = "file /etc/penstock/node.yaml"};
    };
    context.times = &times;
    context.now = kWhen;
    context.assignments = &assignments;
  }
  api::Report Make() const { return MakeReport(inventory, ledger, context); }

  node::inventory::Snapshot inventory;
  node::ledger::Snapshot ledger;
  ConditionTimes times;
  node::share::Assignments assignments = {{"GPU-0", {.allocator = "kubelet"}},
                                          {"GPU-1", {.allocator = "local"}},
                                          {"GPU-2", {.allocator = "local"}}};
  ReportContext context;
};

TEST(MakeReport, ReportsDevicesVendorsAndAllocators) {
  const api::Report report = Fixture().Make();
  EXPECT_EQ(report.generation, 432u);
  EXPECT_EQ(report.node, "gpu-7");
  EXPECT_EQ(report.version, PENSTOCK_VERSION);
  EXPECT_EQ(report.agent_pid, ::getpid());
  ASSERT_EQ(report.vendors.size(), 2u);
  EXPECT_EQ(report.vendors[0].driver, "550.54.15");
  EXPECT_EQ(report.vendors[0].runtime, "12.4");
  EXPECT_EQ(report.vendors[0].driver_source, "");
  EXPECT_EQ(report.vendors[1].driver, "");
  EXPECT_EQ(report.vendors[1].reason, "there is no amdgpu module");
  ASSERT_EQ(report.devices.size(), 3u);
  EXPECT_EQ(report.devices[0].allocator, "kubelet");
  EXPECT_EQ(report.devices[1].allocator, "local");
  EXPECT_EQ(report.devices[0].kind, "GPU");
  EXPECT_EQ(report.devices[0].pci, "0000:07:00.0");
  EXPECT_EQ(report.devices[0].memory_bytes, 1u << 20);
  EXPECT_EQ(report.devices[0].health_state, "healthy");
  EXPECT_EQ(report.devices[2].health_state, "unhealthy");
  EXPECT_EQ(report.devices[2].health_reason, "XID 79");
  EXPECT_EQ(report.devices[2].health_since, "2023-11-14T22:13:20.000Z");
  ASSERT_EQ(report.allocators.size(), 2u);
}

TEST(MakeReport, ReportsWhatAAllocatorKeepsBackWhereNothingElseIsInTheWay) {
  Fixture fixture;
  fixture.assignments["GPU-1"].reason = "MPS is not for it";
  fixture.context.withheld = [] {
    return std::map<std::string, std::string>{
        {"GPU-0", "no CDI specification names this device yet"},
        {"GPU-1", "no CDI specification names this device yet"}};
  };
  const api::Report report = fixture.Make();
  EXPECT_EQ(report.devices[0].withheld, "no CDI specification names this device yet");
  EXPECT_EQ(report.devices[0].free, 0);
  EXPECT_EQ(report.devices[1].withheld, "MPS is not for it");
  EXPECT_EQ(report.devices[2].withheld, "");
}

TEST(MakeReport, ReportsConfigurationEnforcementAndConditions) {
  const api::Report report = Fixture().Make();
  EXPECT_EQ(report.configuration.origin, "file /etc/penstock/node.yaml");
  EXPECT_THAT(report.enforcement, ElementsAre("devices"));
  ASSERT_FALSE(report.conditions.empty());
  EXPECT_EQ(report.conditions[0].type, "Ready");
  EXPECT_TRUE(report.conditions[0].status);
  EXPECT_EQ(report.conditions[0].since, base::FormatTime(kWhen));
}

TEST(MakeReport, ReportsWhoHoldsWhat) {
  Fixture fixture;
  node::ledger::Lease pod{.id = "k-1",
                          .allocator = "kubelet",
                          .slots = {{"GPU-0", "GPU-0"}},
                          .state = node::ledger::LeaseState::kHeld,
                          .since = kWhen};
  pod.pod = "train-0";
  pod.namespace_name = "ml";
  pod.container = "main";
  pod.processes = {{.pid = 100, .user = "root", .command = "python train.py"}, {.pid = 101}};
  node::ledger::Lease run{
      .id = "r-1", .allocator = "local", .slots = {{"GPU-1", "GPU-1"}, {"GPU-2", "GPU-2"}}};
  run.enforcement = node::ledger::Enforcement::kVisibility;
  run.user = "ann";
  run.command = "sleep 1";
  fixture.ledger.leases = {pod, run};

  const api::Report report = fixture.Make();
  ASSERT_EQ(report.devices[0].holders.size(), 1u);
  const api::HolderReport& of_pod = report.devices[0].holders[0];
  EXPECT_EQ(of_pod.slot, "GPU-0");
  EXPECT_EQ(of_pod.device, "GPU-0");
  EXPECT_EQ(of_pod.index, 0);
  EXPECT_EQ(of_pod.state, "held");
  EXPECT_EQ(of_pod.kind, "pod");
  EXPECT_EQ(of_pod.lease, "k-1");
  EXPECT_THAT(of_pod.pids, ElementsAre(100, 101));
  EXPECT_EQ(of_pod.user, "root");
  EXPECT_EQ(of_pod.command, "python train.py");
  EXPECT_EQ(of_pod.namespace_name + "/" + of_pod.pod + "/" + of_pod.container, "ml/train-0/main");
  EXPECT_EQ(of_pod.enforcement, "devices");
  EXPECT_EQ(of_pod.since, "2023-11-14T22:13:20.000Z");

  for (const int index : {1, 2}) {
    ASSERT_EQ(report.devices[index].holders.size(), 1u);
    const api::HolderReport& of_run = report.devices[index].holders[0];
    EXPECT_EQ(of_run.index, index);
    EXPECT_EQ(of_run.state, "handed");
    EXPECT_EQ(of_run.kind, "run");
    EXPECT_EQ(of_run.user, "ann");
    EXPECT_EQ(of_run.command, "sleep 1");
    EXPECT_EQ(of_run.enforcement, "visibility");
  }
}

TEST(MakeReport, ReportsWhoIsOnADeviceWithoutHavingBeenGivenIt) {
  Fixture fixture;
  fixture.ledger.outside["GPU-1"] = {{.pid = 7, .user = "bob", .command = "python x.py"},
                                     {.pid = 8, .user = "ann", .command = "y"}};
  const api::Report report = fixture.Make();
  ASSERT_EQ(report.devices[1].holders.size(), 2u);
  const api::HolderReport& outside = report.devices[1].holders[0];
  EXPECT_EQ(outside.state, "outside");
  EXPECT_EQ(outside.kind, "outside");
  EXPECT_EQ(outside.lease, "");
  EXPECT_THAT(outside.pids, ElementsAre(7));
  EXPECT_EQ(outside.user, "bob");
  EXPECT_EQ(outside.command, "python x.py");
  EXPECT_TRUE(report.devices[0].holders.empty());
}

TEST(MakeReport, DistinguishesWhoOnlyDrawsFromHolders) {
  Fixture fixture;
  fixture.ledger.graphics["GPU-1"] = {{.pid = 7, .user = "root", .command = "Xorg"}};
  const api::Report report = fixture.Make();
  EXPECT_TRUE(report.devices[1].holders.empty());
  ASSERT_EQ(report.devices[1].graphics.size(), 1u);
  EXPECT_EQ(report.devices[1].graphics[0].kind, "graphics");
  EXPECT_THAT(report.devices[1].graphics[0].pids, ElementsAre(7));
}

TEST(MakeReport, ReportsWhoHoldsADeviceThatIsNotThereAnyMore) {
  Fixture fixture;
  fixture.inventory.devices[1].replaced_id = "GPU-old";
  node::ledger::Lease lease;
  lease.id = "r-1";
  lease.allocator = "local";
  lease.slots = {
      {"GPU-old", "GPU-old", "", {}}, {"GPU-lost", "GPU-lost", "", {}}, {"GPU-0", "GPU-0", "", {}}};
  fixture.ledger.leases = {lease};
  const api::Report report = fixture.Make();
  ASSERT_EQ(report.removed.size(), 2u);
  EXPECT_EQ(report.removed[0].note, "GPU-old was replaced by GPU-1");
  EXPECT_EQ(report.removed[0].index, -1);
  EXPECT_EQ(report.removed[1].note, "GPU-lost is no longer present");
  EXPECT_EQ(report.devices[0].holders.size(), 1u);
}

TEST(MakeReport, ReportsWhyMeasurementsAreMissing) {
  Fixture fixture;
  const auto sample = [](std::string problem, base::Duration took) {
    node::sample::DeviceSample made;
    made.problem = std::move(problem);
    made.took = took;
    return std::make_shared<const node::sample::DeviceSample>(made);
  };
  node::sample::Snapshot samples;
  samples.devices = {
      {"GPU-0", sample("\"sample 0\" did not answer within 5s", std::chrono::seconds(5))},
      {"GPU-1", sample("", std::chrono::milliseconds(1200))},
      {"GPU-2", sample("", std::chrono::milliseconds(20))}};
  fixture.context.samples = &samples;
  const api::Report report = fixture.Make();
  EXPECT_EQ(report.devices[0].telemetry_problem,
            "its measurements are missing: \"sample 0\" did not answer within 5s");
  EXPECT_EQ(report.devices[1].telemetry_problem,
            "its driver answers slowly: a collection of its measurements took more than 1s");
  EXPECT_EQ(report.devices[2].telemetry_problem, "");
}

/// The offers that follow from the fixture's assignments.
std::vector<node::share::Offer> OffersOf(const Fixture& fixture,
                                         const device::SharedDevices& servers) {
  return node::share::ComputeOffers(fixture.assignments, fixture.inventory, fixture.ledger,
                                    servers);
}

TEST(MakeReport, ReportsWhatIsSharedAndHowMuchOfItIsFree) {
  Fixture fixture;
  for (auto& entry : fixture.inventory.devices) entry.read_at = kWhen;
  fixture.assignments["GPU-0"] = {.allocator = "kubelet",
                                  .resource = "nvidia.com/gpu",
                                  .shape = {device::Sharing::kTimeSlicing, 4}};
  fixture.assignments["GPU-1"] = {.allocator = "local", .resource = "nvidia.com/gpu"};
  fixture.assignments["GPU-2"] = {.allocator = "",
                                  .reason = "being moved to local users: held by pod ml/a",
                                  .resource = "nvidia.com/gpu"};
  node::ledger::Lease pod{.id = "k-1", .allocator = "kubelet"};
  pod.slots = {{"GPU-0::1", "GPU-0", "nvidia.com/gpu", {device::Sharing::kTimeSlicing, 4}},
               {"GPU-0::3", "GPU-0", "nvidia.com/gpu", {device::Sharing::kTimeSlicing, 4}}};
  fixture.ledger.leases = {pod};
  const auto offers = OffersOf(fixture, {});
  fixture.context.offers = &offers;
  const api::Report report = fixture.Make();
  EXPECT_EQ(report.devices[0].resource, "nvidia.com/gpu");
  EXPECT_EQ(report.devices[0].sharing, "time-slicing");
  EXPECT_EQ(report.devices[0].shares, 4);
  EXPECT_EQ(report.devices[0].free, 2);
  EXPECT_EQ(report.devices[0].isolation, "none");
  EXPECT_EQ(report.devices[0].holders.size(), 2u);
  EXPECT_EQ(report.devices[1].shares, 1);
  EXPECT_EQ(report.devices[1].free, 1);
  EXPECT_EQ(report.devices[1].isolation, "hardware");
  EXPECT_EQ(report.devices[2].resource, "");
  EXPECT_EQ(report.devices[2].free, 0);
  EXPECT_EQ(report.devices[2].withheld, "being moved to local users: held by pod ml/a");
  EXPECT_TRUE(report.servers.empty());
}

TEST(MakeReport, ReportsServersAndTheLimitsThatTheyHold) {
  Fixture fixture;
  for (auto& entry : fixture.inventory.devices) entry.read_at = kWhen;
  const node::share::Assignment mps{
      .allocator = "kubelet", .resource = "nvidia.com/gpu", .shape = {device::Sharing::kServer, 4}};
  fixture.assignments = {{"GPU-0", mps}, {"GPU-1", mps}};
  device::SharedDevice ready{
      .set = "nvidia.com/gpu", .ready = true, .isolation = device::Isolation::kMemoryPerProcess};
  ready.memory = base::Mebibytes(10);
  ready.compute_percent = 25;
  ready.clients = 2;
  device::SharedDevices servers = {
      {"GPU-0", ready},
      {"GPU-1", ready},
      {"GPU-2", {.set = "nvidia.com/old", .reason = "ends with its last client", .clients = 1}}};
  fixture.context.servers = &servers;
  auto offers = OffersOf(fixture, servers);
  fixture.context.offers = &offers;
  api::Report report = fixture.Make();
  EXPECT_EQ(report.devices[0].isolation, "memory-per-process");
  EXPECT_EQ(report.devices[0].share_memory_bytes, 10u << 20);
  EXPECT_EQ(report.devices[0].share_compute_percent, 25);
  ASSERT_EQ(report.servers.size(), 2u);
  EXPECT_EQ(report.servers[0].set, "nvidia.com/gpu");
  EXPECT_EQ(report.servers[0].state, "ready");
  EXPECT_EQ(report.servers[0].clients, 2);
  EXPECT_THAT(report.servers[0].devices, ElementsAre("GPU-0", "GPU-1"));
  EXPECT_EQ(report.servers[1].state, "ending");

  servers["GPU-1"].ready = false;
  servers["GPU-1"].reason = "its control daemon has died";
  offers = OffersOf(fixture, servers);
  report = fixture.Make();
  EXPECT_EQ(report.servers[0].state, "waiting");
  EXPECT_EQ(report.servers[0].reason, "its control daemon has died");
  EXPECT_EQ(report.devices[1].free, 0);
}

TEST(MakeReport, TheServerOfAPartIsNamedByItsId) {
  Fixture fixture;
  for (auto& entry : fixture.inventory.devices) entry.read_at = kWhen;
  fixture.assignments = {{"GPU-0",
                          {.allocator = "kubelet",
                           .resource = "nvidia.com/mig-1g.5gb",
                           .shape = {device::Sharing::kServer, 3}}}};
  const device::SharedDevices servers = {{"GPU-0", {.set = "GPU-0", .ready = true}}};
  fixture.context.servers = &servers;
  const auto offers = OffersOf(fixture, servers);
  fixture.context.offers = &offers;
  const api::Report report = fixture.Make();
  ASSERT_EQ(report.servers.size(), 1u);
  EXPECT_EQ(report.servers[0].set, "GPU-0");
  EXPECT_EQ(report.servers[0].state, "ready");
}

TEST(MakeReport, ReportsProbationRelapsesAndSerialNumbers) {
  Fixture fixture;
  device::Facts facts = *fixture.inventory.devices[2].facts;
  facts.serial = "1320921";
  fixture.inventory.devices[2].facts = std::make_shared<device::Facts>(facts);
  const node::health::HealthStatuses statuses = {
      {"GPU-2", {.probation_until = kWhen + 10s, .relapses = 2}}};
  fixture.context.health = &statuses;
  const api::Report report = fixture.Make();
  EXPECT_EQ(report.devices[2].probation_until, "2023-11-14T22:13:30.000Z");
  EXPECT_EQ(report.devices[2].relapses, 2);
  EXPECT_EQ(report.devices[2].serial, "1320921");
  EXPECT_EQ(report.devices[0].probation_until, "");
}

}  // namespace
}  // namespace penstock::view
