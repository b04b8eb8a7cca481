// Tests the labels of GPU Feature Discovery, GPU by GPU. Whole machines are tested in
// src/node/label and tests/.
#include "backend/nvidia/dialect/labels.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/nvidia/dialect/dialect.h"
#include "backend/nvidia/dialect/kinds.h"

namespace penstock::backend::nvidia {
namespace {

using device::Facts;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::Pair;

using Set = std::map<std::string, std::string>;

Facts Gpu(int index, const std::string& model, const std::string& capability = "8.0",
          const std::string& family = "ampere") {
  Facts facts;
  facts.id = "GPU-" + std::to_string(index);
  facts.vendor = "nvidia";
  facts.index = index;
  facts.model = model;
  facts.memory = base::Mebibytes(40960);
  facts.architecture = family;
  facts.architecture_version = capability;
  facts.details = {{kPciClass, "0x030200"}, {kVirtualization, "none"}};
  return facts;
}

device::Mode Mig(const char* current) { return {"mig", current, current, {"disabled", "enabled"}}; }

const device::Driver kDriver{.vendor = "nvidia", .version = "550.54.15", .runtime_version = "12.4"};

Set LabelsOf(const std::vector<Facts>& gpus, const device::Driver& driver = kDriver,
             std::vector<device::LabelShare> shares = {}) {
  device::LabelFacts facts;
  facts.shares = std::move(shares);
  for (const Facts& gpu : gpus) facts.devices.push_back(&gpu);
  facts.driver = &driver;
  facts.machine = "DGXA100 920-23687-2531-001";
  facts.timestamp = 1700000000;
  return TheDialect().Labels(facts);
}

/// The configuration space of a vGPU: a chain of two capabilities, the second NVIDIA's, with
/// another record before the relevant one.
std::string VgpuConfig() {
  std::string config(256, '\0');
  config[0x06] = 0x10;
  config[0x34] = 0x40;
  config[0x40] = 0x05;
  config[0x41] = static_cast<char>(0x80);
  const std::string capability = std::string("\x09\x00\x1f", 3) + "VF" +
                                 std::string("\x03\x04\xaa\xbb", 4) + std::string("\x00\x16", 2) +
                                 std::string("460.16\0\0\0\0", 10) +
                                 std::string("r460_00\0\0\0", 10);
  config.replace(0x80, capability.size(), capability);
  return config;
}

TEST(Sanitise, IsThatOfGpuFeatureDiscovery) {
  const std::pair<const char*, const char*> cases[] = {
      {"a space separated string", "a-space-separated-string"},
      {"some(thing)else", "somethingelse"},
      {"some ( thing )else", "some-thing-else"},
      {"NVIDIA-TITAN-X-(Pascal)", "NVIDIA-TITAN-X-Pascal"},
      {" input  with multiple   spaces   ", "input-with-multiple-spaces"},
      {"some [ / thing / ]else", "some-thing-else"},
      {"some / thing /else", "some-thing-else"},
      {"some-thing.else_new", "some-thing.else_new"},
      {"tab\tis\ndropped", "tabisdropped"},
      {"", ""},
  };
  for (const auto& [name, label] : cases) EXPECT_EQ(Sanitise(name), label);
}

TEST(ModelKey, IsTheSameUnderEveryDriverAndAlwaysFits) {
  EXPECT_EQ(ModelKey("NVIDIA A100-SXM4-40GB"), "A100-SXM4-40GB");
  EXPECT_EQ(ModelKey("A100-SXM4-40GB"), "A100-SXM4-40GB") << "as drivers before 470 spell it";
  EXPECT_EQ(ModelKey("Tesla T4"), "Tesla-T4");
  EXPECT_EQ(ModelKey("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"),
            "RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition");
  EXPECT_EQ(ModelKey(std::string(50, 'a') + " " + std::string(20, 'b')), std::string(50, 'a'))
      << "no dash at the end";
  EXPECT_EQ(ModelKey("()"), "");
}

TEST(NvidiaLabels, AreTheWholeCatalogueForAWholeGpu) {
  Facts gpu = Gpu(0, "NVIDIA A100-SXM4-40GB");
  gpu.modes = {Mig("disabled")};
  EXPECT_THAT(
      LabelsOf({gpu}),
      ElementsAre(
          Pair("nvidia.com/cuda.driver-version.full", "550.54.15"),
          Pair("nvidia.com/cuda.driver-version.major", "550"),
          Pair("nvidia.com/cuda.driver-version.minor", "54"),
          Pair("nvidia.com/cuda.driver-version.revision", "15"),
          Pair("nvidia.com/cuda.driver.major", "550"), Pair("nvidia.com/cuda.driver.minor", "54"),
          Pair("nvidia.com/cuda.driver.rev", "15"),
          Pair("nvidia.com/cuda.runtime-version.full", "12.4"),
          Pair("nvidia.com/cuda.runtime-version.major", "12"),
          Pair("nvidia.com/cuda.runtime-version.minor", "4"),
          Pair("nvidia.com/cuda.runtime.major", "12"), Pair("nvidia.com/cuda.runtime.minor", "4"),
          Pair("nvidia.com/gfd.timestamp", "1700000000"), Pair("nvidia.com/gpu.compute.major", "8"),
          Pair("nvidia.com/gpu.compute.minor", "0"), Pair("nvidia.com/gpu.count", "1"),
          Pair("nvidia.com/gpu.count.A100-SXM4-40GB", "1"), Pair("nvidia.com/gpu.family", "ampere"),
          Pair("nvidia.com/gpu.isolation", "hardware"),
          Pair("nvidia.com/gpu.isolation.A100-SXM4-40GB", "hardware"),
          Pair("nvidia.com/gpu.machine", "DGXA100-920-23687-2531-001"),
          Pair("nvidia.com/gpu.memory", "40960"),
          Pair("nvidia.com/gpu.memory.A100-SXM4-40GB", "40960"),
          Pair("nvidia.com/gpu.mode", "compute"), Pair("nvidia.com/gpu.present", "true"),
          Pair("nvidia.com/gpu.present.A100-SXM4-40GB", "true"),
          Pair("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"),
          Pair("nvidia.com/gpu.replicas", "1"), Pair("nvidia.com/gpu.replicas.A100-SXM4-40GB", "1"),
          Pair("nvidia.com/gpu.sharing-strategy", "none"),
          Pair("nvidia.com/gpu.sharing-strategy.A100-SXM4-40GB", "none"),
          Pair("nvidia.com/mig.capable", "true"), Pair("nvidia.com/mps.capable", "false"),
          Pair("nvidia.com/vgpu.present", "false")));
}

TEST(NvidiaLabels, SayThatThereIsAGpuWithoutADriver) {
  device::LabelFacts facts;
  EXPECT_THAT(NodeLabels(facts), IsEmpty());
  facts.pci_configs = {""};
  EXPECT_THAT(NodeLabels(facts), ElementsAre(Pair("nvidia.com/gpu.present", "true")));
  facts.driver = &kDriver;
  EXPECT_THAT(NodeLabels(facts), ElementsAre(Pair("nvidia.com/gpu.present", "true")))
      << "bound to another driver";
}

TEST(NvidiaLabels, TakeDriverVersionsApart) {
  const auto of = [](const char* version) {
    return LabelsOf({Gpu(0, "Tesla T4")}, {.vendor = "nvidia", .version = version});
  };
  EXPECT_THAT(of("595.80"), AllOf(Contains(Pair("nvidia.com/cuda.driver.minor", "80")),
                                  Contains(Pair("nvidia.com/cuda.driver.rev", "")),
                                  Contains(Pair("nvidia.com/cuda.driver-version.revision", ""))));
  EXPECT_THAT(of("1.2.3.4"), AllOf(Contains(Pair("nvidia.com/cuda.driver-version.full", "1.2.3.4")),
                                   Not(Contains(Key("nvidia.com/cuda.driver.major")))));
  EXPECT_THAT(of(""), AllOf(Not(Contains(Key("nvidia.com/cuda.driver-version.full"))),
                            Contains(Key("nvidia.com/gpu.product"))));
  EXPECT_THAT(of("1.2"), Not(Contains(Key("nvidia.com/cuda.runtime.major"))))
      << "a library that does not report it";
}

TEST(NvidiaLabels, LeaveOutWhatIsNotKnown) {
  Facts gpu = Gpu(0, "NVIDIA Thor", "11.0", "");
  EXPECT_EQ(LabelsOf({gpu}).at("nvidia.com/gpu.family"), "undefined");
  gpu.architecture_version = "";
  gpu.memory = {};
  gpu.details = {};
  gpu.model = "";
  const Set labels = LabelsOf({gpu});
  for (const char* key :
       {"gpu.family", "gpu.compute.major", "gpu.memory", "vgpu.present", "gpu.clique"})
    EXPECT_THAT(labels, Not(Contains(Key(std::string("nvidia.com/") + key))));
  EXPECT_EQ(labels.at("nvidia.com/gpu.mode"), "unknown");
  EXPECT_EQ(labels.at("nvidia.com/gpu.product"), "");
}

TEST(NvidiaLabels, NameTheMachineUnknownWhereNothingIsSaid) {
  const Facts gpu = Gpu(0, "Tesla T4");
  device::LabelFacts facts;
  facts.devices = {&gpu};
  facts.driver = &kDriver;
  EXPECT_EQ(NodeLabels(facts).at("nvidia.com/gpu.machine"), "unknown");
  EXPECT_THAT(NodeLabels(facts), Not(Contains(Key("nvidia.com/gfd.timestamp")))) << "switched off";
}

// DP#731, GFD#27, GFD#66: the labels of a mixed node changed with every update.
TEST(NvidiaLabels, DP731DoNotFlapOnAMixedNode) {
  std::vector<Facts> gpus{Gpu(0, "NVIDIA A100-PCIE-40GB"), Gpu(1, "NVIDIA GeForce RTX 3090", "8.6"),
                          Gpu(2, "Tesla T4", "7.5", "turing"), Gpu(3, "Tesla T4", "7.5", "turing")};
  const Set first = LabelsOf(gpus);
  EXPECT_EQ(first.at("nvidia.com/gpu.product"), "Tesla-T4") << "most GPUs are of this model";
  EXPECT_EQ(first.at("nvidia.com/gpu.count"), "2") << "counts only GPUs of that model";
  EXPECT_EQ(first.at("nvidia.com/gpu.family"), "turing");
  std::mt19937 random(1);
  for (int turn = 0; turn < 1000; ++turn) {
    std::shuffle(gpus.begin(), gpus.end(), random);
    ASSERT_EQ(LabelsOf(gpus), first);
  }
}

TEST(NvidiaLabels, GFD66SpeakOfTheFirstModelAmongEquals) {
  std::vector<Facts> gpus{Gpu(0, "NVIDIA GeForce RTX 3090", "8.6"),
                          Gpu(1, "NVIDIA A100-PCIE-40GB")};
  EXPECT_EQ(LabelsOf(gpus).at("nvidia.com/gpu.product"), "NVIDIA-GeForce-RTX-3090");
  std::swap(gpus[0].index, gpus[1].index);
  EXPECT_EQ(LabelsOf(gpus).at("nvidia.com/gpu.product"), "NVIDIA-A100-PCIE-40GB");
}

TEST(NvidiaLabels, GFD27ReportEachModelOfAMixedNode) {
  std::vector<Facts> gpus{Gpu(0, "NVIDIA A100-PCIE-40GB"), Gpu(1, "Tesla T4", "7.5", "turing"),
                          Gpu(2, "Tesla T4", "7.5", "turing")};
  gpus[1].memory = gpus[2].memory = base::Mebibytes(15360);
  const Set labels = LabelsOf(gpus);
  EXPECT_EQ(labels.at("nvidia.com/gpu.present.A100-PCIE-40GB"), "true");
  EXPECT_EQ(labels.at("nvidia.com/gpu.present.Tesla-T4"), "true");
  EXPECT_EQ(labels.at("nvidia.com/gpu.count.A100-PCIE-40GB"), "1");
  EXPECT_EQ(labels.at("nvidia.com/gpu.count.Tesla-T4"), "2");
  EXPECT_EQ(labels.at("nvidia.com/gpu.memory.Tesla-T4"), "15360");
}

TEST(NvidiaLabels, HaveNoReplicasWhereAllGpusOfTheModelAreInMigMode) {
  std::vector<Facts> gpus{Gpu(0, "NVIDIA A100-SXM4-40GB"), Gpu(1, "NVIDIA A100-SXM4-40GB")};
  gpus[0].modes = gpus[1].modes = {Mig("enabled")};
  EXPECT_EQ(LabelsOf(gpus).at("nvidia.com/gpu.replicas"), "0");
  EXPECT_EQ(LabelsOf(gpus).at("nvidia.com/gpu.count"), "2");
  gpus[1].modes = {Mig("disabled")};
  EXPECT_EQ(LabelsOf(gpus).at("nvidia.com/gpu.replicas"), "1");
  gpus[0].modes = gpus[1].modes = {};
  EXPECT_EQ(LabelsOf(gpus).at("nvidia.com/mig.capable"), "false");
}

device::LabelShare Sliced(int shares, bool renamed = false) {
  return {{device::Sharing::kTimeSlicing, shares}, renamed, "none"};
}
const device::LabelShare kWhole{{}, false, "hardware"};
const device::LabelShare kMps{{device::Sharing::kServer, 4}, false, "memory-per-process"};

std::string At(const Set& labels, const std::string& key) { return labels.at("nvidia.com/" + key); }

TEST(NvidiaLabels, SayThatAModelIsSharedUnlessItsResourceSaysIt) {
  const std::vector<Facts> gpus{Gpu(0, "Tesla T4"), Gpu(1, "Tesla T4")};
  const Set sliced = LabelsOf(gpus, kDriver, {Sliced(4), Sliced(4)});
  EXPECT_EQ(At(sliced, "gpu.product"), "Tesla-T4-SHARED");
  EXPECT_EQ(At(sliced, "gpu.replicas"), "4");
  EXPECT_EQ(At(sliced, "gpu.sharing-strategy"), "time-slicing");
  EXPECT_EQ(At(sliced, "mps.capable"), "false");
  EXPECT_EQ(At(sliced, "gpu.isolation"), "none");
  const Set renamed = LabelsOf(gpus, kDriver, {Sliced(4, true), Sliced(4, true)});
  EXPECT_EQ(At(renamed, "gpu.product"), "Tesla-T4");
  EXPECT_EQ(At(renamed, "gpu.replicas"), "4");
  EXPECT_EQ(At(LabelsOf(gpus, kDriver, {kWhole, kWhole}), "gpu.product"), "Tesla-T4");
}

TEST(NvidiaLabels, ReportMpsAsGpuFeatureDiscoveryDoes) {
  const std::vector<Facts> gpus{Gpu(0, "Tesla T4"), Gpu(1, "NVIDIA A100-PCIE-40GB")};
  const Set labels = LabelsOf(gpus, kDriver, {kMps, Sliced(2)});
  EXPECT_EQ(At(labels, "mps.capable"), "true");
  EXPECT_EQ(At(labels, "gpu.sharing-strategy"), "mps");
  EXPECT_EQ(At(labels, "gpu.product"), "Tesla-T4-SHARED");
  EXPECT_EQ(At(labels, "gpu.isolation.Tesla-T4"), "memory-per-process");
  EXPECT_EQ(At(labels, "gpu.sharing-strategy.A100-PCIE-40GB"), "time-slicing");
  EXPECT_EQ(At(labels, "gpu.isolation.A100-PCIE-40GB"), "none");
  EXPECT_EQ(At(LabelsOf(gpus, kDriver, {kWhole, kMps}), "mps.capable"), "true")
      << "another model than the one that decides";
}

// DP#628: one GPU of several is shared, or each differently.
TEST(NvidiaLabels, DP628SpeakOfTheWayInWhichMostGpusAreShared) {
  const std::vector<Facts> gpus{Gpu(0, "Tesla T4"), Gpu(1, "Tesla T4"), Gpu(2, "Tesla T4")};
  const Set most = LabelsOf(gpus, kDriver, {Sliced(10), kWhole, kWhole});
  EXPECT_EQ(At(most, "gpu.replicas"), "1");
  EXPECT_EQ(At(most, "gpu.sharing-strategy"), "none");
  EXPECT_EQ(At(most, "gpu.product"), "Tesla-T4");
  EXPECT_EQ(At(most, "gpu.isolation"), "none") << "a pod may get the one that is shared";
  EXPECT_EQ(At(LabelsOf(gpus, kDriver, {kMps, kWhole, kWhole}), "gpu.isolation"),
            "memory-per-process");
  const Set first = LabelsOf(gpus, kDriver, {kMps, Sliced(2), kWhole});
  EXPECT_EQ(At(first, "gpu.replicas"), "4");
  EXPECT_EQ(At(first, "gpu.sharing-strategy"), "mps");
  EXPECT_EQ(At(LabelsOf(gpus, kDriver, {Sliced(4, true), Sliced(4), Sliced(4)}), "gpu.product"),
            "Tesla-T4-SHARED");
}

TEST(NvidiaLabels, ReportTheSharesOfEachGpuWhateverTheirOrder) {
  struct One {
    Facts facts;
    device::LabelShare share;
  };
  std::vector<One> ones{{Gpu(0, "Tesla T4"), kMps},
                        {Gpu(1, "Tesla T4"), Sliced(2)},
                        {Gpu(2, "NVIDIA A100-PCIE-40GB"), kWhole}};
  Set first;
  std::mt19937 random(1);
  for (int turn = 0; turn < 100; ++turn) {
    std::vector<Facts> gpus;
    std::vector<device::LabelShare> shares;
    for (const One& one : ones) {
      gpus.push_back(one.facts);
      shares.push_back(one.share);
    }
    const Set labels = LabelsOf(gpus, kDriver, shares);
    if (turn == 0) first = labels;
    ASSERT_EQ(labels, first);
    std::shuffle(ones.begin(), ones.end(), random);
  }
  EXPECT_EQ(At(first, "gpu.replicas.Tesla-T4"), "4");
  EXPECT_EQ(At(first, "gpu.replicas.A100-PCIE-40GB"), "1");
}

TEST(NvidiaLabels, KeepTheLongestModelsKeysToWhatKubernetesTakes) {
  const Set labels = LabelsOf({Gpu(0, "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition")});
  EXPECT_EQ(At(labels, "gpu.sharing-strategy.RTX-PRO-6000-Blackwell-Max-Q-Workstation-E"), "none");
  EXPECT_EQ(At(labels, "gpu.isolation.RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition"),
            "hardware");
}

TEST(NvidiaLabels, ReportNoIsolationWhereNothingIsGivenOut) {
  Facts gpu = Gpu(0, "NVIDIA A100-SXM4-40GB");
  gpu.modes = {Mig("enabled")};
  EXPECT_THAT(LabelsOf({gpu}), Not(Contains(Key("nvidia.com/gpu.isolation"))));
}

TEST(NvidiaLabels, ReportTheModeByThePciClass) {
  std::vector<Facts> gpus{Gpu(0, "Tesla T4"), Gpu(1, "NVIDIA GeForce RTX 3090")};
  EXPECT_EQ(LabelsOf(gpus).at("nvidia.com/gpu.mode"), "compute");
  gpus[1].details[kPciClass] = "0x030000";
  EXPECT_EQ(LabelsOf(gpus).at("nvidia.com/gpu.mode"), "unknown") << "mixed";
  gpus[0].details[kPciClass] = "0x030000";
  EXPECT_EQ(LabelsOf(gpus).at("nvidia.com/gpu.mode"), "graphics");
}

TEST(NvidiaLabels, ReportTheCliqueWhereThereIsOne) {
  std::vector<Facts> gpus{Gpu(0, "NVIDIA H100 80GB HBM3"), Gpu(1, "NVIDIA H100 80GB HBM3"),
                          Gpu(2, "NVIDIA H100 80GB HBM3")};
  EXPECT_THAT(LabelsOf(gpus), Not(Contains(Key("nvidia.com/gpu.clique"))));
  const std::string cluster = "50000000-0000-0000-0000-000000000004";
  for (int i : {0, 1}) gpus[i].details.insert({{kFabricCluster, cluster}, {kFabricClique, "1"}});
  EXPECT_EQ(LabelsOf(gpus).at("nvidia.com/gpu.clique"), cluster + ".1")
      << "the third GPU is in no fabric";
  gpus[1].details[kFabricClique] = "2";
  EXPECT_THAT(LabelsOf(gpus), Not(Contains(Key("nvidia.com/gpu.clique"))))
      << "not unique on the node";
}

TEST(NvidiaLabels, ReportAVgpuAndItsHostsDriver) {
  const std::string config = VgpuConfig();
  Facts gpu = Gpu(0, "GRID T4-16Q", "7.5", "turing");
  device::LabelFacts facts;
  facts.devices = {&gpu};
  facts.driver = &kDriver;
  facts.pci_configs = {config};
  EXPECT_THAT(NodeLabels(facts),
              AllOf(Contains(Pair("nvidia.com/vgpu.present", "true")),
                    Contains(Pair("nvidia.com/vgpu.host-driver-version", "460.16")),
                    Contains(Pair("nvidia.com/vgpu.host-driver-branch", "r460_00"))));
  // Without privileges 64 bytes are readable; then the driver's report counts.
  facts.pci_configs = {std::string_view(config).substr(0, 64)};
  EXPECT_EQ(NodeLabels(facts).at("nvidia.com/vgpu.present"), "false");
  gpu.details[kVirtualization] = "vgpu";
  EXPECT_THAT(NodeLabels(facts), AllOf(Contains(Pair("nvidia.com/vgpu.present", "true")),
                                       Not(Contains(Key("nvidia.com/vgpu.host-driver-version")))));
  gpu.details.erase(kVirtualization);
  EXPECT_THAT(NodeLabels(facts), Not(Contains(Key("nvidia.com/vgpu.present"))));
}

TEST(FindVgpu, SurvivesEveryBrokenChain) {
  EXPECT_FALSE(FindVgpu("").known);
  std::string config(256, '\0');
  EXPECT_TRUE(FindVgpu(config).known) << "no capabilities at all";
  config[0x06] = 0x10;
  config[0x34] = 0x40;
  config[0x41] = 0x40;  // points to itself
  EXPECT_FALSE(FindVgpu(config).vgpu.has_value());
  config[0x34] = static_cast<char>(0xff);  // beyond the end
  EXPECT_FALSE(FindVgpu(config).vgpu.has_value());
  std::string vgpu = VgpuConfig();
  vgpu[0x86] = 0;  // a record of length 0
  EXPECT_EQ(FindVgpu(vgpu).vgpu->host_driver_version, "");
  vgpu = VgpuConfig();
  vgpu[0x82] = 7;  // shorter than its signature and one record
  EXPECT_EQ(FindVgpu(vgpu).vgpu->host_driver_version, "");
  std::mt19937 random(1);
  for (int turn = 0; turn < 20000; ++turn) {
    vgpu = VgpuConfig();
    for (int i = 0; i < 4; ++i) vgpu[0x30 + random() % 0x80] = static_cast<char>(random());
    (void)FindVgpu(vgpu);
  }
}

}  // namespace
}  // namespace penstock::backend::nvidia
