// Tests the jobs of workload managers on the series of a vendor's exporter: a copy for each job.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/metrics/testing/metrics_fixture.h"

namespace penstock::node::metrics {
namespace {

using fixture::Node;
using fixture::PageOf;
using fixture::PlainFigures;
using fixture::SeriesOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

api::TelemetryConfig Showing(std::vector<std::string> fields, bool holders = false) {
  api::TelemetryConfig config;
  config.names = {api::MetricNames::kExporter};
  config.host_label = api::HostLabel::kNone;
  config.holders = holders;
  config.job_directory = "/jobs";
  for (const std::string& field : fields) config.counters.push_back({field, "gauge", "Help."});
  return config;
}

TEST(ExporterJobs, ADeviceHasACopyOfItsSeriesForEachJob) {
  Node node;
  node.jobs = {{"1", {"17", "18.batch"}}, {"7", {"19"}}};
  const std::string page = PageOf(node, Showing({"ACME_UTIL"}));
  EXPECT_THAT(
      SeriesOf(page, "ACME_UTIL"),
      ElementsAre(R"(ACME_UTIL{gpu="0",UUID="G0",modelName="Acme Small"} 37)",
                  R"(ACME_UTIL{gpu="1",UUID="G1",modelName="Acme Big",job="17"} 90)",
                  R"(ACME_UTIL{gpu="1",UUID="G1",modelName="Acme Big",job="18.batch"} 90)"));
  EXPECT_THAT(page, Not(HasSubstr("\"19\""))) << "there is no device 7";
}

TEST(ExporterJobs, TheLabelIsAmongThoseOfTheHolder) {
  Node node;
  node.jobs = {{"0", {"17"}}, {"1", {"18"}}};
  const std::string page = PageOf(node, Showing({"ACME_UTIL", "ACME_CLOCK"}, true));
  EXPECT_THAT(
      SeriesOf(page, "ACME_UTIL"),
      ElementsAre(
          R"(ACME_UTIL{gpu="0",UUID="G0",modelName="Acme Small",container="main",job="17",namespace="ml",pod="train-0"} 37)",
          HasSubstr(R"(container="main",job="18",namespace="ml",pod="a",vgpu="1"} 29)"),
          HasSubstr(R"(container="main",job="18",namespace="ml",pod="b",vgpu="2"} 60)")));
  EXPECT_THAT(SeriesOf(page, "ACME_CLOCK"),
              ElementsAre(HasSubstr("job=\"17\""), HasSubstr(R"(modelName="Acme Big",job="18"})")));
}

// Each kind of field makes its series in another way.
TEST(ExporterJobs, AreOnTheSeriesOfAllFamilies) {
  Node node;
  node.jobs = {{"0", {"17", "18"}}, {"1", {"17"}}};
  PageInputs inputs = PlainFigures();
  inputs.evidence = {{.device = "G0", .kind = "xid", .code = 79, .count = 2}};
  inputs.recent_evidence = inputs.evidence;
  const std::vector<std::string> fields = {"ACME_UTIL",         "ACME_SERIAL",    "ACME_XID",
                                           "ACME_XID_COUNT",    "ACME_LINK_SENT", "ACME_XID_TOTAL",
                                           "ACME_REASON_COUNT", "ACME_LINK_1",    "ACME_HEALTH"};
  const std::string page = PageOf(node, Showing(fields), inputs);
  for (const std::string& field : fields) {
    const auto series = SeriesOf(page, field);
    EXPECT_THAT(series, Not(IsEmpty())) << field;
    for (const std::string& one : series) EXPECT_THAT(one, HasSubstr("job=\"1"));
  }
  EXPECT_THAT(SeriesOf(page, "ACME_LINK_SENT"), SizeIs(6));
  EXPECT_THAT(SeriesOf(page, "ACME_XID_TOTAL"), SizeIs(2));
  EXPECT_THAT(fixture::Repeated(page), IsEmpty());
}

TEST(ExporterJobs, CannotForgeALabelOrASeries) {
  Node node;
  node.jobs = {{"0", {"17\",pod=\"x", "18\\", "a\nACME_UTIL{gpu=\"9\"} 1", "\xff"}}};
  const std::string page = PageOf(node, Showing({"ACME_UTIL"}));
  EXPECT_THAT(SeriesOf(page, "ACME_UTIL"),
              ElementsAre(HasSubstr(R"(,job="17\",pod=\"x"} 37)"), HasSubstr(R"(,job="18\\"} 37)"),
                          HasSubstr(R"(,job="a\nACME_UTIL{gpu=\"9\"} 1"} 37)"),
                          HasSubstr(R"(,job="?"} 37)"), HasSubstr("gpu=\"1\"")));
}

TEST(ExporterJobs, APodCannotNameOne) {
  Node node;
  node.EditLeases([](ledger::Lease& lease) { lease.labels = {{"job", "18"}}; });
  api::TelemetryConfig config = Showing({"ACME_UTIL"}, true);
  config.holder_labels = {"*"};
  const auto label_of = [&] { return SeriesOf(PageOf(node, config), "ACME_UTIL")[0]; };
  EXPECT_THAT(label_of(), HasSubstr(",label_job=\"18\","));
  node.jobs = {{"0", {"17"}}};
  EXPECT_THAT(label_of(), HasSubstr(",label_job=\"18\",container=\"main\",job=\"17\","));
  config.job_directory.clear();
  node.jobs.clear();
  EXPECT_THAT(label_of(), HasSubstr(",job=\"18\",")) << "without jobs it is a label as any other";
}

// Holders times jobs may be any number.
TEST(ExporterJobs, BeyondALimitDevicesHaveTheirSeriesWithout) {
  Node node;
  std::vector<std::string> many(5000, "17");
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = std::to_string(i);
  node.jobs = {{"0", many}, {"1", {"18"}}};
  const auto series = SeriesOf(PageOf(node, Showing({"ACME_UTIL"})), "ACME_UTIL");
  EXPECT_THAT(series, ElementsAre(HasSubstr("UUID=\"G0\",modelName=\"Acme Small\"}"),
                                  HasSubstr("job=\"18\"")));
}

TEST(ExporterJobs, OfAFolderThatIsNoLongerConfiguredAreNotShown) {
  Node node;
  node.jobs = {{"0", {"17"}}};
  api::TelemetryConfig config = Showing({"ACME_UTIL"});
  config.job_directory.clear();
  EXPECT_THAT(PageOf(node, config), Not(HasSubstr("job=")));
}

TEST(ExporterJobs, ThatChangeAreOnTheNextPage) {
  MetricsRenderer renderer(fixture::FindMeasuredAcme);
  renderer.Configure(Showing({"ACME_UTIL"}), "node-1");
  Node node;
  const auto jobs_on_page = [&](attribute::DeviceJobs jobs) {
    node.jobs = std::move(jobs);
    const auto series =
        SeriesOf(renderer.Make(node.Get(), PlainFigures(), PageFormat::kText, Detail::kHolders),
                 "ACME_UTIL");
    return std::ranges::count_if(
        series, [](const std::string& one) { return one.find(",job=") != std::string::npos; });
  };
  EXPECT_EQ(jobs_on_page({}), 0);
  EXPECT_EQ(jobs_on_page({{"0", {"17", "18"}}}), 2);
  EXPECT_EQ(jobs_on_page({{"0", {"17"}}}), 1);
  EXPECT_EQ(jobs_on_page({}), 0);
}

TEST(ExporterJobs, ThereMayBeNone) {
  Node node;
  Snapshots snapshots = node.Get();
  snapshots.jobs = nullptr;
  MetricsRenderer renderer(fixture::FindMeasuredAcme);
  renderer.Configure(Showing({"ACME_UTIL"}), "node-1");
  EXPECT_THAT(
      SeriesOf(renderer.Make(snapshots, PlainFigures(), PageFormat::kText, Detail::kHolders),
               "ACME_UTIL"),
      SizeIs(2));
}

}  // namespace
}  // namespace penstock::node::metrics
