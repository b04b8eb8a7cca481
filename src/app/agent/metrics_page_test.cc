// Tests the metrics page with the vendors' real tables.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/metrics.h"
#include "backend/all.h"
#include "base/core/strings.h"
#include "base/testing/build_tree.h"
#include "node/metrics/metrics.h"
#include "os/core/file.h"

namespace penstock::app {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;
using node::metrics::PageFormat;

constexpr base::WallTime kNow{1700000000s};

/// Names of the labels in R"(clock="sm",part="x")".
std::vector<std::string> NamesIn(std::string_view labels) {
  std::vector<std::string> names;
  for (const std::string& label : base::Split(labels, ','))
    if (!label.empty()) names.push_back(label.substr(0, label.find('=')));
  return names;
}

TEST(MetricsPage, EveryQuantitysFamilyIsInTheCatalogueAndFits) {
  for (const device::Dialect* dialect : backend::Dialects()) {
    for (const device::Quantity& quantity : dialect->Quantities()) {
      if (quantity.family.empty()) continue;
      const api::MetricFamily* family = api::FindMetricFamily(quantity.family);
      ASSERT_NE(family, nullptr) << quantity.key << ": " << quantity.family
                                 << " is not in src/api/metrics_families.cc";
      EXPECT_EQ(family->group, api::MetricGroup::kTelemetry) << quantity.key;
      EXPECT_EQ(family->unit, device::BaseOf(quantity.unit).name) << quantity.key;
      EXPECT_EQ(family->type == api::MetricType::kCounter, quantity.counter) << quantity.key;
      const auto labels = api::LabelsOf(*family);
      for (const std::string& label : NamesIn(quantity.labels))
        EXPECT_THAT(labels, Contains(label)) << quantity.key;
    }
  }
}

TEST(MetricsPage, NoTwoQuantitiesAreOneSeries) {
  for (const device::Dialect* dialect : backend::Dialects()) {
    std::set<std::pair<std::string_view, std::string_view>> seen;
    for (const device::Quantity& quantity : dialect->Quantities())
      if (!quantity.family.empty()) {
        EXPECT_TRUE(seen.emplace(quantity.family, quantity.labels).second)
            << quantity.key << " is the series of another quantity";
      }
  }
}

TEST(MetricsPage, EveryFamilyOfTelemetryIsSomeVendors) {
  for (const api::MetricFamily& family : api::MetricFamilies()) {
    if (family.group != api::MetricGroup::kTelemetry) continue;
    bool measured = false;
    for (const device::Dialect* dialect : backend::Dialects())
      for (const device::Quantity& quantity : dialect->Quantities())
        measured = measured || quantity.family == family.name;
    EXPECT_TRUE(measured) << family.name;
  }
}

/// A number that only depends on the quantity's key, so that a new quantity only adds its own lines
/// to the page.
device::Number ValueOf(const device::Quantity& quantity) {
  if (quantity.unit == device::Unit::kRatio) return 0.37;
  if (quantity.unit == device::Unit::kPercent) return std::uint64_t{37};
  return std::accumulate(quantity.key.begin(), quantity.key.end(), std::uint64_t{1000});
}

/// A sample of a GPU that supports all quantities, with links of its own.
std::shared_ptr<const node::sample::DeviceSample> SampleOf(const std::string& id) {
  node::sample::DeviceSample sample{
      .device = id, .vendor = "nvidia", .at = kNow, .collections = 3, .took = 5ms};
  const auto quantities = backend::FindDialect("nvidia")->Quantities();
  for (std::size_t i = 0; i < quantities.size(); ++i) {
    const int first = quantities[i].per_link ? 0 : -1, last = quantities[i].per_link ? 1 : -1;
    for (int link = first; link <= last; ++link)
      sample.values.push_back(
          {{static_cast<device::QuantityId>(i), link, ValueOf(quantities[i])}, kNow});
  }
  return std::make_shared<const node::sample::DeviceSample>(std::move(sample));
}

/// Two GPUs: one held by a pod, one shared by two.
node::metrics::Snapshots Node() {
  node::inventory::Snapshot inventory{.facts_generation = 1};
  node::ledger::Snapshot ledger{.generation = 1};
  node::sample::Snapshot samples{.interval = 10s};
  node::usage::Snapshot usage;
  device::Driver driver{.vendor = "nvidia", .version = "550.54.15", .runtime_version = "12.4"};
  inventory.vendors = {
      {.vendor = "nvidia", .driver = std::make_shared<const device::Driver>(driver)}};
  for (int i = 0; i < 2; ++i) {
    device::Facts facts{.id = "GPU-0000000" + std::to_string(i),
                        .vendor = "nvidia",
                        .model = "NVIDIA H100 80GB HBM3",
                        .index = i};
    facts.pci = device::PciAddress{.bus = static_cast<std::uint32_t>(0x1a + i)};
    facts.links = {{"GPU-0000000" + std::to_string(1 - i), device::Nearness::kNode, 18}};
    inventory.devices.push_back({.facts = std::make_shared<const device::Facts>(facts),
                                 .health = {.state = device::HealthState::kHealthy}});
    samples.devices[facts.id] = SampleOf(facts.id);
  }
  for (const auto& [name, slot] :
       {std::pair("train-0", "GPU-00000000"), std::pair("a", "GPU-00000001::0"),
        std::pair("b", "GPU-00000001::3")}) {
    node::ledger::Lease lease{.id = std::string("k-") + name,
                              .allocator = "kubelet",
                              .slots = {{slot, std::string(slot).substr(0, 12)}}};
    lease.state = node::ledger::LeaseState::kHeld;
    lease.pod = name;
    lease.namespace_name = "ml";
    lease.container = "main";
    node::usage::HolderUsage holder{.holder = std::make_shared<const node::ledger::Lease>(lease),
                                    .device = lease.slots[0].device,
                                    .slot = slot};
    holder.utilization = 0.25;
    holder.memory_used = base::Mebibytes(512);
    ledger.leases.push_back(lease);
    usage.holders.insert(usage.holders.begin(),
                         std::make_shared<const node::usage::HolderUsage>(holder));
  }
  std::sort(usage.holders.begin(), usage.holders.end(),
            [](const auto& one, const auto& other) { return one->holder->id < other->holder->id; });
  return {.inventory = std::make_shared<const node::inventory::Snapshot>(inventory),
          .ledger = std::make_shared<const node::ledger::Snapshot>(ledger),
          .samples = std::make_shared<const node::sample::Snapshot>(samples),
          .usage = std::make_shared<const node::usage::Snapshot>(usage)};
}

/// A row for each field that a page can have.
std::vector<api::MetricRow> EveryRow() {
  std::vector<api::MetricRow> rows;
  for (const device::ExporterField& field : backend::FindDialect("nvidia")->exporter()->fields())
    rows.push_back({std::string(field.name),
                    field.source == device::FieldSource::kFact ? "label" : "gauge",
                    "Help (in units)."});
  return rows;
}

std::string PageOf(const api::TelemetryConfig& config, PageFormat format) {
  node::metrics::MetricsRenderer renderer(backend::FindDialect);
  renderer.Configure(config, "node-1");
  const auto node = Node();
  renderer.AddSample(*node.samples, base::TimePoint{});
  node::metrics::PageInputs figures{.version = "0.1.0", .now = kNow};
  figures.evidence = {{.device = "GPU-00000001",
                       .kind = "xid",
                       .code = 79,
                       .severity = device::Severity::kGone,
                       .count = 1,
                       .last = kNow}};
  figures.recent_evidence = figures.evidence;
  return renderer.Make(node, figures, format, node::metrics::Detail::kProcesses);
}

void CompareWithGolden(const std::string& name, const std::string& page) {
  const std::string path = base::SourcePath("src/app/agent/testdata/") + name;
  if (std::getenv("PENSTOCK_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(os::WriteFileAtomically(path, page).ok());
  }
  EXPECT_EQ(page, os::ReadFile(path).value_or(""))
      << "if this change is intended, run with PENSTOCK_UPDATE_GOLDEN=1";
}

TEST(MetricsPage, AsDcgmExporterHasItIsTheGoldenOne) {
  api::TelemetryConfig config;
  config.names = {api::MetricNames::kExporter};
  config.exclude = {"penstock_*"};
  CompareWithGolden("nvidia.txt", PageOf(config, PageFormat::kText));
}

TEST(MetricsPage, UnderBothNamingsItIsTheGoldenOne) {
  api::TelemetryConfig config;
  config.names = {api::MetricNames::kExporter, api::MetricNames::kExporterNew};
  config.virtual_gpus = api::Switch::kOn;
  config.exclude = {"penstock_*"};
  CompareWithGolden("nvidia.openmetrics", PageOf(config, PageFormat::kOpenMetrics));
}

TEST(MetricsPage, NoSeriesIsThereTwiceWhateverIsWanted) {
  for (const api::Switch virtual_gpus : {api::Switch::kAuto, api::Switch::kOn, api::Switch::kOff}) {
    api::TelemetryConfig config;
    config.names = {api::MetricNames::kExporter, api::MetricNames::kExporterNew,
                    api::MetricNames::kAccelerator};
    config.counters = EveryRow();
    config.virtual_gpus = virtual_gpus;
    std::set<std::string> seen;
    std::vector<std::string> repeated;
    for (const std::string& line : base::Split(PageOf(config, PageFormat::kText), '\n'))
      if (!line.starts_with("#") && !seen.insert(line.substr(0, line.rfind(' '))).second)
        repeated.push_back(line);
    EXPECT_THAT(repeated, IsEmpty());
  }
}

// Dashboards expect these from each GPU that supports them.
TEST(MetricsPage, EveryDefaultFamilyHasASeriesForEachGpu) {
  const std::string page = PageOf({}, PageFormat::kText);
  for (const device::CounterRow& row : backend::FindDialect("nvidia")->exporter()->DefaultRows()) {
    if (row.type == "label") continue;
    EXPECT_THAT(
        page,
        HasSubstr(
            "\n" + row.field +
            "{gpu=\"0\",UUID=\"GPU-00000000\",pci_bus_id=\"00000000:1A:00.0\",device=\"nvidia0\""))
        << row.field;
    EXPECT_THAT(page, HasSubstr("# TYPE " + row.field + " " + row.type + "\n"));
  }
}

}  // namespace
}  // namespace penstock::app
