#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/config/config_change.h"
#include "api/config/node_config.h"

namespace penstock::api {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

const std::string kTelemetryHeader = "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\n";

NodeConfig ParsedTelemetry(const std::string& text) {
  auto config = ParseNodeConfig(kTelemetryHeader + text, "node.yaml");
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().message());
  return config.value_or({});
}

std::string TelemetryError(const std::string& text) {
  const auto config = ParseNodeConfig(kTelemetryHeader + text, "f");
  return config.ok() ? "" : config.error().message();
}

constexpr char kEveryKey[] = R"(telemetry:
  interval: 1500ms
  names: [dcgm-4.7, dcgm]
  processes: false
  exclude: ["DCGM_FI_PROF_*", "accelerator_pcie_?x_*"]
  include: [DCGM_FI_PROF_DRAM_ACTIVE]
  countersFile: /etc/dcgm-exporter/mine.csv
  countersConfigMap: "gpu:metrics.v1"
  hostLabel: Hostname
  oldNames: true
  blanksReplaced: true
  holders: false
  virtualGpus: true
  podUid: true
  errorsWindow: 10m
  clockEventsWindow: 1m
  holderLabels: [app, "app.kubernetes.io/*"]
  keepEnded: 1h
  jobDirectory: /var/lib/jobs
usage: {records: false, dir: /var/log/usage, fileSize: 1Mi, files: 3, checkpoint: 1m, idleAfter: 2h, idleBelow: 0.05}
http: {listen: "off", webConfigFile: /etc/web.yaml, connections: 8, deadline: 1s}
)";

TEST(NodeConfigTelemetry, ReadsEveryKey) {
  const NodeConfig config = ParsedTelemetry(kEveryKey);
  const TelemetryConfig telemetry = {.interval = 1500ms,
                                     .names = {MetricNames::kExporterNew, MetricNames::kExporter},
                                     .names_set = true,
                                     .processes = false,
                                     .exclude = {"DCGM_FI_PROF_*", "accelerator_pcie_?x_*"},
                                     .include = {"DCGM_FI_PROF_DRAM_ACTIVE"},
                                     .counters = {},
                                     .counters_file = "/etc/dcgm-exporter/mine.csv",
                                     .counters_map = "gpu:metrics.v1",
                                     .host_label = HostLabel::kOld,
                                     .old_names = true,
                                     .blanks_replaced = true,
                                     .holders = false,
                                     .virtual_gpus = Switch::kOn,
                                     .pod_uid = true,
                                     .errors_window = 10min,
                                     .clock_events_window = 1min,
                                     .holder_labels = {"app", "app.kubernetes.io/*"},
                                     .keep_ended = 1h,
                                     .job_directory = "/var/lib/jobs"};
  EXPECT_EQ(config.telemetry, telemetry);
  const UsageConfig usage = {.records = false,
                             .dir = "/var/log/usage",
                             .file_size = base::Mebibytes(1),
                             .files = 3,
                             .checkpoint = 1min,
                             .idle_after = 2h,
                             .idle_below = 0.05};
  EXPECT_EQ(config.usage, usage);
  const HttpConfig http = {
      .listen = "off", .web_config_file = "/etc/web.yaml", .connections = 8, .deadline = 1s};
  EXPECT_EQ(config.http, http);
}

TEST(NodeConfigTelemetry, ReportsOfTheHostAndOfHoldersAsIsWanted) {
  EXPECT_EQ(ParsedTelemetry("telemetry: {hostLabel: both}").telemetry.host_label, HostLabel::kBoth);
  EXPECT_EQ(ParsedTelemetry("telemetry: {}").telemetry.virtual_gpus, Switch::kAuto);
  EXPECT_EQ(ParsedTelemetry("telemetry: {virtualGpus: auto}").telemetry.virtual_gpus,
            Switch::kAuto);
  EXPECT_EQ(ParsedTelemetry("telemetry: {virtualGpus: false}").telemetry.virtual_gpus,
            Switch::kOff);
  EXPECT_THAT(TelemetryError("telemetry: {virtualGpus: always}"),
              HasSubstr("telemetry.virtualGpus: \"always\" is none of auto, on, off"));
}

TEST(NodeConfigTelemetry, WhatItPrintsReadsBackTheSame) {
  NodeConfig config = ParsedTelemetry(kEveryKey);
  config.telemetry.counters_file.clear();
  config.telemetry.counters_map.clear();
  config.telemetry.counters = {{"DCGM_FI_DEV_GPU_TEMP", "gauge", "It's \"hot\", in °C: \\ #1"},
                               {"DCGM_FI_DRIVER_VERSION", "label", ""}};
  config.usage.file_size = base::Bytes{65537};
  config.usage.idle_below = 0.1 + 0.2;
  config.telemetry.interval = std::chrono::nanoseconds(1'000'000'001);
  const std::string text = ToYaml(config);
  const auto again = ParseNodeConfig(text, "printed");
  ASSERT_TRUE(again.ok()) << again.error().message() << text;
  EXPECT_EQ(again->telemetry, config.telemetry);
  EXPECT_EQ(again->usage, config.usage);
  EXPECT_EQ(again->http, config.http);
  EXPECT_EQ(ToYaml(*again), text);
}

TEST(NodeConfigTelemetry, ReportsAllProblemsAtOnceWithPlaceAndHint) {
  const std::string error = TelemetryError(R"(telemetry:
  intervall: 1s
  interval: 10ms
  names: [dcmg, dcgm-4.7]
  exclude: ["a b", ""]
  hostLabel: HOSTNAME
  counters:
    - {field: DCGM_FI_DEV_GPU_TEMP, type: gague, help: x}
    - {field: DCGM_FI_DEV_GPU_TEMP, type: gauge, hlep: x}
    - {type: counter}
  countersFile: mine.csv
  countersConfigMap: gpu/metrics
  errorsWindow: 300000
  holderLabels: ["app=x"]
  jobDirectory: jobs
usage: {dir: u, fileSize: 1Ki, files: 0, checkpoint: 0s, idleAfter: -1s, idleBelow: 2}
http: {connections: 0, deadline: 1h, webConfigFile: w, listen: nowhere}
)");
  for (const char* wanted :
       {"f:4:3: unknown key \"telemetry.intervall\"; did you mean \"interval\"?",
        "f:5:13: telemetry.interval: is 10ms, outside of 100ms to 1h",
        "f:6:11: telemetry.names: \"dcmg\" is none of accelerator, dcgm, dcgm-4.7; did you mean "
        "\"dcgm\"?",
        "f:7:13: telemetry.exclude[0]: \"a b\" cannot match any family of metrics",
        "f:7:20: telemetry.exclude[1]: \"\" cannot match any family",
        "f:8:14: telemetry.hostLabel: \"HOSTNAME\" is none of none, Hostname, hostname, both",
        "f:10:43: telemetry.counters[0].type: \"gague\" is none of gauge, counter, label",
        "unknown key \"telemetry.counters[1].hlep\"; did you mean \"help\"?",
        "telemetry.counters[2].field is missing",
        "f:11:15: telemetry.counters[1].field: \"DCGM_FI_DEV_GPU_TEMP\" appears twice; a family "
        "has one type and one help",
        "f:10:5: telemetry.counters: says what telemetry.countersFile and "
        "telemetry.countersConfigMap say, too",
        "f:13:17: telemetry.countersFile: \"mine.csv\" must be an absolute path",
        "f:14:22: telemetry.countersConfigMap: \"gpu/metrics\" is not a ConfigMap: write "
        "NAMESPACE:NAME",
        "f:15:17: telemetry.errorsWindow: \"300000\" is not a duration",
        "f:16:18: telemetry.holderLabels[0]: \"app=x\" cannot match any key of a label",
        "f:17:17: telemetry.jobDirectory: \"jobs\" must be an absolute path",
        "f:18:14: usage.dir: \"u\" must be an absolute path",
        "f:18:27: usage.fileSize: is 1 KiB, outside of 64 KiB to 4 GiB",
        "usage.files: is 0, outside of 1 to 10000",
        "usage.checkpoint: is 0s, outside of 1s to 1d",
        "usage.idleAfter",
        "usage.idleBelow",
        "http.connections: is 0, outside of 1 to 4096",
        "http.deadline: is 1h, outside of 100ms to 10m",
        "http.webConfigFile: \"w\" must be an absolute path",
        "http.listen: \"nowhere\" is not an address to listen on"})
    EXPECT_THAT(error, HasSubstr(wanted));
}

TEST(NodeConfigTelemetry, SaysThatNoNameMeansNoPage) {
  EXPECT_THAT(
      TelemetryError("telemetry: {names: []}\n"),
      HasSubstr("f:3:20: telemetry.names: is empty; name at least one of accelerator, dcgm"));
  EXPECT_THAT(TelemetryError("telemetry: {names: [dcgm, dcgm]}\n"),
              HasSubstr("f:3:27: telemetry.names[1]: \"dcgm\" is named twice"));
}

// A flag's value has not passed a reader.
TEST(NodeConfigTelemetry, ValidateHoldsTimesThatFlagsSetToTheirLimits) {
  NodeConfig config;
  config.telemetry.interval = 1ms;
  config.telemetry.errors_window = 48h;
  ASSERT_FALSE(Validate(config).ok());
  EXPECT_THAT(Validate(config).error().message(),
              HasSubstr("telemetry.interval: is 1ms, outside of 100ms to 1h"));
  EXPECT_THAT(Validate(config).error().message(),
              HasSubstr("telemetry.errorsWindow: is 2d, outside of 1s to 1d"));
}

TEST(NodeConfigTelemetry, AllButTheFolderOfRecordsAndTheAddressChangesAtOnce) {
  for (const ConfigChange& change : Changes({}, ParsedTelemetry(kEveryKey))) {
    const bool later = change.key == "usage.dir" || change.key == "http.listen" ||
                       change.key == "http.connections" || change.key == "http.deadline";
    EXPECT_EQ(change.effect, later ? Effect::kRestart : Effect::kNow) << change.key;
  }
  EXPECT_EQ(EffectOf("http.webConfigFile"), Effect::kNow);
}

}  // namespace
}  // namespace penstock::api
