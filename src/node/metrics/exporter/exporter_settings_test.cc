// Tests what an exporter's file of settings changes, and the fields that only such exporters have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/metrics/testing/metrics_fixture.h"

namespace penstock::node::metrics {
namespace {

using fixture::Node;
using fixture::PlainFigures;
using fixture::SeriesOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

api::TelemetryConfig SettingsWith(std::vector<std::string> fields) {
  api::TelemetryConfig config;
  config.names = {api::MetricNames::kExporter};
  config.host_label = api::HostLabel::kNone;
  config.virtual_gpus = api::Switch::kOff;
  for (std::string& field : fields) config.counters.push_back({std::move(field), "gauge", "Help."});
  return config;
}

std::string PageWith(const api::TelemetryConfig& config, const Node& node = {},
                     bool settings = true) {
  MetricsRenderer renderer(settings ? fixture::FindAcmeWithSettings : fixture::FindMeasuredAcme);
  renderer.Configure(config, "node-1");
  return renderer.Make(node.Get(), PlainFigures(), PageFormat::kText, Detail::kProcesses);
}

TEST(ExporterSettings, EachNumberedPartOfADeviceHasASeries) {
  EXPECT_THAT(SeriesOf(PageWith(SettingsWith({"ACME_ENGINE"})), "ACME_ENGINE"),
              ElementsAre(HasSubstr("{gpu=\"0\",UUID=\"G0\",modelName=\"Acme Small\""),
                          HasSubstr(",part=\"1\"} 20"), HasSubstr("gpu=\"1\""),
                          HasSubstr(",part=\"1\"} 20")));
}

// A worker's answer is a number like any other.
TEST(ExporterSettings, ANumberThatNoChipHasMakesNoSeries) {
  Node node;
  auto sample = *fixture::Sample("G0", 1);
  sample.values.push_back({{fixture::kLinkSent, 2'000'000'000, std::uint64_t{5}}, fixture::kNow});
  std::ranges::sort(sample.values, {}, [](const sample::Latest& one) {
    return std::pair(one.value.quantity, one.value.link);
  });
  node.samples.devices["G0"] = std::make_shared<const sample::DeviceSample>(sample);
  EXPECT_THAT(SeriesOf(PageWith(SettingsWith({"ACME_ENGINE"}), node), "ACME_ENGINE"), SizeIs(4));
}

TEST(ExporterSettings, HealthIsOneOrZeroAndNothingWhereItIsUnknown) {
  Node node;
  EXPECT_THAT(SeriesOf(PageWith(SettingsWith({"ACME_HEALTHY"}), node), "ACME_HEALTHY"),
              ElementsAre(HasSubstr("} 1"), HasSubstr("} 0")));
  node.inventory.devices[0].health.state = device::HealthState::kUnknown;
  EXPECT_THAT(SeriesOf(PageWith(SettingsWith({"ACME_HEALTHY"}), node), "ACME_HEALTHY"), SizeIs(1));
}

TEST(ExporterSettings, DevicesAreCountedOnceForTheNode) {
  api::TelemetryConfig config = SettingsWith({"ACME_DEVICES"});
  config.exporter.labels = {{"cluster", "west"}};
  EXPECT_THAT(SeriesOf(PageWith(config), "ACME_DEVICES"),
              ElementsAre("ACME_DEVICES{node=\"node-1\",cluster=\"west\"} 2"))
      << "G2 is gone";
}

TEST(ExporterSettings, APrefixAndLabelsAreOnAllSeries) {
  api::TelemetryConfig config = SettingsWith({"ACME_CLOCK", "ACME_XID"});
  config.exporter.prefix = "my_";
  config.exporter.labels = {{"rack", "r\"7"}, {"gpu", "mine"}};
  const std::string page = PageWith(config);
  EXPECT_THAT(
      SeriesOf(page, "my_ACME_CLOCK"),
      Contains(HasSubstr("{gpu=\"0\",UUID=\"G0\",modelName=\"Acme Small\",rack=\"r\\\"7\"")))
      << "a label of its own stays";
  EXPECT_THAT(SeriesOf(page, "my_ACME_XID"), Contains(HasSubstr("rack=")));
  EXPECT_THAT(SeriesOf(page, "ACME_CLOCK"), IsEmpty());
  EXPECT_THAT(PageWith(config, {}, false), Not(HasSubstr("my_")))
      << "they are of exporters with such a file alone";
  EXPECT_THAT(fixture::Repeated(page), IsEmpty());
}

TEST(ExporterSettings, LabelsOfAPodHaveTheNamesThatTheyAreGiven) {
  api::TelemetryConfig config = SettingsWith({"ACME_CLOCK"});
  config.exporter.holder_labels = {{"workload", "app.kubernetes.io/name"}, {"pod", "gpu"}};
  const std::string series = SeriesOf(PageWith(config), "ACME_CLOCK").front();
  EXPECT_THAT(series, HasSubstr("workload=\"train\""));
  EXPECT_THAT(series, HasSubstr("pod=\"train-0\"")) << "not the pod's label";
  EXPECT_THAT(series, Not(HasSubstr("app_kubernetes_io_name")));
  config.holder_labels = {"app.kubernetes.io/name"};
  EXPECT_THAT(SeriesOf(PageWith(config), "ACME_CLOCK").front(),
              testing::AllOf(HasSubstr("workload=\"train\""),
                             HasSubstr("app_kubernetes_io_name=\"train\"")));
}

TEST(ExporterSettings, TheUidOfAPodIsShownWhereItIsAskedFor) {
  api::TelemetryConfig config = SettingsWith({"ACME_CLOCK"});
  EXPECT_THAT(PageWith(config), Not(HasSubstr("pod_uid=")));
  config.exporter.pod_uid = true;
  EXPECT_THAT(PageWith(config), HasSubstr("pod_uid=\"uid-train-0\""));
}

TEST(ExporterSettings, OnlyChosenDevicesAreShownAndAllAreCounted) {
  api::TelemetryConfig config = SettingsWith({"ACME_CLOCK", "ACME_DEVICES"});
  config.exporter.devices = {1, 7};
  const std::string page = PageWith(config);
  EXPECT_THAT(SeriesOf(page, "ACME_CLOCK"), ElementsAre(HasSubstr("gpu=\"1\"")));
  EXPECT_THAT(SeriesOf(page, "ACME_DEVICES"), ElementsAre(HasSubstr("} 2")));
}

TEST(ExporterSettings, RowsForAnotherExporterLeaveItItsOwn) {
  EXPECT_THAT(SeriesOf(PageWith(SettingsWith({"DCGM_FI_DEV_SM_CLOCK"})), "ACME_UTIL"), SizeIs(2));
}

TEST(ExporterSettings, LabelsAloneLeaveItsFamilies) {
  api::TelemetryConfig config = SettingsWith({});
  config.counters = {{"ACME_SERIAL", "label", ""}, {"ACME_SERIAL", "label", ""}};
  const std::string page = PageWith(config);
  EXPECT_THAT(SeriesOf(page, "ACME_UTIL"), Contains(HasSubstr("ACME_SERIAL=\"1000\"")));
  EXPECT_THAT(page, Not(HasSubstr("ACME_SERIAL=\"1000\",ACME_SERIAL")));
  EXPECT_THAT(page, HasSubstr("# HELP ACME_UTIL ACME_UTIL help. \n"));
}

}  // namespace
}  // namespace penstock::node::metrics
