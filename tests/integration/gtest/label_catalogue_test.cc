// Compares the labels of every simulated machine, from its driver library and files to the
// published set, with golden files, and checks docs/reference/labels.md against all of them.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/all.h"
#include "backend/amd/dialect/kinds.h"
#include "backend/nvidia/testing/simulated_machine.h"
#include "base/testing/build_tree.h"
#include "node/inventory/inventory.h"
#include "node/label/features_file.h"
#include "node/label/labels.h"
#include "node/share/offers.h"
#include "os/core/file.h"
#include "os/machine_facts.h"

namespace penstock {
namespace {

using backend::nvidia::SimulatedMachine;
using node::label::LabelContext;
using node::label::LabelSet;
using testing::Contains;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::Pair;

const std::string kGolden = base::SourcePath("tests/integration/labels/");
constexpr base::WallTime kNow{std::chrono::seconds(1700000000)};

/// The simulated machine's own facts. The facts of processor, kernel and distribution, which would
/// be those of this machine, are replaced.
LabelContext ContextOf(const SimulatedMachine& machine) {
  LabelContext context;
  const std::string sys = machine.root() + "/sys";
  context.machine = os::ReadMachineFacts({.sysfs_root = sys,
                                          .proc_root = machine.root() + "/proc",
                                          .os_release = "/nonexistent",
                                          .product_file = sys + "/class/dmi/id/product_name"});
  context.machine.kernel = "5.15.0-105-generic";
  context.machine.os_id = "ubuntu";
  context.machine.os_version_id = "22.04";
  context.machine.cpu_vendor = "AMD";
  context.machine.cpu_family = 23;
  context.machine.cpu_model = 49;
  context.machine.cpu_flags = {"AESNI", "AVX2", "SSE2"};
  context.machine.multithreading = true;
  context.timestamp = 1700000000;
  return context;
}

/// Performs discovery without its executor.
void Look(device::Backend& backend, node::inventory::Inventory& inventory) {
  auto driver = backend.Open();
  if (!driver.ok()) {
    inventory.SetVendor({backend.vendor(), nullptr, driver.error().message()});
    inventory.SetFacts(backend.vendor(), {}, "no driver", kNow);
    return;
  }
  inventory.SetVendor(
      {backend.vendor(), std::make_shared<const device::Driver>(*std::move(driver)), ""});
  std::vector<device::Facts> devices;
  auto addresses = backend.List();
  ASSERT_TRUE(addresses.ok());
  for (std::size_t i = 0; i < addresses->size(); ++i) {
    auto facts = backend.Describe((*addresses)[i]);
    if (!facts.ok()) continue;
    addresses->insert(addresses->end(), facts->parts.begin(), facts->parts.end());
    devices.push_back(*std::move(facts));
  }
  inventory.SetFacts(backend.vendor(), std::move(devices), "gone", kNow);
}

LabelSet LabelsOf(const SimulatedMachine& machine, const api::NodeConfig& config = {}) {
  node::inventory::Inventory inventory;
  node::ledger::Ledger ledger;
  node::share::Offers offers(inventory, ledger, backend::FindDialect, {"kubelet", "local"});
  offers.Configure(config, {});
  Look(*backend::MakeBackend("nvidia", machine.paths()), inventory);
  node::label::Labels labels(backend::FindDialect);
  node::label::LabelContext context = ContextOf(machine);
  context.parts = config.parts;
  context.profiled_parts = config.profiled_parts;
  labels.Set(std::move(context));
  labels.Update({.inventory = inventory.published().Get(),
                 .servers = offers.Servers(),
                 .desired = offers.Desired()});
  return *labels.published().Get();
}

std::set<std::string> Machines() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(base::SourcePath("sim/machines")))
    names.insert(entry.path().stem());
  return names;
}

class Machine : public testing::TestWithParam<std::string> {};

TEST_P(Machine, HasTheLabelsOfItsGoldenCopy) {
  const SimulatedMachine machine(GetParam());
  const std::string text = node::label::FeaturesText(LabelsOf(machine)),
                    path = kGolden + GetParam() + ".txt";
  if (std::getenv("PENSTOCK_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(os::WriteFileAtomically(path, text).ok());
  }
  EXPECT_EQ(text, os::ReadFile(path).value_or(""))
      << "if this is meant, run with PENSTOCK_UPDATE_GOLDEN=1";
}

INSTANTIATE_TEST_SUITE_P(Simulated, Machine, testing::ValuesIn(Machines()),
                         [](const auto& machine) {
                           std::string name = machine.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// Replaces the parts of a key that are values by placeholders, as in the documentation.
std::string Documented(std::string key) {
  key = std::regex_replace(
      key,
      std::regex(
          R"((gpu\.(?:present|count|memory|replicas|sharing-strategy|isolation))\.[A-Za-z0-9._-]+$)"),
      "$1.<model>");
  key = std::regex_replace(
      key,
      std::regex(
          R"(mig-.+\.(product|count|replicas|sharing-strategy|memory|multiprocessors|slices|engines))"),
      "mig-<profile>.$1");
  key = std::regex_replace(
      key,
      std::regex(
          R"((amd\.com/gpu)\.(?:device-id|product-name|vram|cu-count|simd-count|family|compute-memory-partition|driver-version|driver-src-version)\..+)"),
      "$1.<kind>.<value>");
  key = std::regex_replace(key, std::regex(R"(cpu-cpuid\..+$)"), "cpu-cpuid.<FLAG>");
  return std::regex_replace(key, std::regex(R"(pci-(?:[0-9a-f]{4}_)?10de\.present$)"),
                            "pci-<PCI>.present");
}

/// Of machines with one AMD GPU, and with two that differ in everything.
std::set<std::string> LabelsOfAmd() {
  const device::Dialect& dialect = *backend::FindDialect("amd");
  namespace amd = backend::amd;
  const device::Driver driver{.vendor = "amd", .version = "6.12.107"};
  std::vector<device::Facts> gpus;
  for (const char* number : {"1", "2"}) {
    device::Facts facts{.id = number, .vendor = "amd", .model = std::string("Model ") + number};
    facts.compute_units = number[0] - '0';
    facts.memory = base::Mebibytes(1024 * static_cast<std::uint64_t>(facts.compute_units));
    facts.details = {
        {amd::kDeviceId, number}, {amd::kSimds, number}, {amd::kSourceVersion, number}};
    facts.modes = {{.name = amd::kComputePartition, .current = number},
                   {.name = amd::kMemoryPartition, .current = "NPS1"}};
    gpus.push_back(facts);
  }
  std::set<std::string> made;
  for (const std::vector<const device::Facts*>& devices :
       {std::vector<const device::Facts*>{&gpus[0]}, {&gpus[0], &gpus[1]}})
    for (const auto& [key, value] : dialect.Labels({.devices = devices, .driver = &driver}))
      made.insert(Documented(key));
  return made;
}

TEST(Reference, DocumentsEveryLabelThereIsAndNoOther) {
  std::set<std::string> made = LabelsOfAmd();
  for (const std::string& name : Machines())
    for (const auto& [key, value] : LabelsOf(SimulatedMachine(name))) made.insert(Documented(key));
  const SimulatedMachine fabric("dgx-h100");
  fabric.Sim({"set", "all", "fabric=50000000-0000-0000-0000-000000000004.1"});
  for (const auto& [key, value] : LabelsOf(fabric)) made.insert(Documented(key));
  const SimulatedMachine divided("a100-40gb-x1");
  divided.Smi({"-mig", "1"});
  divided.Smi({"mig", "-cgi", "3g.20gb,3g.20gb", "-C"});
  for (const auto strategy : {api::PartsStrategy::kMixed, api::PartsStrategy::kSingle}) {
    api::NodeConfig config;
    config.parts = strategy;
    for (const auto& [key, value] : LabelsOf(divided, config)) made.insert(Documented(key));
  }

  for (const device::Dialect* dialect : backend::Dialects())
    made.insert(dialect->part_terms()->state_label);  // written while a label names a layout

  const auto text = os::ReadFile(base::SourcePath("docs/reference/labels.md"));
  ASSERT_TRUE(text.ok());
  std::set<std::string> documented;
  const std::regex key(
      R"(`((?:nvidia\.com|(?:beta\.|dcm\.)?amd\.com|feature\.node\.kubernetes\.io)/[^`]+)`)");
  // Only rows of the tables: labels in other text need not be Penstock's.
  const std::regex row(R"(\n\| ([^|]+) \|)");
  for (std::sregex_iterator at(text->begin(), text->end(), row), end; at != end; ++at) {
    const std::string cell = (*at)[1];
    for (std::sregex_iterator in(cell.begin(), cell.end(), key); in != end; ++in)
      documented.insert(Documented((*in)[1]));
  }
  EXPECT_EQ(documented, made);
}

TEST(Catalogue, ReportsTheCliqueOfAMachineInALargerFabric) {
  const SimulatedMachine machine("dgx-h100");
  EXPECT_THAT(LabelsOf(machine), Not(Contains(Key("nvidia.com/gpu.clique"))))
      << "its fabric ends with it";
  machine.Sim({"set", "all", "fabric=50000000-0000-0000-0000-000000000004.1"});
  EXPECT_THAT(LabelsOf(machine),
              Contains(Pair("nvidia.com/gpu.clique", "50000000-0000-0000-0000-000000000004.1")));
}

TEST(Catalogue, HasNoReplicasForGpusInMigMode) {
  const SimulatedMachine machine("dgx-a100");
  machine.Sim({"set", "all", "mig=enabled"});
  const LabelSet all = LabelsOf(machine);
  EXPECT_EQ(all.at("nvidia.com/gpu.replicas"), "0");
  EXPECT_EQ(all.at("nvidia.com/gpu.count"), "8");
  EXPECT_EQ(all.at("nvidia.com/mig.capable"), "true");
}

api::SharingRule Rule(api::ShareStrategy strategy, int replicas,
                      std::vector<std::string> devices = {}) {
  api::SharingRule rule;
  rule.resource = "nvidia.com/gpu";
  rule.strategy = strategy;
  rule.replicas = replicas;
  rule.devices = std::move(devices);
  return rule;
}

// Users of NVIDIA's documented configuration, replicas: 4 of all GPUs, select nodes by these
// labels.
TEST(Catalogue, ReportsTimeSlicingAsGpuFeatureDiscoveryDoes) {
  api::NodeConfig config;
  config.sharing.rules = {Rule(api::ShareStrategy::kTimeSlicing, 4)};
  const LabelSet labels = LabelsOf(SimulatedMachine("dgx-a100"), config);
  EXPECT_EQ(labels.at("nvidia.com/gpu.product"), "NVIDIA-A100-SXM4-40GB-SHARED");
  EXPECT_EQ(labels.at("nvidia.com/gpu.replicas"), "4");
  EXPECT_EQ(labels.at("nvidia.com/gpu.count"), "8");
  EXPECT_EQ(labels.at("nvidia.com/gpu.sharing-strategy"), "time-slicing");
  EXPECT_EQ(labels.at("nvidia.com/mps.capable"), "false");
  EXPECT_EQ(labels.at("nvidia.com/gpu.isolation"), "none");
}

TEST(Catalogue, ReportsEachModelsSharingOfAMixedMachine) {
  api::NodeConfig config;
  config.sharing.rules = {Rule(api::ShareStrategy::kTimeSlicing, 10, {"Tesla T4"})};
  const LabelSet labels = LabelsOf(SimulatedMachine("mixed"), config);
  EXPECT_EQ(labels.at("nvidia.com/gpu.product"), "NVIDIA-A100-PCIE-40GB");
  EXPECT_EQ(labels.at("nvidia.com/gpu.sharing-strategy"), "none");
  EXPECT_EQ(labels.at("nvidia.com/gpu.sharing-strategy.Tesla-T4"), "time-slicing");
  EXPECT_EQ(labels.at("nvidia.com/gpu.replicas.Tesla-T4"), "10");
  EXPECT_EQ(labels.at("nvidia.com/gpu.isolation.Tesla-T4"), "none");
  EXPECT_EQ(labels.at("nvidia.com/gpu.isolation.GeForce-RTX-3090"), "hardware");
}

// The hardware without a driver: the labels by which a driver's own pods are scheduled.
TEST(Catalogue, SaysThatThereIsAGpuWithoutADriver) {
  const SimulatedMachine machine("dgx-a100");
  machine.Sim({"fault", "driver", "unload"});
  const LabelSet labels = LabelsOf(machine);
  std::set<std::string> nvidia;
  for (const auto& [key, value] : labels)
    if (key.starts_with("nvidia.com/")) nvidia.insert(key + "=" + value);
  EXPECT_THAT(nvidia, testing::ElementsAre("nvidia.com/gpu.present=true"));
  EXPECT_THAT(labels, Contains(Pair("feature.node.kubernetes.io/pci-10de.present", "true")));
  EXPECT_THAT(labels, Contains(Pair("feature.node.kubernetes.io/pci-0302_10de.present", "true")));
}

// DP#796: labels disappeared whenever the program that writes them restarted. A fault after which
// the GPU is still listed does not change the labels.
TEST(Catalogue, DP796KeepsTheLabelsOfAGpuThatIsOnlyLost) {
  const SimulatedMachine machine("dgx-a100");
  const auto backend = backend::MakeBackend("nvidia", machine.paths());
  node::inventory::Inventory inventory;
  Look(*backend, inventory);
  node::label::Labels labels(backend::FindDialect);
  const auto update = [&] {
    labels.Update({.inventory = inventory.published().Get(),
                   .servers = std::make_shared<const device::SharedDevices>(),
                   .desired = std::make_shared<const node::share::DesiredAssignments>()});
  };
  int published = 0;
  const auto on = labels.published().Subscribe([&](const auto&) { ++published; });
  labels.Set(ContextOf(machine));
  update();
  inventory.SetHealth(inventory.published().Get()->devices[3].facts->id,
                      device::HealthState::kUnhealthy, "XID 79", kNow);
  update();
  EXPECT_EQ(published, 1);
  EXPECT_EQ(labels.published().Get()->at("nvidia.com/gpu.count"), "8");
}

// DP#731, GFD#27, GFD#66: labels do not depend on the order in which devices are found.
TEST(Catalogue, DP731SaysTheSameOfAMixedMachineInEveryOrder) {
  const SimulatedMachine machine("mixed");
  const auto backend = backend::MakeBackend("nvidia", machine.paths());
  node::inventory::Inventory inventory;
  Look(*backend, inventory);
  node::inventory::Snapshot snapshot = *inventory.published().Get();
  const LabelContext context = ContextOf(machine);
  const LabelSet first = ComputeLabels(snapshot, backend::FindDialect, context);
  EXPECT_EQ(first.at("nvidia.com/gpu.product"), "NVIDIA-A100-PCIE-40GB")
      << "one of each model: the first counts";
  EXPECT_EQ(first.at("nvidia.com/gpu.mode"), "unknown") << "two classes of GPUs";
  std::mt19937 random(1);
  for (int turn = 0; turn < 1000; ++turn) {
    std::shuffle(snapshot.devices.begin(), snapshot.devices.end(), random);
    ASSERT_EQ(ComputeLabels(snapshot, backend::FindDialect, context), first);
  }
}

TEST(Catalogue, IsEmptyOnAMachineWithoutAccelerators) {
  for (const auto& [key, value] : LabelsOf(SimulatedMachine("empty"))) {
    EXPECT_TRUE(key.starts_with("feature.node.kubernetes.io/")) << key;
    EXPECT_EQ(key.find("pci-"), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace penstock
