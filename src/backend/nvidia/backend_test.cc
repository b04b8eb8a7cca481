// Tests the backend through a real dlopen of the simulated driver library. The expectations come
// from reference machines.
#include "backend/nvidia/backend.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/nvidia/dialect/dialect.h"
#include "backend/nvidia/dialect/kinds.h"
#include "backend/nvidia/testing/simulated_machine.h"
#include "base/testing/build_tree.h"
#include "device/kinds.h"

namespace penstock::backend::nvidia {
namespace {

using device::Evidence;
using device::Facts;
using device::Nearness;
using device::Reading;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

using Backend = std::unique_ptr<device::Backend>;

/// Opens, lists, and describes all devices twice, so that every link is known.
std::vector<Facts> DescribeAll(device::Backend& backend) {
  std::vector<Facts> all;
  const auto addresses = backend.List();
  if (!addresses.ok()) return all;
  for (const std::string& address : *addresses) (void)backend.Describe(address);
  for (const std::string& address : *addresses)
    if (auto facts = backend.Describe(address); facts.ok()) all.push_back(*std::move(facts));
  return all;
}

Backend Open(const SimulatedMachine& machine) {
  Backend backend = MakeBackend(machine.paths());
  EXPECT_TRUE(backend->Open().ok());
  return backend;
}

/// A machine whose driver is open and whose GPUs are described.
struct Described {
  explicit Described(const std::string& name) : machine(name) {}
  const SimulatedMachine machine;
  const Backend backend = Open(machine);
  const std::vector<Facts> gpus = DescribeAll(*backend);
};

/// The evidence of faults in a reading: every reading also has the counters that reveal a reset.
std::vector<Evidence> TroublesIn(const device::Reading& reading) {
  std::vector<Evidence> troubles;
  for (const Evidence& evidence : reading.evidence)
    if (!evidence.kind.starts_with(device::kResetCounter)) troubles.push_back(evidence);
  return troubles;
}

Evidence EvidenceOf(const Reading& reading, std::string_view kind) {
  for (const Evidence& evidence : reading.evidence)
    if (evidence.kind == kind) return evidence;
  return {};
}

bool Has(const Reading& reading, std::string_view kind) {
  return EvidenceOf(reading, kind).kind == kind;
}

TEST(NvidiaBackend, ReportsTheDriver) {
  const SimulatedMachine machine("dgx-a100");
  const Backend backend = MakeBackend(machine.paths());
  const auto driver = backend->Open();
  ASSERT_TRUE(driver.ok()) << driver.error().ToString();
  EXPECT_EQ(driver->vendor, "nvidia");
  EXPECT_EQ(driver->version, "550.54.15");
  EXPECT_EQ(driver->runtime_version, "12.4");
  std::vector<std::string> files;
  for (const auto& file : driver->files) files.push_back(file.path);
  EXPECT_THAT(files, ElementsAre("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                                 "/dev/nvidia-modeset"));
  EXPECT_EQ(driver->files[0], (device::DeviceFile{"/dev/nvidiactl", 195, 255}));
  EXPECT_EQ(driver->guarded, (std::vector<device::DeviceNumbers>{{195, 0, 253}, {511, 0, 0xfffff}}))
      << "GPUs, and capability files";
}

TEST(NvidiaBackend, ReportsTheFactsOfADgx) {
  const auto gpus = Described("dgx-a100").gpus;
  ASSERT_EQ(gpus.size(), 8u);
  const char* const buses[] = {"07", "0f", "47", "4e", "87", "90", "b7", "bd"};
  const int nodes[] = {3, 3, 1, 1, 7, 7, 5, 5};
  std::set<std::string> ids, serials;
  for (std::size_t i = 0; i < 8; ++i) {
    const Facts& gpu = gpus[i];
    EXPECT_THAT(gpu.id, StartsWith("GPU-"));
    ids.insert(gpu.id);
    serials.insert(gpu.serial);
    EXPECT_EQ(gpu.vendor, "nvidia");
    EXPECT_EQ(gpu.model, "NVIDIA A100-SXM4-40GB");
    EXPECT_EQ(gpu.index, static_cast<int>(i));
    EXPECT_EQ(gpu.address, std::to_string(i));
    EXPECT_EQ(ToString(*gpu.pci), std::string("0000:") + buses[i] + ":00.0");
    EXPECT_EQ(gpu.numa_node, nodes[i]);
    EXPECT_EQ(gpu.memory, base::Mebibytes(40960));
    EXPECT_EQ(gpu.architecture, "ampere");
    EXPECT_EQ(gpu.architecture_version, "8.0");
    ASSERT_THAT(gpu.files, SizeIs(3));
    EXPECT_EQ(gpu.files[0].path, "/dev/nvidia" + std::to_string(gpu.files[0].minor));
    EXPECT_EQ(gpu.files[0].major, 195u);
    EXPECT_THAT(gpu.files[1].path, StartsWith("/dev/dri/card"));
    EXPECT_THAT(gpu.files[2].path, StartsWith("/dev/dri/renderD"));
    EXPECT_EQ(gpu.files[2].major, 226u);
    ASSERT_THAT(gpu.modes, SizeIs(1));
    EXPECT_EQ(gpu.modes[0].name, "mig");
    EXPECT_EQ(gpu.modes[0].current, "disabled");
    EXPECT_EQ(gpu.modes[0].effect, device::ModeEffect::kAfterReset);
    EXPECT_EQ(gpu.details.at("brand"), "NVIDIA");
    EXPECT_EQ(gpu.details.at("pci.device-id"), "0x20b0");
    EXPECT_EQ(gpu.details.at("pci.vendor-id"), "0x10de");
    EXPECT_EQ(gpu.details.at("pcie.generation"), "4");
    EXPECT_EQ(gpu.details.at("pcie.width"), "16");
    EXPECT_EQ(gpu.withheld, "");
  }
  EXPECT_EQ(gpus[0].cpu_affinity, "48-63,176-191");
  EXPECT_EQ(ids.size(), 8u);
  EXPECT_EQ(serials.size(), 8u);
}

TEST(NvidiaBackend, ReportsTheLinksOfADgx) {
  const auto gpus = Described("dgx-a100").gpus;
  ASSERT_EQ(gpus.size(), 8u);
  for (const Facts& gpu : gpus) {
    ASSERT_THAT(gpu.links, SizeIs(7));
    for (const device::Link& link : gpu.links) {
      EXPECT_EQ(link.fabric_lanes, 12) << "all twelve links connect to the switches";
      EXPECT_NE(link.peer, gpu.id);
    }
  }
  const auto to = [&](std::size_t from, std::size_t peer) {
    return std::find_if(gpus[from].links.begin(), gpus[from].links.end(),
                        [&](const auto& link) { return link.peer == gpus[peer].id; })
        ->nearness;
  };
  EXPECT_GT(to(0, 1), to(0, 2)) << "GPUs 0 and 1 share a PCIe switch";
  EXPECT_EQ(to(0, 7), Nearness::kSystem);
}

/// Lanes of every pair, in both directions.
std::vector<int> LanesOf(const std::vector<Facts>& gpus) {
  std::vector<int> lanes;
  for (const Facts& gpu : gpus)
    for (const device::Link& link : gpu.links) lanes.push_back(link.fabric_lanes);
  return lanes;
}

// k8s-device-plugin#546, #711: on machines with NVSwitches the far end of an NVLink is a switch,
// not the peer, and no link was counted.
TEST(NvidiaBackend, Issue546And711LinksThroughSwitchesAreLinksToEveryPeer) {
  for (const auto& [name, driver, count, each] : {std::tuple{"dgx-2", "", 16, 6},
                                                  {"dgx-2", "450.80.02", 16, 6},
                                                  {"dgx-a100", "", 8, 12},
                                                  {"dgx-h100", "", 8, 18}}) {
    const SimulatedMachine machine(name, driver);
    const Backend backend = Open(machine);
    const auto lanes = LanesOf(DescribeAll(*backend));
    EXPECT_THAT(lanes, SizeIs(count * (count - 1))) << name;
    EXPECT_THAT(lanes, testing::Each(each)) << name << " " << driver;
  }
}

TEST(NvidiaBackend, ReportsTheHalvesOfA16GpuMachine) {
  const auto gpus = Described("dgx-2").gpus;
  ASSERT_EQ(gpus.size(), 16u);
  EXPECT_EQ(gpus[0].model, "Tesla V100-SXM3-32GB");
  EXPECT_EQ(gpus[7].numa_node, 0);
  EXPECT_EQ(gpus[8].numa_node, 1);
  std::map<Nearness, int> of_first;
  for (const device::Link& link : gpus[0].links) ++of_first[link.nearness];
  EXPECT_EQ(of_first,
            (std::map<Nearness, int>{
                {Nearness::kPciSwitches, 3}, {Nearness::kNode, 4}, {Nearness::kSystem, 8}}));
}

// k8s-device-plugin#231, #2038: one GPU that does not answer made the links of all GPUs unreadable.
TEST(NvidiaBackend, Issue231AGpuWhoseLinksCannotBeReadSpoilsNoOther) {
  const SimulatedMachine machine("dgx-a100");
  machine.Sim({"fault", "5", "error", "nvmlDeviceGetNvLinkState", "999"});
  machine.Sim({"fault", "5", "error", "nvmlDeviceGetTopologyCommonAncestor", "999"});
  const Backend backend = Open(machine);
  const auto gpus = DescribeAll(*backend);
  ASSERT_EQ(gpus.size(), 8u) << "it is still listed as a GPU";
  for (const Facts& gpu : gpus)
    for (const device::Link& link : gpu.links)
      EXPECT_EQ(link.fabric_lanes, gpu.index == 5 || link.peer == gpus[5].id ? 0 : 12)
          << gpu.index << " to " << link.peer;
}

TEST(NvidiaBackend, Issue231ALinkThatCannotBeReadLosesNoOther) {
  const auto [machine, backend, gpus] = Described("dgx-a100");
  ASSERT_EQ(gpus.size(), 8u);
  machine.Sim({"fault", "5", "error", "nvmlDeviceGetNvLinkState", "999", "--count", "1"});
  const auto facts = backend->Describe("5");
  ASSERT_TRUE(facts.ok());
  for (const device::Link& link : facts->links) EXPECT_EQ(link.fabric_lanes, 11);
}

TEST(NvidiaBackend, DistinguishesAMixedBox) {
  const auto [machine, backend, gpus] = Described("mixed");
  ASSERT_EQ(gpus.size(), 3u);
  EXPECT_EQ(gpus[0].model, "NVIDIA A100-PCIE-40GB");
  EXPECT_EQ(gpus[1].model, "NVIDIA GeForce RTX 3090");
  EXPECT_EQ(gpus[1].architecture_version, "8.6");
  EXPECT_EQ(gpus[1].serial, "") << "GeForce boards report no serial number";
  EXPECT_THAT(gpus[1].modes, IsEmpty()) << "and do not support MIG";
  EXPECT_EQ(gpus[2].model, "Tesla T4");
  EXPECT_EQ(gpus[2].architecture, "turing");
  EXPECT_EQ(gpus[2].memory, base::Mebibytes(15360));
  for (const Facts& gpu : gpus)
    for (const device::Link& link : gpu.links) EXPECT_EQ(link.fabric_lanes, 0);
  for (const Facts& gpu : gpus) EXPECT_TRUE(backend->Read(gpu.address).ok());
}

TEST(NvidiaBackend, ReportsWhatLabelsAreMadeOf) {
  const SimulatedMachine machine("mixed");
  const Backend mixed = Open(machine);
  const auto gpus = DescribeAll(*mixed);
  ASSERT_EQ(gpus.size(), 3u);
  EXPECT_EQ(gpus[0].details.at(kPciClass), "0x030200");
  EXPECT_EQ(gpus[1].details.at(kPciClass), "0x030000");
  EXPECT_EQ(gpus[0].details.at(kVirtualization), "none");
  EXPECT_FALSE(gpus[0].details.contains(kFabricCluster));

  const SimulatedMachine guest("vgpu-t4");
  const Backend virtual_gpu = Open(guest);
  EXPECT_EQ(DescribeAll(*virtual_gpu).at(0).details.at(kVirtualization), "vgpu");
}

TEST(NvidiaBackend, ReportsTheFabricThatAGpuHasJoined) {
  const SimulatedMachine machine("dgx-h100");
  const Backend backend = Open(machine);
  EXPECT_FALSE(DescribeAll(*backend).at(0).details.contains(kFabricCluster))
      << "the NVLink domain ends at the machine";
  machine.Sim({"set", "all", "fabric=50000000-0000-0000-0000-00000000000a.7"});
  const auto joined = DescribeAll(*backend);
  EXPECT_EQ(joined.at(7).details.at(kFabricCluster), "50000000-0000-0000-0000-00000000000a");
  EXPECT_EQ(joined.at(7).details.at(kFabricClique), "7");
  // A library that has only the newer call.
  machine.Sim({"fault", "all", "error", "nvmlDeviceGetGpuFabricInfo", "13"});
  EXPECT_EQ(DescribeAll(*backend).at(7).details.at(kFabricClique), "7");
}

TEST(NvidiaBackend, SaysThatWhatItDescribedIsNotSoAnyMore) {
  const auto [machine, backend, gpus] = Described("dgx-h100");
  ASSERT_EQ(gpus.size(), 8u);
  EXPECT_FALSE(backend->Read("0")->facts_changed);
  machine.Sim({"set", "0", "mig=enabled"});
  machine.Sim({"set", "1", "fabric=50000000-0000-0000-0000-00000000000a.7"});
  EXPECT_TRUE(backend->Read("0")->facts_changed);
  EXPECT_TRUE(backend->Read("1")->facts_changed);
  EXPECT_FALSE(backend->Read("2")->facts_changed);
  ASSERT_TRUE(backend->Describe("0").ok());
  EXPECT_FALSE(backend->Read("0")->facts_changed);
}

TEST(NvidiaBackend, WithholdsAGpuInMigMode) {
  const SimulatedMachine machine("a100-40gb-x1");
  machine.Sim({"set", "0", "mig=enabled"});
  const Backend backend = Open(machine);
  const auto gpus = DescribeAll(*backend);
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].withheld, "MIG mode is enabled and there are no MIG devices");
  EXPECT_EQ(gpus[0].modes.at(0).current, "enabled");
}

TEST(NvidiaBackend, LivesWithADriverThatKnowsLess) {
  const SimulatedMachine machine("dgx-a100", "450.80.02");
  const Backend backend = MakeBackend(machine.paths());
  const auto driver = backend->Open();
  ASSERT_TRUE(driver.ok()) << driver.error().ToString();
  EXPECT_EQ(driver->version, "450.80.02");
  EXPECT_EQ(driver->runtime_version, "11.0");
  const auto gpus = DescribeAll(*backend);
  ASSERT_EQ(gpus.size(), 8u);
  EXPECT_EQ(gpus[0].model, "A100-SXM4-40GB") << "as drivers before 470 spell it";
  EXPECT_THAT(gpus[0].memory.mebibytes(), testing::AnyOf(40536, 40537))
      << "excludes the memory reserved by the driver";
  EXPECT_EQ(gpus[0].links.at(0).fabric_lanes, 12) << "switches are recognized by their PCI class";
  const auto reading = backend->Read("0");
  ASSERT_TRUE(reading.ok());
  EXPECT_TRUE(reading->reachable);
  EXPECT_FALSE(reading->reports_recovery);
}

TEST(NvidiaBackend, BindsWhatAnAncientLibraryHasAndMissesTheRestQuietly) {
  device::Paths paths;
  paths.library = base::BuildPath("tests/old-nvml.so");
  paths.sysfs_root = paths.proc_root = paths.dev_root = "/nonexistent";
  const Backend backend = MakeBackend(paths);
  const auto driver = backend->Open();
  ASSERT_TRUE(driver.ok()) << driver.error().ToString();
  EXPECT_EQ(driver->version, "");
  const auto gpus = DescribeAll(*backend);
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].id, "GPU-old");
  EXPECT_FALSE(gpus[0].pci.has_value());
  const auto reading = backend->Read("0");
  ASSERT_TRUE(reading.ok());
  EXPECT_TRUE(reading->reachable);
  ASSERT_THAT(reading->processes, SizeIs(20));
  EXPECT_EQ(reading->processes[0], (device::DeviceProcess{100, base::Bytes{0}}))
      << "memory not reported";
  EXPECT_EQ(reading->processes[19], (device::DeviceProcess{119, base::Bytes{1019}}));
  EXPECT_EQ(backend->Wait(milliseconds(0)).error().code(), Code::kUnimplemented);
}

TEST(NvidiaBackend, ReadsWhatAGpuDoes) {
  const SimulatedMachine machine("dgx-a100");
  machine.Sim({"set", "3", "utilisation=80", "temperature=61", "process=4711:10240:train.py"});
  const Backend backend = Open(machine);
  ASSERT_EQ(DescribeAll(*backend).size(), 8u);
  const auto reading = backend->Read("3");
  ASSERT_TRUE(reading.ok());
  EXPECT_TRUE(reading->reachable);
  EXPECT_THAT(TroublesIn(*reading), IsEmpty());
  EXPECT_EQ(reading->processes,
            (std::vector<device::DeviceProcess>{{4711, base::Mebibytes(10240)}}));
  EXPECT_THAT(backend->Read("2")->processes, IsEmpty());
}

TEST(NvidiaBackend, ReportsWhichProcessesOnlyDraw) {
  const SimulatedMachine machine("a100-40gb-x1");
  machine.Sim({"set", "0", "process=11:4:Xorg:G", "process=12:100:blender:G",
               "process=12:200:blender:C", "process=13:50:client:M"});
  const Backend backend = Open(machine);
  ASSERT_EQ(DescribeAll(*backend).size(), 1u);
  const auto reading = backend->Read("0");
  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(reading->processes,
            (std::vector<device::DeviceProcess>{{11, base::Mebibytes(4), true},
                                                {12, base::Mebibytes(200), false},
                                                {13, base::Mebibytes(50), false}}));
}

TEST(NvidiaBackend, SaysWhichDriverReportsRecovery) {
  for (const auto& [version, reports] :
       {std::pair{"550.54.15", false}, std::pair{"570.133.20", true}}) {
    const SimulatedMachine machine("a100-40gb-x1", version);
    const Backend backend = Open(machine);
    ASSERT_EQ(DescribeAll(*backend).size(), 1u);
    EXPECT_EQ(backend->Read("0")->reports_recovery, reports) << version;
    if (!reports) continue;
    machine.Sim({"fault", "0", "recovery-action", "node-reboot"});
    EXPECT_THAT(EvidenceOf(*backend->Read("0"), kRecoveryAction),
                AllOf(Field(&Evidence::code, 2), Field(&Evidence::standing, true)));
    machine.Sim({"heal", "0"});
    EXPECT_FALSE(Has(*backend->Read("0"), kRecoveryAction));
  }
}

TEST(NvidiaBackend, SeesTroubleInTheMemory) {
  const auto [machine, backend, gpus] = Described("dgx-a100");
  machine.Sim({"fault", "1", "remap-pending", "--alone"});
  machine.Sim({"fault", "2", "remap-failure", "--alone"});
  machine.Sim({"fault", "3", "ecc", "--count", "3"});
  EXPECT_TRUE(Has(*backend->Read("1"), kRemapPending));
  EXPECT_TRUE(Has(*backend->Read("2"), kRemapFailure));
  EXPECT_EQ(EvidenceOf(*backend->Read("3"), kEccUncorrectable).code, 3);
  EXPECT_EQ(EvidenceOf(*backend->Read("3"), kEccUncorrectable).device, gpus.at(3).id);
  EXPECT_THAT(TroublesIn(*backend->Read("4")), IsEmpty());
}

class LostGpu : public testing::TestWithParam<const char*> {};

TEST_P(LostGpu, IsSeenWhereverItShowsAndTouchesNoOther) {
  const auto [machine, backend, gpus] = Described("dgx-a100");
  ASSERT_EQ(gpus.size(), 8u);
  machine.Sim({"fault", "5", "lost", "--where", GetParam()});
  EXPECT_THAT(*backend->List(), SizeIs(8));
  const auto reading = backend->Read("5");
  ASSERT_TRUE(reading.ok()) << reading.error().ToString();
  EXPECT_FALSE(reading->reachable);
  const Evidence evidence = EvidenceOf(*reading, kLost);
  EXPECT_EQ(evidence.device, gpus[5].id);
  EXPECT_TRUE(evidence.standing);
  EXPECT_EQ(TheDialect().Judge(evidence).severity, device::Severity::kGone);
  for (const char* other : {"0", "4", "6", "7"}) {
    EXPECT_TRUE(backend->Read(other)->reachable) << other;
    EXPECT_TRUE(backend->Describe(other).ok()) << other;
  }
  machine.Sim({"heal", "5"});
  EXPECT_TRUE(backend->Read("5")->reachable);
}

INSTANTIATE_TEST_SUITE_P(Shows, LostGpu, testing::Values("handle", "getter", "both"));

TEST(NvidiaBackend, DescribesALostGpuAsOneThatDoesNotAnswer) {
  const SimulatedMachine machine("dgx-a100");
  machine.Sim({"fault", "5", "lost"});
  const Backend backend = Open(machine);
  EXPECT_EQ(DescribeAll(*backend).size(), 7u);
  EXPECT_EQ(backend->Describe("5").error().code(), Code::kDataLoss);
  EXPECT_EQ(backend->Describe("99").error().code(), Code::kNotFound);
  EXPECT_EQ(backend->Describe("../0").error().code(), Code::kInvalidArgument);
}

TEST(NvidiaBackend, TakesOneCallThatFailsForThatCallOnly) {
  const auto [machine, backend, gpus] = Described("dgx-a100");
  ASSERT_EQ(gpus.size(), 8u);
  machine.Sim({"fault", "all", "error", "nvmlDeviceGetPowerUsage", "999"});
  const auto reading = backend->Read("0");
  EXPECT_TRUE(reading->reachable);
  machine.Sim({"fault", "all", "error", "nvmlDeviceGetSerial", "3"});
  EXPECT_EQ(backend->Describe("0")->serial, "");
}

TEST(NvidiaBackend, SaysThatAGpuMustBeReset) {
  const auto [machine, backend, gpus] = Described("dgx-a100");
  ASSERT_EQ(gpus.size(), 8u);
  machine.Sim({"fault", "2", "error", "nvmlDeviceGetTemperature", "16"});
  EXPECT_TRUE(Has(*backend->Read("2"), kResetRequired));
}

TEST(NvidiaBackend, HearsAnXidThroughWait) {
  const Described dgx("dgx-a100");
  auto heard = std::async(std::launch::async, [&] { return dgx.backend->Wait(seconds(20)); });
  dgx.machine.Sim({"fault", "4", "xid", "48", "--alone"});
  const auto evidence = heard.get();
  ASSERT_TRUE(evidence.ok()) << evidence.error().ToString();
  ASSERT_FALSE(evidence->empty());
  EXPECT_EQ(evidence->at(0).kind, kXid);
  EXPECT_EQ(evidence->at(0).code, 48);
  EXPECT_EQ(evidence->at(0).device, dgx.gpus.at(4).id);
  EXPECT_EQ(evidence->at(0).source, device::EvidenceSource::kEvent);
  EXPECT_FALSE(evidence->at(0).standing);
}

TEST(NvidiaBackend, WaitsNoLongerThanItMay) {
  const SimulatedMachine machine("t4-x1");
  const Backend backend = MakeBackend(machine.paths());
  EXPECT_FALSE(backend->Wait(milliseconds(1)).ok()) << "not open";
  ASSERT_TRUE(backend->Open().ok());
  EXPECT_THAT(*backend->Wait(milliseconds(1)), IsEmpty()) << "nothing described yet";
  ASSERT_EQ(DescribeAll(*backend).size(), 1u);
  EXPECT_THAT(*backend->Wait(milliseconds(1)), IsEmpty());
}

TEST(NvidiaBackend, SaysWhatIsMissing) {
  const os::TemporaryFolder empty;
  device::Paths paths;
  paths.driver_root = paths.dev_root = paths.sysfs_root = empty.path();
  const auto nothing = MakeBackend(paths)->Open();
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().code(), Code::kNotFound);
  EXPECT_THAT(
      nothing.error().message(),
      AllOf(HasSubstr("libnvidia-ml.so.1"), HasSubstr(empty.path()), HasSubstr("--driver-root")));

  paths.library = empty / "nvml.so";
  EXPECT_THAT(MakeBackend(paths)->Open().error().message(), HasSubstr("--nvml-library"));

  empty.Write("nvml.so", "no library at all");
  const auto broken = MakeBackend(paths)->Open();
  EXPECT_EQ(broken.error().code(), Code::kFailedPrecondition);
}

TEST(NvidiaBackend, SaysThatTheKernelModuleIsNotLoaded) {
  const SimulatedMachine machine("dgx-a100");
  machine.Sim({"fault", "driver", "unload"});
  const Backend backend = MakeBackend(machine.paths());
  const auto driver = backend->Open();
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.error().code(), Code::kNotFound);
  EXPECT_THAT(driver.error().message(), HasSubstr("modprobe nvidia"));
  machine.Sim({"heal", "driver"});
  EXPECT_TRUE(backend->Open().ok()) << "a failed open can be repeated";
}

TEST(NvidiaBackend, SaysThatLibraryAndModuleDiffer) {
  const SimulatedMachine machine("dgx-a100");
  machine.Sim({"fault", "driver", "mismatch"});
  const auto driver = MakeBackend(machine.paths())->Open();
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(driver.error().message(), HasSubstr("different versions"));
}

TEST(NvidiaBackend, NoticesThatTheDriverWentAway) {
  const auto [machine, backend, gpus] = Described("dgx-a100");
  ASSERT_EQ(gpus.size(), 8u);
  machine.Sim({"fault", "driver", "unload"});
  EXPECT_EQ(backend->List().error().code(), Code::kNotFound) << "certain, unlike a failed call";
  EXPECT_EQ(backend->Read("0").error().code(), Code::kUnavailable);
  EXPECT_EQ(backend->Describe("0").error().code(), Code::kUnavailable);
}

TEST(NvidiaBackend, NoticesThatTheDriverWasReplaced) {
  const SimulatedMachine machine("dgx-a100");
  const Backend backend = Open(machine);
  machine.Sim({"fault", "driver", "unload"});
  machine.Sim({"heal", "driver", "--driver", "570.133.20"});
  const auto list = backend->List();
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(list.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(list.error().message(), AllOf(HasSubstr("550.54.15"), HasSubstr("570.133.20")));
}

TEST(NvidiaBackend, AFileThatCannotBeReadTakesNoDriverAway) {
  const SimulatedMachine machine("dgx-a100");
  const Backend backend = Open(machine);
  const std::string version = machine.paths().sysfs_root + "/module/nvidia/version";
  std::filesystem::remove(version);
  std::filesystem::create_directory(version);
  EXPECT_TRUE(backend->List().ok()) << "the read fails, for example for lack of memory";
  std::filesystem::remove(version);
  std::ofstream(version).close();
  EXPECT_TRUE(backend->List().ok()) << "an empty file proves nothing either";
  std::filesystem::remove(version);
  EXPECT_EQ(backend->List().error().code(), Code::kNotFound);
}

TEST(NvidiaBackend, NoticesADriverThatWasReloadedUnderneath) {
  const SimulatedMachine machine("dgx-a100");
  const Backend backend = Open(machine);
  machine.Sim({"fault", "driver", "unload"});
  machine.Sim({"heal", "driver"});
  EXPECT_EQ(backend->List().error().code(), Code::kUnavailable);
}

TEST(NvidiaBackend, UnderstandsADevRootThatIsItselfADev) {
  const SimulatedMachine machine("dgx-a100");
  device::Paths paths = machine.paths();
  paths.dev_root = machine.root() + "/dev";
  const auto driver = MakeBackend(paths)->Open();
  ASSERT_TRUE(driver.ok());
  EXPECT_THAT(driver->files, SizeIs(4));
  EXPECT_EQ(driver->files[0].path, "/dev/nvidiactl");
}

TEST(NvidiaBackend, ListsOnlyTheControlFilesThatAreThere) {
  const SimulatedMachine machine("t4-x1");
  std::filesystem::remove(machine.root() + "/dev/nvidia-modeset");
  const auto driver = MakeBackend(machine.paths())->Open();
  ASSERT_TRUE(driver.ok());
  EXPECT_THAT(driver->files, SizeIs(3));
}

TEST(NvidiaBackend, FindsNoGpusOnADriverWithout) {
  const SimulatedMachine machine("empty");
  EXPECT_FALSE(MakeBackend(machine.paths())->Open().ok());
}

}  // namespace
}  // namespace penstock::backend::nvidia
