// Tests the labels of a node with invented vendors. The catalogue of real machines is in tests/.
#include "node/label/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"
#include "node/inventory/testing/acme_inventory.h"
#include "node/label/host_features.h"

namespace penstock::node::label {
namespace {

using device::testing::AcmeDevice;
using device::testing::AcmeDriver;
using device::testing::FindAcme;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Key;
using testing::Not;
using testing::Pair;

constexpr base::WallTime kNow{std::chrono::seconds(1700000000)};

LabelContext WithoutFeatures() {
  LabelContext context;
  context.host_features = false;
  return context;
}

void Fill(inventory::Inventory& inventory, int count) {
  inventory.SetVendor(inventory::AcmeVendor());
  inventory.SetFacts("acme", inventory::AcmeDevices(count, count), "pulled", kNow);
}

/// Labels, their inputs, which only the test changes, and the published sets, in order.
struct Node {
  explicit Node(int devices = 0) {
    if (devices > 0) Fill(inventory, devices);
  }
  inventory::Inventory inventory;
  void Set(LabelContext context) {
    labels.Set(std::move(context));
    Update();
  }
  void Update() {
    labels.Update({.inventory = inventory.published().Get(),
                   .servers = servers.Get(),
                   .desired = desired.Get()});
  }
  base::Published<share::DesiredAssignments> desired;
  base::Published<device::SharedDevices> servers;
  Labels labels{FindAcme};
  std::vector<LabelSet> heard;
  base::Subscription on =
      labels.published().Subscribe([this](const auto& set) { heard.push_back(*set); });
  base::Subscription on_inventory =
      inventory.published().Subscribe([this](const auto&) { Update(); });
  base::Subscription on_desired = desired.Subscribe([this](const auto&) { Update(); });
  base::Subscription on_servers = servers.Subscribe([this](const auto&) { Update(); });
};

TEST(Labels, WithoutFeatureDiscoveryOnlyFeaturesOfTheHostAreLeft) {
  inventory::Inventory inventory;
  Fill(inventory, 2);
  LabelContext context;
  context.machine.product = "M";
  context.machine.kernel = "6.1.0";
  const LabelSet all = ComputeLabels(*inventory.published().Get(), FindAcme, context);
  EXPECT_THAT(all, Contains(Key("acme.com/gpu.count")));
  context.feature_discovery = false;
  const LabelSet features = ComputeLabels(*inventory.published().Get(), FindAcme, context);
  EXPECT_FALSE(features.empty());
  for (const auto& [key, value] : all)
    EXPECT_EQ(features.contains(key), key.starts_with("feature.node.kubernetes.io/")) << key;
}

// GFD#71, DP#733: labels disappeared while the agent restarted.
TEST(Labels, DP733AreNotReportedBeforeTheFirstLookIsOver) {
  Node node;
  Fill(node.inventory, 2);
  EXPECT_TRUE(node.heard.empty());
  EXPECT_FALSE(node.labels.begun());
  node.Set(WithoutFeatures());
  EXPECT_TRUE(node.labels.begun());
  EXPECT_THAT(node.heard, ElementsAre(ElementsAre(Pair("acme.com/gpu.count", "2"),
                                                  Pair("acme.com/gpu.first", "G0"))));
}

// DP#733: a driver that is loaded late.
TEST(Labels, DP733ComeWithADriverThatComesLate) {
  Node node;
  node.inventory.SetVendor({"acme", nullptr, "no driver"});
  node.Set(WithoutFeatures());
  EXPECT_THAT(node.heard, ElementsAre(LabelSet{})) << "none is an answer too";
  Fill(node.inventory, 1);
  EXPECT_THAT(node.heard.back(), Contains(Pair("acme.com/gpu.count", "1")));
}

TEST(Labels, ChangeWithTheDevicesAndWithNothingElse) {
  Node node(2);
  node.Set(WithoutFeatures());
  node.Set(WithoutFeatures());
  device::Reading reading;
  reading.processes.push_back({4711, base::Mebibytes(1)});
  node.inventory.SetReading("G0", reading, kNow);
  node.inventory.SetHealth("G0", device::HealthState::kHealthy, "", kNow);
  node.inventory.SetHealth("G0", device::HealthState::kUnhealthy, "XID 48", kNow);
  node.inventory.SetVendor(
      {"acme", std::make_shared<const device::Driver>(AcmeDriver()), "said otherwise"});
  EXPECT_EQ(node.heard.size(), 1u);
  node.inventory.SetFacts("acme", {AcmeDevice(1, 2)}, "pulled", kNow);
  ASSERT_EQ(node.heard.size(), 2u) << "at once";
  EXPECT_THAT(node.heard.back(),
              ElementsAre(Pair("acme.com/gpu.count", "1"), Pair("acme.com/gpu.first", "G1")));
  Fill(node.inventory, 2);
  EXPECT_EQ(node.heard.back(), node.heard.front());
}

TEST(Labels, FollowTheSharingAndStayQuietOtherwise) {
  Node node(2);
  node.Set(WithoutFeatures());
  share::DesiredAssignments desired;
  desired.assignments["G0"] = {
      .allocator = "kubelet", .resource = "acme.com/gpu", .shape = {device::Sharing::kServer, 4}};
  node.desired.Set(desired);
  ASSERT_EQ(node.heard.size(), 2u);
  EXPECT_EQ(node.heard.back().at("acme.com/gpu.shares"), "4.mps.none_1.none.hardware")
      << "no server yet: it holds nothing";
  device::SharedDevice server{
      .set = "acme.com/gpu", .ready = true, .isolation = device::Isolation::kMemoryPerProcess};
  node.servers.Set({{"G0", server}});
  ASSERT_EQ(node.heard.size(), 3u);
  EXPECT_EQ(node.heard.back().at("acme.com/gpu.shares"),
            "4.mps.memory-per-process_1.none.hardware");
  server.clients = 7;
  node.servers.Set({{"G0", server}});
  desired.remarks = {"one"};
  desired.assignments["G0"].allocator = "local";
  node.desired.Set(desired);
  EXPECT_EQ(node.heard.size(), 3u) << "clients, remarks and allocators are no label";
  node.desired.Set(share::DesiredAssignments{});
  EXPECT_THAT(node.heard.back(), Not(Contains(Key("acme.com/gpu.shares"))));
}

TEST(Labels, FollowTheirContext) {
  Node node(1);
  LabelContext context = WithoutFeatures();
  node.Set(context);
  EXPECT_THAT(*node.labels.published().Get(),
              Not(Contains(Key("feature.node.kubernetes.io/kernel-version.full"))));
  context.host_features = true;
  context.machine.kernel = "6.1.0";
  node.Set(context);
  EXPECT_THAT(*node.labels.published().Get(),
              Contains(Pair("feature.node.kubernetes.io/kernel-version.full", "6.1.0")));
}

TEST(Labels, KnowAnAcceleratorOnTheBusWithoutADriver) {
  inventory::Snapshot snapshot;
  snapshot.vendors = {{"acme", nullptr, "no driver"}};
  LabelContext context;
  context.machine.pci = {{"0000:01:00.0", 0xacce, 1, 0x030200, ""},
                         {"0000:01:00.1", 0xacce, 2, 0x040300, ""},
                         {"0000:02:00.0", 0x8086, 3, 0x030000, ""}};
  EXPECT_THAT(ComputeLabels(snapshot, FindAcme, context),
              ElementsAre(Pair("feature.node.kubernetes.io/pci-0302_acce.present", "true"),
                          Pair("feature.node.kubernetes.io/pci-acce.present", "true")));
}

TEST(Labels, KnowAnAcceleratorThatCameAfterTheBusWasRead) {
  inventory::Inventory inventory;
  device::Facts facts = AcmeDevice(0, 1);
  facts.details["pci.class"] = "0x120000";
  inventory.SetVendor(inventory::AcmeVendor());
  inventory.SetFacts("acme", {facts}, "", kNow);
  EXPECT_THAT(ComputeLabels(*inventory.published().Get(), FindAcme, {}),
              AllOf(Contains(Pair("feature.node.kubernetes.io/pci-1200_acce.present", "true")),
                    Contains(Pair("feature.node.kubernetes.io/pci-acce.present", "true"))));
  facts.details["pci.class"] = "nonsense";
  inventory.SetFacts("acme", {facts}, "", kNow);
  EXPECT_THAT(ComputeLabels(*inventory.published().Get(), FindAcme, {}),
              Not(Contains(Key("feature.node.kubernetes.io/pci-acce.present"))));
}

TEST(Labels, LeaveOutWhatKubernetesWouldRefuse) {
  inventory::Inventory inventory;
  inventory.SetVendor(inventory::AcmeVendor());
  device::Facts facts = AcmeDevice(0, 1);
  facts.id = "no value";
  inventory.SetFacts("acme", {facts}, "", kNow);
  LabelContext context;
  context.machine.os_id = "my linux";
  context.machine.cpu_flags = {"AVX2", "A B"};
  EXPECT_THAT(ComputeLabels(*inventory.published().Get(), FindAcme, context),
              ElementsAre(Pair("acme.com/gpu.count", "1"),
                          Pair("feature.node.kubernetes.io/cpu-cpuid.AVX2", "true")));
  facts.id = "_" + std::string(70, 'a') + "_";
  inventory.SetFacts("acme", {facts}, "", kNow);
  EXPECT_EQ(ComputeLabels(*inventory.published().Get(), FindAcme, {}).at("acme.com/gpu.first"),
            std::string(63, 'a'))
      << "cut";
}

LabelSet Features(const os::MachineFacts& machine) {
  LabelSet labels;
  for (const auto& [key, value] : HostFeatures(machine, {}))
    labels[key.substr(key.find('/') + 1)] = value;
  return labels;
}

TEST(HostFeatures, TakeVersionsApartAsNfdDoes) {
  const auto kernel = [](const char* release) {
    os::MachineFacts machine;
    machine.kernel = release;
    return Features(machine);
  };
  EXPECT_THAT(
      kernel("6.1.0-18-amd64"),
      ElementsAre(Pair("kernel-version.full", "6.1.0-18-amd64"), Pair("kernel-version.major", "6"),
                  Pair("kernel-version.minor", "1"), Pair("kernel-version.revision", "0")));
  EXPECT_THAT(
      kernel("5.15.133+"),
      ElementsAre(Pair("kernel-version.full", "5.15.133"), Pair("kernel-version.major", "5"),
                  Pair("kernel-version.minor", "15"), Pair("kernel-version.revision", "133")));
  EXPECT_THAT(kernel("4.18.0-553.el8_10.x86_64"), Contains(Pair("kernel-version.revision", "0")));
  EXPECT_THAT(kernel("6.12"), Not(Contains(Key("kernel-version.revision"))));
  EXPECT_THAT(kernel("6.1.0+deb12"), ElementsAre(Pair("kernel-version.full", "6.1.0_deb12")))
      << "no number after all";
  EXPECT_THAT(kernel(""), ElementsAre());
}

TEST(HostFeatures, ReportTheDistribution) {
  os::MachineFacts machine;
  machine.os_id = "ubuntu";
  machine.os_version_id = "22.04";
  EXPECT_THAT(Features(machine), ElementsAre(Pair("system-os_release.ID", "ubuntu"),
                                             Pair("system-os_release.VERSION_ID", "22.04"),
                                             Pair("system-os_release.VERSION_ID.major", "22"),
                                             Pair("system-os_release.VERSION_ID.minor", "04")));
  machine.os_version_id = "12";
  EXPECT_THAT(Features(machine), Not(Contains(Key("system-os_release.VERSION_ID.minor"))));
  machine.os_version_id = "rolling";
  EXPECT_THAT(Features(machine), Not(Contains(Key("system-os_release.VERSION_ID.major"))));
}

TEST(HostFeatures, ReportTheProcessorWithoutWhatNoOneSelectsOn) {
  os::MachineFacts machine;
  EXPECT_THAT(Features(machine), ElementsAre());
  machine.cpu_vendor = "AMD";
  machine.cpu_family = 25;
  machine.cpu_model = 1;
  machine.cpu_flags = {"AVX2", "SSE2", "BMI1", "AESNI"};
  machine.multithreading = false;
  machine.numa_nodes = 2;
  EXPECT_THAT(Features(machine),
              ElementsAre(Pair("cpu-cpuid.AESNI", "true"), Pair("cpu-cpuid.AVX2", "true"),
                          Pair("cpu-hardware_multithreading", "false"),
                          Pair("cpu-model.family", "25"), Pair("cpu-model.id", "1"),
                          Pair("cpu-model.vendor_id", "AMD"), Pair("memory-numa", "true")));
  machine.numa_nodes = 1;
  EXPECT_THAT(Features(machine), Not(Contains(Key("memory-numa"))));
}

}  // namespace
}  // namespace penstock::node::label
