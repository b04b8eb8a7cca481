#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/metrics.h"
#include "base/testing/build_tree.h"
#include "node/metrics/testing/metrics_fixture.h"
#include "os/core/file.h"

namespace penstock::node::metrics {
namespace {

using fixture::kNow;
using fixture::Node;
using fixture::PageOf;
using fixture::PlainFigures;
using fixture::SeriesOf;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using namespace std::chrono_literals;

share::OfferedSlot Share(int share, bool usable) {
  return {
      .slot = {"G1::" + std::to_string(share), "G1", "acme.com/gpu", {device::Sharing::kServer, 3}},
      .usable = usable,
      .isolation = device::Isolation::kMemoryPerProcess};
}

/// A node with data for all families.
Snapshots Everything() {
  Snapshots node = Node().Get();
  share::Offer mps{.resource = "acme.com/gpu", .allocator = "kubelet"};
  mps.slots = {Share(0, true), Share(1, true), Share(3, false)};
  node.offers = std::make_shared<const std::vector<share::Offer>>(std::vector{mps});
  device::SharedDevice server{
      .set = "acme.com/gpu", .ready = true, .isolation = device::Isolation::kMemoryPerProcess};
  server.memory = base::Mebibytes(13653);
  server.compute_percent = 33;
  server.clients = 2;
  node.servers = std::make_shared<const device::SharedDevices>(device::SharedDevices{
      {"G1", server}, {"G2", {.set = "acme.com/gpu", .reason = "the GPU is gone"}}});
  return node;
}

PageInputs EveryFigure() {
  PageInputs inputs = PlainFigures();
  inputs.queue_length = 4;
  inputs.processes = {{.process = "agent", .resident_bytes = 9000000, .cpu_seconds = 0.25}};
  inputs.evidence = {{.device = "G1",
                      .kind = "xid",
                      .code = 79,
                      .severity = device::Severity::kGone,
                      .count = 2,
                      .last = kNow - 60s},
                     {.device = "G1",
                      .kind = "xid",
                      .code = -1,
                      .severity = device::Severity::kWarn,
                      .count = 9,
                      .last = kNow}};
  inputs.recent_evidence = {inputs.evidence[0]};
  inputs.health = {{"G0", {.relapses = 0}}, {"G1", {.probation_until = kNow + 60s, .relapses = 3}}};
  inputs.transitions = {{.device = "G1", .to = device::HealthState::kUnhealthy, .count = 4}};
  inputs.resets = {{.device = "G1", .result = "refused", .count = 1}};
  inputs.validation = {{.name = "driver", .state = "passed"},
                       {.name = "device-nodes", .state = "failed", .reason = "it is missing"}};
  inputs.reloads = {.applied = 3,
                    .refused = 1,
                    .last_successful = false,
                    .last_applied = kNow - 250ms,
                    .remarks = 3};
  inputs.api_requests =
      ApiRequests{.reads = 5, .writes = 4, .streams = 2, .retries = 1, .failures = 0};
  inputs.http = HttpCounts{.answers = {{200, 12}, {401, 1}}, .cut = 2, .refused = 3, .open = 4};
  inputs.web_config = WebConfigCounts{
      .applied = 1, .refused = 2, .last_successful = false, .certificate_ends = kNow + 24h};
  inputs.page_took = 1500us;
  return inputs;
}

std::string EveryPage(PageFormat format, api::TelemetryConfig config = {}) {
  config.names = {api::MetricNames::kAccelerator};
  config.include = {"accelerator_*"};
  MetricsRenderer renderer(fixture::FindMeasuredAcme);
  renderer.Configure(config, "node-1");
  return renderer.Make(Everything(), EveryFigure(), format, Detail::kProcesses);
}

void CompareWithGolden(const std::string& name, const std::string& page) {
  const std::string path = base::SourcePath("src/node/metrics/testdata/") + name;
  if (std::getenv("PENSTOCK_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(os::WriteFileAtomically(path, page).ok());
  }
  EXPECT_EQ(page, os::ReadFile(path).value_or(""))
      << "if this is meant, run with PENSTOCK_UPDATE_GOLDEN=1";
}

TEST(MetricsRenderer, ThePageIsTheGoldenOne) {
  CompareWithGolden("page.txt", EveryPage(PageFormat::kText));
}

TEST(MetricsRenderer, TheOpenMetricsPageIsTheGoldenOne) {
  CompareWithGolden("page.openmetrics", EveryPage(PageFormat::kOpenMetrics));
}

TEST(MetricsRenderer, NothingIsThereTwice) {
  for (const PageFormat format : {PageFormat::kText, PageFormat::kOpenMetrics}) {
    EXPECT_THAT(fixture::Repeated(EveryPage(format)), IsEmpty());
    api::TelemetryConfig config;
    config.names = {api::MetricNames::kAccelerator, api::MetricNames::kExporter,
                    api::MetricNames::kExporterNew};
    for (const api::Switch virtual_gpus :
         {api::Switch::kAuto, api::Switch::kOn, api::Switch::kOff}) {
      config.virtual_gpus = virtual_gpus;
      EXPECT_THAT(fixture::Repeated(PageOf(Node(), config, EveryFigure(), format)), IsEmpty());
    }
  }
}

// The labels on the page are those of the catalogue, and so of the reference; each family of the
// node above is on the page.
TEST(MetricsRenderer, TheCataloguePromisesWhatIsThere) {
  std::string name;
  std::set<std::string> seen;
  for (const std::string& line : base::Split(EveryPage(PageFormat::kText), '\n')) {
    if (line.starts_with("# TYPE")) name = base::Split(line, ' ')[2];
    if (line.empty() || line.starts_with("#")) continue;
    seen.insert(name);
    const api::MetricFamily* family = api::FindMetricFamily(name);
    ASSERT_NE(family, nullptr) << name;
    std::vector<std::string> labels;
    bool quoted = false;
    std::size_t begin = line.find('{');
    for (std::size_t i = begin; begin != std::string::npos && i < line.size(); ++i) {
      if (line[i] == '\\') {
        ++i;
      } else if (line[i] == '"') {
        quoted = !quoted;
      } else if (!quoted && (line[i] == '{' || line[i] == ',')) {
        labels.push_back(line.substr(i + 1, line.find('=', i) - i - 1));
        if (labels.back().starts_with("label_")) labels.back() = "label_*";
      }
    }
    labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    EXPECT_EQ(labels, api::LabelsOf(*family)) << line;
  }
  const std::vector<std::string_view> other{
      "accelerator_holder_end_timestamp_seconds",
      "accelerator_unsupported",
      "accelerator_process_encoder_utilization_ratio",
      "accelerator_process_decoder_utilization_ratio",
      "accelerator_process_memory_copy_utilization_ratio",
      "penstock_metric_unavailable"};  // this node has no data for these
  for (const api::MetricFamily& family : api::MetricFamilies()) {
    if (family.group == api::MetricGroup::kTelemetry || seen.contains(std::string(family.name)))
      continue;
    EXPECT_THAT(other, Contains(family.name)) << "it is on no page";
  }
}

// Dashboards sum the shares over the states, so none may be counted twice.
TEST(MetricsRenderer, CountsEachShareOnce) {
  const std::string page = EveryPage(PageFormat::kText);
  const std::string gpu = "accelerator_shares{device=\"G1\",index=\"1\",model=\"Acme Big\",state=";
  EXPECT_THAT(SeriesOf(page, "accelerator_shares"),
              ElementsAre(gpu + "\"held\"} 1", gpu + "\"free\"} 1", gpu + "\"unusable\"} 1"))
      << "G0 and G2 are offered nowhere";
  EXPECT_THAT(page, HasSubstr("penstock_sharing_server_up{set=\"acme.com/gpu\"} 0\n"))
      << "one of its devices is not served";
}

TEST(MetricsRenderer, AnEmptyNodeStillReportsAboutItself) {
  MetricsRenderer renderer(fixture::FindMeasuredAcme);
  renderer.Configure({}, "node-1");
  const Snapshots nothing{.inventory = std::make_shared<const inventory::Snapshot>(),
                          .ledger = std::make_shared<const ledger::Snapshot>()};
  const std::string page =
      renderer.Make(nothing, {.version = "0.1.0"}, PageFormat::kText, Detail::kProcesses);
  EXPECT_THAT(page, HasSubstr("penstock_build_info{version=\"0.1.0\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("penstock_queue_length 0\n"));
  EXPECT_THAT(page, Not(HasSubstr("accelerator_")));
}

TEST(MetricsRenderer, ValuesAreInBaseUnits) {
  api::TelemetryConfig config;
  config.include = {"accelerator_fabric_*"};
  const std::string page = PageOf(Node(), config),
                    device = R"({device="G0",index="0",model="Acme Small")";
  EXPECT_THAT(page, HasSubstr("accelerator_utilization_ratio" + device + "} 0.37\n"));
  EXPECT_THAT(page, HasSubstr("accelerator_memory_used_bytes" + device + "} 21474836480\n"));
  EXPECT_THAT(page, HasSubstr("accelerator_power_watts" + device + "} 61.234\n"));
  EXPECT_THAT(page, HasSubstr("accelerator_energy_joules_total" + device + "} 123456.789\n"));
  EXPECT_THAT(page, HasSubstr("accelerator_clock_hertz" + device + ",clock=\"sm\"} 1410000000\n"));
  EXPECT_THAT(page, HasSubstr("accelerator_fabric_link_transmit_bytes_total" + device +
                              ",link=\"1\"} 20480\n"));
  EXPECT_THAT(page, HasSubstr("accelerator_fabric_link_errors_total" + device +
                              ",error=\"crc_flit\",link=\"1\"} 3\n"));
}

TEST(MetricsRenderer, AValueOfAllLinksIsNotReportedLinkByLinkToo) {
  EXPECT_THAT(SeriesOf(PageOf(Node()), "accelerator_fabric_transmit_bytes_total"), SizeIs(2))
      << "one for each device";
}

// A device that does not answer keeps its last values for as long as Prometheus would; its age is
// always shown.
TEST(MetricsRenderer, OldValuesAreLeftOut) {
  Node node;
  node.samples.devices["G0"] = fixture::Sample("G0", 1, kNow - 299s);
  EXPECT_THAT(SeriesOf(PageOf(node), "accelerator_power_watts"), SizeIs(2));
  node.samples.devices["G0"] = fixture::Sample("G0", 1, kNow - 301s);
  const std::string page = PageOf(node);
  EXPECT_THAT(SeriesOf(page, "accelerator_power_watts"), SizeIs(1));
  EXPECT_THAT(SeriesOf(page, "accelerator_sample_timestamp_seconds"), SizeIs(2));
  node.samples.interval = 200s;
  EXPECT_THAT(SeriesOf(PageOf(node), "accelerator_power_watts"), SizeIs(2))
      << "collections are that rare";
}

TEST(MetricsRenderer, AValueThatStoppedComingIsLeftOutAndOneThatNeverChangesIsNot) {
  Node node;
  sample::DeviceSample sample = *node.samples.devices["G0"];
  for (sample::Latest& latest : sample.values)
    if (latest.value.quantity == fixture::kPower) latest.at = kNow - 6min;
  node.samples.devices["G0"] = std::make_shared<const sample::DeviceSample>(sample);
  const std::string page = PageOf(node);
  EXPECT_THAT(SeriesOf(page, "accelerator_power_watts"), SizeIs(1)) << "G1's";
  EXPECT_THAT(SeriesOf(page, "accelerator_clock_max_hertz"), SizeIs(2))
      << "asked for two hours ago, and true still";
}

TEST(MetricsRenderer, AHolderIsThereFromItsAllocationAndEndsWithIt) {
  Node node;
  MetricsRenderer renderer(fixture::FindMeasuredAcme);
  renderer.Configure({}, "node-1");
  EXPECT_THAT(
      SeriesOf(renderer.Make(node.Get(), PlainFigures(), PageFormat::kText, Detail::kProcesses),
               "accelerator_held"),
      SizeIs(3));
  node.ledger.leases.pop_back();
  ++node.ledger.generation;
  EXPECT_THAT(
      SeriesOf(renderer.Make(node.Get(), PlainFigures(), PageFormat::kText, Detail::kProcesses),
               "accelerator_held"),
      SizeIs(2));
  node.ledger.leases.Edit(0).pod = "train-1";
  ++node.ledger.generation;
  EXPECT_THAT(renderer.Make(node.Get(), PlainFigures(), PageFormat::kText, Detail::kProcesses),
              HasSubstr("pod=\"train-1\""));
}

TEST(MetricsRenderer, LabelsFollowTheFacts) {
  Node node;
  MetricsRenderer renderer(fixture::FindMeasuredAcme);
  renderer.Configure({}, "node-1");
  renderer.Make(node.Get(), PlainFigures(), PageFormat::kText, Detail::kProcesses);
  device::Facts facts = *node.inventory.devices[0].facts;
  facts.index = 5;
  node.inventory.devices[0].facts = std::make_shared<const device::Facts>(facts);
  ++node.inventory.facts_generation;
  const std::string page =
      renderer.Make(node.Get(), PlainFigures(), PageFormat::kText, Detail::kProcesses);
  EXPECT_THAT(page, HasSubstr(R"(accelerator_power_watts{device="G0",index="5")"));
  EXPECT_THAT(page, HasSubstr(R"(accelerator_holder_idle{device="G0",index="5")"));
  EXPECT_THAT(page, HasSubstr(R"(ACME_UTIL{gpu="5")"));
  EXPECT_THAT(page, Not(HasSubstr(R"(device="G0",index="0")")));
}

TEST(MetricsRenderer, TheLastFiguresOfAHolderThatEndedStay) {
  Node node;
  usage::HolderUsage ended = *node.usage.holders[0];
  ended.until = kNow - 30s;
  node.usage.holders[0] = std::make_shared<const usage::HolderUsage>(ended);
  const std::string page = PageOf(node);
  EXPECT_THAT(SeriesOf(page, "accelerator_holder_end_timestamp_seconds"), SizeIs(1));
  EXPECT_THAT(SeriesOf(page, "accelerator_holder_energy_joules_total"), SizeIs(3));
  EXPECT_THAT(SeriesOf(page, "accelerator_holder_utilization_ratio"), SizeIs(2))
      << "it uses nothing any more";
  EXPECT_THAT(SeriesOf(page, "accelerator_process_memory_used_bytes"), SizeIs(3))
      << "of the two others and the one from outside";
}

TEST(MetricsRenderer, ALeaseThatIsBackOnADeviceIsThereOnce) {
  Node node;
  usage::HolderUsage ended = *node.usage.holders[0];
  ended.until = kNow - 30s;
  node.usage.holders.insert(node.usage.holders.begin(),
                            std::make_shared<const usage::HolderUsage>(ended));
  const std::string page = PageOf(node);
  EXPECT_THAT(SeriesOf(page, "accelerator_holder_start_timestamp_seconds"), SizeIs(3));
  EXPECT_THAT(SeriesOf(page, "accelerator_holder_end_timestamp_seconds"), IsEmpty());
  EXPECT_THAT(fixture::Repeated(page), IsEmpty());
}

// A lease's CPU time does not depend on the device: shown for each device, a sum would count it
// twice.
TEST(MetricsRenderer, WhatIsOfAWholeLeaseIsReportedOnce) {
  Node node;
  usage::HolderUsage second = *node.usage.holders[0];
  second.device = "G1";
  node.usage.holders.insert(node.usage.holders.begin() + 1,
                            std::make_shared<const usage::HolderUsage>(second));
  const std::string page = PageOf(node);
  EXPECT_THAT(SeriesOf(page, "accelerator_holder_energy_joules_total"), SizeIs(4));
  EXPECT_THAT(SeriesOf(page, "accelerator_holder_cpu_seconds_total"), SizeIs(3));
  EXPECT_THAT(SeriesOf(page, "accelerator_holder_labels"), SizeIs(3));
}

TEST(MetricsRenderer, AProcessFromOutsideIsReportedWithWhatItUses) {
  EXPECT_THAT(
      SeriesOf(PageOf(Node()), "accelerator_process_memory_used_bytes"),
      Contains(
          R"(accelerator_process_memory_used_bytes{device="G1",index="1",pid="99",user="eve",command="mine\"r",lease="",namespace="",pod="",container=""} 67108864)"));
}

TEST(MetricsRenderer, WithoutDetailAHoldersProcessesAreOneSeriesWithoutPidAndCommand) {
  Node node;
  node.ledger.outside["G1"].push_back({100, 0, "eve", "another --token=SECRET"});
  const std::string page = PageOf(node, {}, PlainFigures(), PageFormat::kText, Detail::kHolders);
  EXPECT_THAT(page,
              AllOf(Not(HasSubstr("pid=")), Not(HasSubstr("command=")), Not(HasSubstr("SECRET"))));
  EXPECT_THAT(
      SeriesOf(page, "accelerator_process_memory_used_bytes"),
      Contains(
          R"(accelerator_process_memory_used_bytes{device="G1",index="1",user="eve",lease="",namespace="",pod="",container=""} 67108864)"));
  EXPECT_THAT(fixture::Repeated(page), IsEmpty());
}

TEST(MetricsRenderer, NamesAndGlobsSayWhatIsShown) {
  api::TelemetryConfig config;
  config.names = {api::MetricNames::kExporter};
  std::string page = PageOf(Node(), config);
  EXPECT_THAT(page, Not(HasSubstr("accelerator_")));
  EXPECT_THAT(page, HasSubstr("ACME_UTIL{"));
  EXPECT_THAT(page, HasSubstr("penstock_build_info{"));
  config.names = {api::MetricNames::kAccelerator};
  config.exclude = {"accelerator_*"};
  config.include = {"accelerator_power_*"};
  page = PageOf(Node(), config);
  EXPECT_THAT(page, HasSubstr("accelerator_power_watts{"));
  EXPECT_THAT(page, Not(HasSubstr("accelerator_utilization_ratio")));
  EXPECT_THAT(page, Not(HasSubstr("ACME_")));
  config.processes = false;
  config.exclude.clear();
  EXPECT_THAT(PageOf(Node(), config), Not(HasSubstr("accelerator_process_")));
}

TEST(MetricsRenderer, APodWhoseNameIsNotKnownForLongIsReported) {
  Node node;
  EXPECT_THAT(PageOf(node), HasSubstr("penstock_attribution_up{door=\"kubelet\"} 1\n"));
  node.ledger.leases.Edit(1).pod.clear();
  EXPECT_THAT(PageOf(node), HasSubstr("penstock_attribution_up{door=\"kubelet\"} 0\n"));
  node.ledger.leases.Edit(1).since = kNow - 10s;
  EXPECT_THAT(PageOf(node), HasSubstr("penstock_attribution_up{door=\"kubelet\"} 1\n"))
      << "the kubelet has not told yet";
}

TEST(MetricsRenderer, WhatADeviceCannotReportIsReportedOnce) {
  Node node;
  sample::DeviceSample sample = *node.samples.devices["G0"];
  sample.unsupported = {fixture::kEnergy, 60000};
  sample.problem = "it does not answer";
  node.samples.devices["G0"] = std::make_shared<const sample::DeviceSample>(sample);
  const std::string page = PageOf(node);
  EXPECT_THAT(SeriesOf(page, "accelerator_unsupported"),
              ElementsAre(R"(accelerator_unsupported{model="Acme Small",quantity="energy"} 1)"));
  EXPECT_THAT(
      page, HasSubstr(R"(accelerator_sample_failed{device="G0",index="0",model="Acme Small"} 1)"));
}

}  // namespace
}  // namespace penstock::node::metrics
