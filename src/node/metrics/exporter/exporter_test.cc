// Tests the families of a vendor's own exporter.
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
using namespace std::chrono_literals;

/// Without a host label and without holders, to be short.
api::TelemetryConfig Plain() {
  api::TelemetryConfig config;
  config.names = {api::MetricNames::kExporter};
  config.host_label = api::HostLabel::kNone;
  config.holders = false;
  return config;
}

api::TelemetryConfig With(std::vector<api::MetricRow> rows) {
  api::TelemetryConfig config = Plain();
  config.counters = std::move(rows);
  return config;
}

TEST(Exporter, FamiliesAreInItsOrderWithItsHelpAndTypes) {
  const std::string page =
      PageOf(Node(), With({{"ACME_POWER", "gauge", "Power. "},
                           {"ACME_CLOCK", "counter", "Clock, a \"counter\""}}));
  EXPECT_THAT(page,
              HasSubstr("# HELP ACME_CLOCK Clock, a \"counter\"\n# TYPE ACME_CLOCK counter\n"
                        "ACME_CLOCK{gpu=\"0\",UUID=\"G0\",modelName=\"Acme Small\"} 1410\n"
                        "ACME_CLOCK{gpu=\"1\",UUID=\"G1\",modelName=\"Acme Big\"} 1410\n"
                        "# HELP ACME_POWER Power. \n# TYPE ACME_POWER gauge\n"
                        "ACME_POWER{gpu=\"0\",UUID=\"G0\",modelName=\"Acme Small\"} 61.234000\n"));
  EXPECT_THAT(page, Not(HasSubstr("ACME_UTIL")));
}

TEST(Exporter, WithoutRowsThereAreItsOwn) {
  const std::string page = PageOf(Node(), Plain());
  EXPECT_THAT(SeriesOf(page, "ACME_UTIL"), SizeIs(2)) << "G2 is gone";
  EXPECT_THAT(page, HasSubstr("# HELP ACME_UTIL ACME_UTIL help. \n")) << "the blank at its end too";
  EXPECT_THAT(page, Not(HasSubstr("ACME_POWER")));
}

TEST(Exporter, TheNewerNamingHasItsOwnNamesAndUnits) {
  api::TelemetryConfig config = Plain();
  config.names = {api::MetricNames::kExporterNew};
  const std::string page = PageOf(Node(), config);
  EXPECT_THAT(
      SeriesOf(page, "ACME_CLOCK_HERTZ"),
      ElementsAre(
          R"(ACME_CLOCK_HERTZ{gpu="0",UUID="G0",modelName="Acme Small",ACME_SYSTEM_DRIVER="1.0"} 1410000000)",
          R"(ACME_CLOCK_HERTZ{gpu="1",UUID="G1",modelName="Acme Big",ACME_SYSTEM_DRIVER="1.0"} 1410000000)"));
  EXPECT_THAT(page, HasSubstr("} 0.370000\n"));
  EXPECT_THAT(SeriesOf(page, "ACME_MEMORY_BYTES")[0], HasSubstr("} 21474836480"));
  EXPECT_THAT(page, Not(HasSubstr("ACME_CLOCK{")));
}

TEST(Exporter, HelpReportsTheUnitThatTheNamingHas) {
  api::TelemetryConfig config = With({{"ACME_CLOCK", "gauge", "Clock (in MHz)."},
                                      {"ACME_UTIL", "gauge", "Use (in %)."},
                                      {"ACME_POWER", "gauge", "Power (in W)."}});
  config.names = {api::MetricNames::kExporter, api::MetricNames::kExporterNew};
  const std::string page = PageOf(Node(), config);
  EXPECT_THAT(page, HasSubstr("# HELP ACME_CLOCK Clock (in MHz).\n"));
  EXPECT_THAT(page, HasSubstr("# HELP ACME_CLOCK_HERTZ Clock (in hertz).\n"));
  EXPECT_THAT(page, HasSubstr("# HELP ACME_UTIL_RATIO Use (0 to 1).\n"));
  EXPECT_THAT(page, HasSubstr("# HELP ACME_POWER Power (in W).\n"));
}

TEST(Exporter, BothNamingsAtOnceShareNoFamily) {
  api::TelemetryConfig config =
      With({{"ACME_POWER", "gauge", "Power."}, {"ACME_CLOCK", "gauge", "Clock."}});
  config.names = {api::MetricNames::kExporter, api::MetricNames::kExporterNew};
  const std::string page = PageOf(Node(), config);
  EXPECT_THAT(SeriesOf(page, "ACME_POWER"), SizeIs(2)) << "called so in both";
  EXPECT_THAT(SeriesOf(page, "ACME_CLOCK"), SizeIs(2));
  EXPECT_THAT(SeriesOf(page, "ACME_CLOCK_HERTZ"), SizeIs(2));
  EXPECT_THAT(fixture::Repeated(page), IsEmpty());
}

TEST(Exporter, ARowMayNameItsFieldInEitherNaming) {
  const std::string page = PageOf(Node(), With({{"ACME_CLOCK_HERTZ", "gauge", "Clock."}}));
  EXPECT_THAT(SeriesOf(page, "ACME_CLOCK"), SizeIs(2))
      << "how it is called is said by telemetry.names";
  EXPECT_THAT(SeriesOf(page, "ACME_CLOCK_HERTZ"), IsEmpty());
}

// A counters file that names a field twice, an unknown field, and an unavailable one still results
// in a page.
TEST(Exporter, RowsThatMakeNoFamilyAreLeftOut) {
  const std::string page = PageOf(Node(), With({{"ACME_POWER", "gauge", "One."},
                                                {"ACME_POWER", "counter", "Two."},
                                                {"ACME_SECRET", "gauge", "Secret."},
                                                {"ACME_UNHEARD_OF", "gauge", "?"},
                                                {"ACME_UTIL", "histogram", "Odd."}}));
  EXPECT_THAT(page, HasSubstr("# HELP ACME_POWER One.\n# TYPE ACME_POWER gauge\n"));
  EXPECT_THAT(page, Not(HasSubstr("Two.")));
  EXPECT_THAT(page, Not(HasSubstr("# TYPE ACME_SECRET")));
  EXPECT_THAT(SeriesOf(page, "penstock_metric_unavailable"),
              ElementsAre(R"(penstock_metric_unavailable{metric="ACME_SECRET"} 1)"));
  EXPECT_THAT(page, HasSubstr("# TYPE ACME_UTIL untyped\n"));
  EXPECT_THAT(fixture::Repeated(page), IsEmpty());
}

TEST(Exporter, RowsThatAreLabelsAreOnAllSeries) {
  const auto page = PageOf(Node(), With({{"ACME_UTIL", "gauge", "Use."},
                                         {"ACME_SERIAL", "label", ""},
                                         {"ACME_DRIVER_VERSION", "label", ""}}));
  EXPECT_THAT(
      SeriesOf(page, "ACME_UTIL")[0],
      R"(ACME_UTIL{gpu="0",UUID="G0",modelName="Acme Small",ACME_DRIVER_VERSION="1.0",ACME_SERIAL="1000"} 37)");
}

TEST(Exporter, AFactThatIsANumberCanBeShownAsOne) {
  const std::string page = PageOf(Node(), With({{"ACME_SERIAL", "gauge", "Serial."},
                                                {"ACME_DRIVER_VERSION", "gauge", "Driver."}}));
  EXPECT_THAT(SeriesOf(page, "ACME_SERIAL")[1], HasSubstr("} 1001"));
  EXPECT_THAT(page, Not(HasSubstr("# TYPE ACME_DRIVER_VERSION"))) << "1.0 is none of these";
}

TEST(Exporter, TheHostsLabelIsAsOneWants) {
  api::TelemetryConfig config = With({{"ACME_UTIL", "gauge", "Use."}});
  config.host_label = api::HostLabel::kOld;
  EXPECT_THAT(PageOf(Node(), config), HasSubstr(",Hostname=\"node-1\"}"));
  config.host_label = api::HostLabel::kNew;
  EXPECT_THAT(PageOf(Node(), config), HasSubstr(",hostname=\"node-1\"}"));
  config.host_label = api::HostLabel::kBoth;
  EXPECT_THAT(PageOf(Node(), config), HasSubstr(",Hostname=\"node-1\",hostname=\"node-1\"}"));
  config.old_names = true;
  EXPECT_THAT(PageOf(Node(), config), HasSubstr("uuid=\"G0\""));
}

// telemetry.virtualGpus: false. A whole device names its holder; a shared one names none, since its
// value is not one holder's, and no series occurs twice.
TEST(Exporter, SeriesOfAWholeDeviceNameItsHolder) {
  api::TelemetryConfig config = With({{"ACME_UTIL", "gauge", "Use."}});
  config.holders = true;
  config.virtual_gpus = api::Switch::kOff;
  EXPECT_THAT(
      SeriesOf(PageOf(Node(), config), "ACME_UTIL"),
      ElementsAre(
          R"(ACME_UTIL{gpu="0",UUID="G0",modelName="Acme Small",container="main",namespace="ml",pod="train-0"} 37)",
          R"(ACME_UTIL{gpu="1",UUID="G1",modelName="Acme Big"} 90)"));
  config.pod_uid = true;
  EXPECT_THAT(PageOf(Node(), config), HasSubstr(R"(pod="train-0",pod_uid="uid-train-0"})"));
  config.old_names = true;
  EXPECT_THAT(PageOf(Node(), config), HasSubstr(R"(pod_name="train-0")"));
}

TEST(Exporter, PodLabelsOnTheAllowListAreAmongThem) {
  api::TelemetryConfig config = With({{"ACME_UTIL", "gauge", "Use."}});
  config.holders = true;
  config.holder_labels = {"app.kubernetes.io/*", "gpu"};
  EXPECT_THAT(
      SeriesOf(PageOf(Node(), config), "ACME_UTIL")[0],
      R"(ACME_UTIL{gpu="0",UUID="G0",modelName="Acme Small",app_kubernetes_io_name="train",label_gpu="mine",)"
      R"(container="main",namespace="ml",pod="train-0"} 37)");
}

// KUBERNETES_VIRTUAL_GPUS: a series for each holder, with its own utilization and memory where
// these are known, and no further series that a sum would count twice.
TEST(Exporter, EachHolderOfASharedDeviceCanHaveSeriesOfItsOwn) {
  api::TelemetryConfig config = With({{"ACME_UTIL", "gauge", "Use."},
                                      {"ACME_MEMORY", "gauge", "Memory."},
                                      {"ACME_CLOCK", "gauge", "Clock."}});
  config.holders = true;
  config.virtual_gpus = api::Switch::kOn;
  const std::string page = PageOf(Node(), config);
  const std::string one =
      R"({gpu="1",UUID="G1",modelName="Acme Big",container="main",namespace="ml",pod="a",vgpu="1"} )";
  const std::string other =
      R"({gpu="1",UUID="G1",modelName="Acme Big",container="main",namespace="ml",pod="b",vgpu="2"} )";
  EXPECT_THAT(SeriesOf(page, "ACME_UTIL"),
              ElementsAre(testing::_, "ACME_UTIL" + one + "29", "ACME_UTIL" + other + "60"));
  EXPECT_THAT(SeriesOf(page, "ACME_MEMORY"),
              ElementsAre(testing::_, "ACME_MEMORY" + one + "512", "ACME_MEMORY" + other + "512"));
  EXPECT_THAT(SeriesOf(page, "ACME_CLOCK"),
              ElementsAre(testing::_, "ACME_CLOCK" + one + "1410", "ACME_CLOCK" + other + "1410"));
  EXPECT_THAT(SeriesOf(page, "ACME_CLOCK")[0], Not(HasSubstr("vgpu"))) << "G0 is whole";
}

TEST(Exporter, AHoldersValueThatIsNotKnownIsNotTheDevices) {
  Node node;
  node.usage.holders.pop_back();
  api::TelemetryConfig config = With({{"ACME_UTIL", "gauge", "Use."}});
  config.holders = true;
  config.virtual_gpus = api::Switch::kOn;
  EXPECT_THAT(SeriesOf(PageOf(node, config), "ACME_UTIL"), SizeIs(2)) << "none for pod b";
}

// The default: a holder's own values under its name, all others once, so that a sum over power
// counts a GPU once.
TEST(Exporter, HoldersOfASharedDeviceHaveSeriesOfTheirOwnValuesAlone) {
  api::TelemetryConfig config = With({{"ACME_UTIL", "gauge", "Use."},
                                      {"ACME_MEMORY", "gauge", "Memory."},
                                      {"ACME_CLOCK", "gauge", "Clock."},
                                      {"ACME_XID_COUNT", "gauge", "Errors."},
                                      {"ACME_LINK_SENT", "counter", "Sent."}});
  config.holders = true;
  const std::string device = R"({gpu="1",UUID="G1",modelName="Acme Big"} )";
  const std::string one =
      R"({gpu="1",UUID="G1",modelName="Acme Big",container="main",namespace="ml",pod="a",vgpu="1"} )";
  const std::string other =
      R"({gpu="1",UUID="G1",modelName="Acme Big",container="main",namespace="ml",pod="b",vgpu="2"} )";
  const std::string page = PageOf(Node(), config);
  EXPECT_THAT(SeriesOf(page, "ACME_UTIL"),
              ElementsAre(HasSubstr("pod=\"train-0\"} 37"), "ACME_UTIL" + one + "29",
                          "ACME_UTIL" + other + "60"));
  EXPECT_THAT(SeriesOf(page, "ACME_MEMORY"),
              ElementsAre(testing::_, "ACME_MEMORY" + one + "512", "ACME_MEMORY" + other + "512"));
  EXPECT_THAT(SeriesOf(page, "ACME_CLOCK"),
              ElementsAre(HasSubstr("pod=\"train-0\""), "ACME_CLOCK" + device + "1410"));
  EXPECT_THAT(SeriesOf(page, "ACME_XID_COUNT"), SizeIs(2));
  EXPECT_THAT(SeriesOf(page, "ACME_LINK_SENT"), SizeIs(4));
}

// Programs of `penstock run`: nothing changes without pods.
TEST(Exporter, HoldersThatAreNoPodsHaveNoSeriesOfTheirOwnUnlessWanted) {
  Node node;
  node.EditLeases([](ledger::Lease& lease) { lease.pod.clear(); });
  api::TelemetryConfig config = With({{"ACME_UTIL", "gauge", "Use."}});
  config.holders = true;
  EXPECT_THAT(SeriesOf(PageOf(node, config), "ACME_UTIL"),
              ElementsAre(testing::_, R"(ACME_UTIL{gpu="1",UUID="G1",modelName="Acme Big"} 90)"));
  config.virtual_gpus = api::Switch::kOn;
  EXPECT_THAT(SeriesOf(PageOf(node, config), "ACME_UTIL"), SizeIs(3));
}

TEST(Exporter, WhereNoHoldersValueIsKnownTheDevicesStays) {
  Node node;
  api::TelemetryConfig config = With({{"ACME_UTIL", "gauge", "Use."}});
  config.holders = true;
  node.usage.holders.pop_back();
  EXPECT_THAT(SeriesOf(PageOf(node, config), "ACME_UTIL"),
              ElementsAre(testing::_, HasSubstr("pod=\"a\",vgpu=\"1\"} 29")))
      << "pod b's is not known";
  node.usage.holders.pop_back();
  EXPECT_THAT(SeriesOf(PageOf(node, config), "ACME_UTIL"),
              ElementsAre(testing::_, R"(ACME_UTIL{gpu="1",UUID="G1",modelName="Acme Big"} 90)"));
}

TEST(Exporter, LinksHaveSeriesOfTheirOwn) {
  const std::string page = PageOf(Node(), With({{"ACME_LINK_SENT", "counter", "Sent."},
                                                {"ACME_LINK_1", "counter", "Sent over link 1."}}));
  EXPECT_THAT(
      SeriesOf(page, "ACME_LINK_SENT"),
      ElementsAre(R"(ACME_LINK_SENT{nvlink="0",gpu="0",UUID="G0",modelName="Acme Small"} 10)",
                  R"(ACME_LINK_SENT{nvlink="1",gpu="0",UUID="G0",modelName="Acme Small"} 20)",
                  R"(ACME_LINK_SENT{nvlink="0",gpu="1",UUID="G1",modelName="Acme Big"} 10)",
                  R"(ACME_LINK_SENT{nvlink="1",gpu="1",UUID="G1",modelName="Acme Big"} 20)"));
  EXPECT_THAT(SeriesOf(page, "ACME_LINK_1"),
              ElementsAre(R"(ACME_LINK_1{gpu="0",UUID="G0",modelName="Acme Small"} 20)",
                          R"(ACME_LINK_1{gpu="1",UUID="G1",modelName="Acme Big"} 20)"));
}

TEST(Exporter, TheLastErrorIsTheYoungest) {
  PageInputs inputs = PlainFigures();
  inputs.evidence = {{.device = "G1", .kind = "xid", .code = 13, .count = 9, .last = kNow - 60s},
                     {.device = "G1", .kind = "xid", .code = 79, .count = 1, .last = kNow - 30s},
                     {.device = "G1", .kind = "other", .code = 1, .count = 1, .last = kNow}};
  EXPECT_THAT(
      SeriesOf(PageOf(Node(), With({{"ACME_XID", "gauge", "Xid."}}), inputs), "ACME_XID"),
      ElementsAre(
          R"(ACME_XID{gpu="0",UUID="G0",modelName="Acme Small",err_code="0",err_msg="No Error"} 0)",
          R"(ACME_XID{gpu="1",UUID="G1",modelName="Acme Big",err_code="79",err_msg="off the \"bus\""} 79)"));
}

TEST(Exporter, ErrorsWithinAWindowAreCountedByCode) {
  PageInputs inputs = PlainFigures();
  inputs.recent_evidence = {{.device = "G1", .kind = "xid", .code = 79, .count = 2},
                            {.device = "G1", .kind = "xid", .code = 13, .count = 1}};
  EXPECT_THAT(
      SeriesOf(PageOf(Node(), With({{"ACME_XID_COUNT", "gauge", "Xids."}}), inputs),
               "ACME_XID_COUNT"),
      ElementsAre(
          R"(ACME_XID_COUNT{gpu="0",UUID="G0",modelName="Acme Small",window_size_in_ms="300000"} 0)",
          R"(ACME_XID_COUNT{gpu="1",UUID="G1",modelName="Acme Big",part="79",window_size_in_ms="300000"} 2)",
          R"(ACME_XID_COUNT{gpu="1",UUID="G1",modelName="Acme Big",part="13",window_size_in_ms="300000"} 1)"));
}

TEST(Exporter, ReasonsAreCountedOverAllSamplesWithinTheWindow) {
  MetricsRenderer renderer(fixture::FindMeasuredAcme);
  renderer.Configure(With({{"ACME_REASON_COUNT", "gauge", "Reasons."}}), "node-1");
  Node node;
  for (int i = 0; i < 3; ++i) {
    node.samples.devices["G0"] = fixture::Sample("G0", 1, kNow + i * 10s);
    node.samples.devices.erase("G1");
    renderer.AddSample(node.samples, base::TimePoint{} + i * 10s);
  }
  const std::string page =
      renderer.Make(node.Get(), PlainFigures(), PageFormat::kText, Detail::kHolders);
  EXPECT_THAT(
      SeriesOf(page, "ACME_REASON_COUNT"),
      ElementsAre(
          R"(ACME_REASON_COUNT{gpu="0",UUID="G0",modelName="Acme Small",part="idle",window_size_in_ms="300000"} 3)",
          R"(ACME_REASON_COUNT{gpu="0",UUID="G0",modelName="Acme Small",part="power_cap",window_size_in_ms="300000"} 3)",
          R"(ACME_REASON_COUNT{gpu="1",UUID="G1",modelName="Acme Big",window_size_in_ms="300000"} 0)"));
}

// Like dcgm-exporter's totals: a series starts with the first event, and a reason that was active
// when the counting started is no event.
TEST(Exporter, TotalsHaveASeriesForEachThingThatHappened) {
  PageInputs inputs = PlainFigures();
  inputs.evidence = {{.device = "G1", .kind = "xid", .code = 79, .count = 2},
                     {.device = "G1", .kind = "xid", .code = 0, .count = 1}};
  MetricsRenderer renderer(fixture::FindMeasuredAcme);
  renderer.Configure(
      With({{"ACME_XID_TOTAL", "counter", "Xids."}, {"ACME_REASON_TOTAL", "counter", "Reasons."}}),
      "node-1");
  Node node;
  node.samples.devices.erase("G1");
  for (int i = 0; i < 4; ++i) {
    device::SampleValue reasons{.quantity = fixture::kReasons,
                                .number = std::uint64_t{i % 2 == 0 ? 1u : 5u}};
    node.samples.devices["G0"] = std::make_shared<sample::DeviceSample>(sample::DeviceSample{
        .device = "G0", .vendor = "acme", .values = {{.value = reasons, .at = kNow + i * 10s}}});
    renderer.AddSample(node.samples, base::TimePoint{} + i * 10s);
  }
  const std::string page = renderer.Make(node.Get(), inputs, PageFormat::kText, Detail::kHolders);
  EXPECT_THAT(SeriesOf(page, "ACME_XID_TOTAL"),
              ElementsAre(R"(ACME_XID_TOTAL{gpu="1",UUID="G1",modelName="Acme Big",part="79"} 2)"));
  EXPECT_THAT(
      SeriesOf(page, "ACME_REASON_TOTAL"),
      ElementsAre(
          R"(ACME_REASON_TOTAL{gpu="0",UUID="G0",modelName="Acme Small",part="power_cap"} 2)"));
  EXPECT_THAT(page, HasSubstr("# TYPE ACME_XID_TOTAL counter\n"));
}

TEST(Exporter, HealthIsReportedOfTheDeviceAndOfItsParts) {
  PageInputs inputs = PlainFigures();
  inputs.health["G1"].concerns = {
      {"xid", 63, device::Severity::kWarn}, {"xid", 74, device::Severity::kReset}, {"lost", 0}};
  const auto config = With({{"ACME_HEALTH", "gauge", "Health."}});
  EXPECT_THAT(
      SeriesOf(PageOf(Node(), config, inputs), "ACME_HEALTH"),
      ElementsAre(
          R"(ACME_HEALTH{gpu="0",UUID="G0",modelName="Acme Small",error="OK",watch=""} 0)",
          R"(ACME_HEALTH{gpu="0",UUID="G0",modelName="Acme Small",error="OK",watch="LINK"} 0)",
          R"(ACME_HEALTH{gpu="0",UUID="G0",modelName="Acme Small",error="OK",watch="MEM"} 0)",
          R"(ACME_HEALTH{gpu="1",UUID="G1",modelName="Acme Big",error="LINK_DOWN",watch=""} 20)",
          R"(ACME_HEALTH{gpu="1",UUID="G1",modelName="Acme Big",error="LINK_DOWN",watch="LINK"} 20)",
          R"(ACME_HEALTH{gpu="1",UUID="G1",modelName="Acme Big",error="UNKNOWN",watch="MEM"} 10)"));
  Node node;
  node.inventory.devices[0].health.state = device::HealthState::kUnknown;
  EXPECT_THAT(
      SeriesOf(PageOf(node, config, inputs), "ACME_HEALTH")[0],
      R"(ACME_HEALTH{gpu="0",UUID="G0",modelName="Acme Small",error="UNKNOWN",watch=""} 10)");
  EXPECT_THAT(SeriesOf(PageOf(node, config, inputs), "ACME_HEALTH"), SizeIs(4))
      << "nobody has looked at the parts of G0";
}

TEST(Exporter, PeersFollowFromLinks) {
  const std::string page = PageOf(Node(), With({{"ACME_PEERS", "gauge", "Peers."}}));
  EXPECT_THAT(SeriesOf(page, "ACME_PEERS"),
              ElementsAre(R"(ACME_PEERS{gpu="0",UUID="G0",modelName="Acme Small",part="1"} 0)",
                          R"(ACME_PEERS{gpu="1",UUID="G1",modelName="Acme Big",part="0"} 0)"));
}

// A value that DCGM reports as blank (unsupported by the device) has no series, and is never 0.
TEST(Exporter, ADeviceWithoutAValueHasNoSeries) {
  Node node;
  node.samples.devices.erase("G0");
  EXPECT_THAT(SeriesOf(PageOf(node, Plain()), "ACME_UTIL"), SizeIs(1));
  EXPECT_THAT(SeriesOf(PageOf(node, Plain()), "ACME_XID"), SizeIs(2))
      << "errors are heard of without samples";
}

// Being gone is a health state: the device's facts do not change.
TEST(Exporter, ADeviceThatIsGoneHasNoSeriesAnyMore) {
  MetricsRenderer renderer(fixture::FindMeasuredAcme);
  renderer.Configure(Plain(), "node-1");
  Node node;
  EXPECT_THAT(
      SeriesOf(renderer.Make(node.Get(), PlainFigures(), PageFormat::kText, Detail::kHolders),
               "ACME_XID"),
      SizeIs(2));
  node.inventory.devices[1].health.state = device::HealthState::kGone;
  EXPECT_THAT(
      SeriesOf(renderer.Make(node.Get(), PlainFigures(), PageFormat::kText, Detail::kHolders),
               "ACME_XID"),
      SizeIs(1));
}

TEST(Exporter, InOpenMetricsACounterKeepsItsName) {
  const std::string page = PageOf(Node(), With({{"ACME_LINK_SENT", "counter", "Sent."}}),
                                  PlainFigures(), PageFormat::kOpenMetrics);
  EXPECT_THAT(page, HasSubstr("# TYPE ACME_LINK_SENT unknown\nACME_LINK_SENT{"));
}

}  // namespace
}  // namespace penstock::node::metrics
