// Tests the series of a device that is divided into parts, under the names of a vendor's exporter:
// those of dcgm-exporter with its default option "-d f".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/metrics/testing/metrics_fixture.h"

namespace penstock::node::metrics {
namespace {

using fixture::kNow;
using fixture::Node;
using fixture::PageOf;
using fixture::PlainFigures;
using fixture::SeriesOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

/// G0 is divided into P1, which pod train-0 holds, and P2, of which P2.1 is a part.
struct Divided : Node {
  Divided() {
    std::vector<inventory::Entry> parts;
    for (const auto& [id, parent] : {std::pair("P1", "G0"), {"P2", "G0"}, {"P2.1", "P2"}}) {
      device::Facts facts = *inventory.devices[0].facts;
      facts.id = id;
      facts.index = -1;
      facts.number = std::string("0:") + id;
      facts.parent = parent;
      facts.profile = std::string("1g.") + id;
      facts.serial.clear();
      facts.links.clear();
      parts.push_back({.facts = std::make_shared<const device::Facts>(facts),
                       .health = {.state = device::HealthState::kHealthy}});
      parts.back().ancestors = {{"G0", {}}};
    }
    parts[2].ancestors = {{"P2", {}}, {"G0", {}}};
    inventory.devices.insert(inventory.devices.begin() + 1, parts.begin(), parts.end());
    Hold("P1", 0);
    samples.devices["P1"] = Memory("P1", 100);
    samples.devices["P2.1"] = Memory("P2.1", 300);
    usage.holders.clear();
  }
  void Hold(const std::string& device, std::size_t lease) {
    ledger.leases.Edit(lease).slots = {{.id = device, .device = device}};
    ++ledger.generation;
  }
  static std::shared_ptr<const sample::DeviceSample> Memory(const std::string& device,
                                                            std::uint64_t mebibytes) {
    sample::DeviceSample sample{.device = device, .vendor = "acme", .at = kNow};
    sample.values = {{{fixture::kMemory, -1, mebibytes}, kNow}};
    return std::make_shared<const sample::DeviceSample>(sample);
  }
};

api::TelemetryConfig PartsWith(std::vector<std::string> fields, bool holders = false) {
  api::TelemetryConfig config;
  config.names = {api::MetricNames::kExporter};
  config.host_label = api::HostLabel::kNone;
  config.holders = holders;
  for (const std::string& field : fields) config.counters.push_back({field, "gauge", "Help."});
  return config;
}

// dcgm-exporter, internal/pkg/devicemonitoring: a GPU with instances is not shown, its instances
// are; what NVML has of the GPU alone has the same value for each of them.
TEST(ExporterParts, ADividedDeviceHasTheSeriesOfItsParts) {
  const std::string page = PageOf(Divided(), PartsWith({"ACME_MEMORY", "ACME_POWER"}));
  EXPECT_THAT(
      SeriesOf(page, "ACME_MEMORY"),
      ElementsAre(R"(ACME_MEMORY{gpu="0",UUID="G0",modelName="Acme Small",profile="1g.P1"} 100)",
                  HasSubstr("gpu=\"1\"")))
      << "P2 has none, and the device's is not its own";
  EXPECT_THAT(
      SeriesOf(page, "ACME_POWER"),
      ElementsAre(
          R"(ACME_POWER{gpu="0",UUID="G0",modelName="Acme Small",profile="1g.P1"} 61.234000)",
          R"(ACME_POWER{gpu="0",UUID="G0",modelName="Acme Small",profile="1g.P2"} 61.234000)",
          HasSubstr("gpu=\"1\"")));
  EXPECT_THAT(page, Not(HasSubstr("1g.P2.1")));
  EXPECT_THAT(fixture::Repeated(page), IsEmpty());
}

TEST(ExporterParts, TheHolderOfAPartIsInItsSeriesAlone) {
  const auto series = SeriesOf(PageOf(Divided(), PartsWith({"ACME_POWER"}, true)), "ACME_POWER");
  ASSERT_THAT(series, Not(IsEmpty()));
  EXPECT_THAT(series[0],
              HasSubstr(R"(profile="1g.P1",container="main",namespace="ml",pod="train-0"})"));
  EXPECT_THAT(series[1], Not(HasSubstr("pod=")));
}

TEST(ExporterParts, JobsOfAPartAreThoseOfItsOwnFile) {
  Divided node;
  node.jobs = {{"0", {"all"}}, {"0.1g.P1", {"17", "18"}}, {"0.1g.P9", {"19"}}};
  api::TelemetryConfig config = PartsWith({"ACME_POWER", "ACME_LINK_SENT"});
  config.job_directory = "/jobs";
  const std::string page = PageOf(node, config);
  EXPECT_THAT(SeriesOf(page, "ACME_POWER"),
              ElementsAre(HasSubstr(R"(profile="1g.P1",job="17"})"),
                          HasSubstr(R"(profile="1g.P1",job="18"})"),
                          HasSubstr(R"(profile="1g.P2"})"), HasSubstr("gpu=\"1\"")));
  EXPECT_THAT(SeriesOf(page, "ACME_LINK_SENT")[0],
              HasSubstr(R"(modelName="Acme Small",job="all"})"))
      << "links are the device's";
  EXPECT_THAT(page, Not(HasSubstr("\"19\"")));
  EXPECT_THAT(fixture::Repeated(page), IsEmpty());
}

// Instances that share a GPU instance: the page has series of the GPU instance alone.
TEST(ExporterParts, TheOneHolderOfPartsOfAPartIsInItsSeries) {
  Divided node;
  const auto of_p2 = [&node] {
    return SeriesOf(PageOf(node, PartsWith({"ACME_POWER"}, true)), "ACME_POWER")[1];
  };
  const auto hold = [&node](std::size_t lease) {
    node.Hold("P2.1", lease);
    node.ledger.leases.Edit(lease).slots[0].ancestors = {{"P2", {}}, {"G0", {}}};
  };
  hold(1);
  EXPECT_THAT(of_p2(), HasSubstr(R"(profile="1g.P2",container="main",namespace="ml",pod="a"})"));
  hold(2);
  EXPECT_THAT(of_p2(), Not(HasSubstr("pod="))) << "it is none of the two's";
}

TEST(ExporterParts, WhatAPartLacksIsNotCountedAsUnsupported) {
  Divided node;
  auto part = *node.samples.devices["P1"];
  part.unsupported = {fixture::kPower};
  node.samples.devices["P1"] = std::make_shared<const sample::DeviceSample>(part);
  EXPECT_THAT(SeriesOf(PageOf(node), "accelerator_unsupported"), IsEmpty());
}

// A pod chooses its labels: it must not look like another instance's.
TEST(ExporterParts, APodCannotNameAnInstance) {
  Divided node;
  node.Hold("P2", 0);
  node.Hold("G1", 1);
  node.ledger.leases.pop_back();
  node.EditLeases([](ledger::Lease& lease) { lease.labels = {{"profile", "1g.P1"}}; });
  api::TelemetryConfig config = PartsWith({"ACME_POWER"}, true);
  config.holder_labels = {"*"};
  const auto series = SeriesOf(PageOf(node, config), "ACME_POWER");
  ASSERT_THAT(series, SizeIs(3));
  EXPECT_THAT(series[1], HasSubstr("profile=\"1g.P2\",label_profile=\"1g.P1\""));
  EXPECT_THAT(series[2], HasSubstr("label_profile=\"1g.P1\"")) << "nor on a whole device";
  EXPECT_THAT(series[2], Not(HasSubstr(",profile=")));
}

// dcgm-exporter has the links of a GPU in MIG mode as of any other.
TEST(ExporterParts, LinksAreThoseOfTheDevice) {
  const std::string page = PageOf(Divided(), PartsWith({"ACME_LINK_SENT", "ACME_LINK_1"}));
  EXPECT_THAT(SeriesOf(page, "ACME_LINK_SENT"),
              testing::Contains(
                  R"(ACME_LINK_SENT{nvlink="0",gpu="0",UUID="G0",modelName="Acme Small"} 10)"));
  EXPECT_THAT(SeriesOf(page, "ACME_LINK_SENT"), SizeIs(4));
  EXPECT_THAT(SeriesOf(page, "ACME_LINK_1")[0], HasSubstr("profile=\"1g.P1\""))
      << "under a name of its own, it is a value of the device";
}

TEST(ExporterParts, AFactThatThePartLacksIsTheDevices) {
  api::TelemetryConfig config = PartsWith({"ACME_POWER"});
  config.counters.push_back({"ACME_SERIAL", "label", ""});
  EXPECT_THAT(SeriesOf(PageOf(Divided(), config), "ACME_POWER")[0],
              HasSubstr("profile=\"1g.P1\",ACME_SERIAL=\"1000\""));
}

TEST(ExporterParts, ErrorsOfTheDeviceAreOfEachPartAndThoseOfAPartAreItsOwn) {
  PageInputs inputs = PlainFigures();
  const auto count = [](const char* device, std::int64_t code, std::uint64_t times, int seconds) {
    return health::EvidenceCount{.device = device,
                                 .kind = "xid",
                                 .code = code,
                                 .count = times,
                                 .last = kNow + std::chrono::seconds(seconds)};
  };
  inputs.evidence = {count("G0", 31, 2, 1), count("P1", 31, 3, 2), count("P1", 94, 1, 3)};
  inputs.recent_evidence = inputs.evidence;
  const std::string page =
      PageOf(Divided(), PartsWith({"ACME_XID", "ACME_XID_COUNT", "ACME_XID_TOTAL"}), inputs);
  const auto xid = SeriesOf(page, "ACME_XID");
  ASSERT_THAT(xid, SizeIs(3));
  EXPECT_THAT(xid[0], testing::EndsWith("} 94")) << "the last one";
  EXPECT_THAT(xid[1], testing::EndsWith("} 31")) << "the device's";
  for (const char* family : {"ACME_XID_COUNT", "ACME_XID_TOTAL"}) {
    const auto counts = SeriesOf(page, family);
    ASSERT_GE(counts.size(), 3u) << family;
    EXPECT_THAT(counts[0], testing::EndsWith("} 5")) << "31 of both is one series";
    EXPECT_THAT(counts[1], testing::EndsWith("} 1"));
    EXPECT_THAT(counts[2], testing::EndsWith("} 2"));
  }
  EXPECT_THAT(fixture::Repeated(page), IsEmpty());
}

TEST(ExporterParts, WhatIsWrongWithTheDeviceIsWrongWithItsParts) {
  Divided node;
  const auto health_of = [&node](device::HealthState device, device::HealthState part) {
    node.inventory.devices[0].health.state = device;
    node.inventory.devices[1].health.state = part;
    const auto series = SeriesOf(PageOf(node, PartsWith({"ACME_HEALTH"})), "ACME_HEALTH");
    return series.empty() ? "" : series[0].substr(series[0].rfind(' ') + 1);
  };
  using enum device::HealthState;
  EXPECT_EQ(health_of(kHealthy, kHealthy), "0");
  EXPECT_EQ(health_of(kUnhealthy, kHealthy), "20");
  EXPECT_EQ(health_of(kHealthy, kUnhealthy), "20");
  EXPECT_EQ(health_of(kUnknown, kHealthy), "10");
}

TEST(ExporterParts, ReasonsForReducedClocksAreTheDevices) {
  MetricsRenderer renderer(fixture::FindMeasuredAcme);
  renderer.Configure(PartsWith({"ACME_REASON_COUNT"}), "node-1");
  const Divided node;
  renderer.AddSample(node.samples, base::TimePoint{});
  const std::string page =
      renderer.Make(node.Get(), PlainFigures(), PageFormat::kText, Detail::kProcesses);
  EXPECT_THAT(SeriesOf(page, "ACME_REASON_COUNT"),
              testing::Contains(testing::AllOf(HasSubstr("profile=\"1g.P2\""), HasSubstr("idle"),
                                               testing::EndsWith("} 1"))));
}

TEST(ExporterParts, WhenThePartsAreGoneTheDeviceIsShownAgain) {
  Divided node;
  node.inventory.devices.erase(node.inventory.devices.begin() + 1,
                               node.inventory.devices.begin() + 4);
  EXPECT_THAT(SeriesOf(PageOf(node, PartsWith({"ACME_POWER"})), "ACME_POWER")[0],
              R"(ACME_POWER{gpu="0",UUID="G0",modelName="Acme Small"} 61.234000)");
}

TEST(ExporterParts, PenstocksOwnFamiliesHaveDeviceAndParts) {
  const std::string page = PageOf(Divided());
  EXPECT_THAT(SeriesOf(page, "accelerator_memory_used_bytes"),
              testing::Contains(HasSubstr("device=\"P1\",index=\"0:P1\"")));
  EXPECT_THAT(SeriesOf(page, "accelerator_power_watts"), SizeIs(2)) << "a part has none";
  EXPECT_THAT(SeriesOf(page, "accelerator_info"),
              testing::Contains(HasSubstr("part_of=\"G0\",profile=\"1g.P1\"")));
}

}  // namespace
}  // namespace penstock::node::metrics
