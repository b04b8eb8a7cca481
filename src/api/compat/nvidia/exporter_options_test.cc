#include "api/compat/nvidia/exporter_options.h"

#include <array>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api::compat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

/// Translates these as flags, in this order.
base::Result<Translation> TranslatedOptions(
    const std::vector<std::pair<std::string, std::string>>& flags, const std::string& text = "",
    const NodeConfig& base = {}) {
  std::vector<Given> given;
  for (const auto& [flag, value] : flags) given.push_back({flag, value, flag});
  return TranslateExporter(text, "exporter.yaml", given, base);
}

Translation Well(const std::vector<std::pair<std::string, std::string>>& flags,
                 const std::string& text = "", const NodeConfig& base = {}) {
  auto translation = TranslatedOptions(flags, text, base);
  EXPECT_TRUE(translation.ok()) << (translation.ok() ? "" : translation.error().message());
  return translation.ok() ? *std::move(translation) : Translation{};
}

std::string OptionsError(const std::vector<std::pair<std::string, std::string>>& flags,
                         const std::string& text = "") {
  const auto translation = TranslatedOptions(flags, text);
  return translation.ok() ? "" : translation.error().message();
}

TEST(ExporterOptions, NothingSaidChangesNothing) {
  const Translation nothing = Well({});
  EXPECT_EQ(ToYaml(nothing.config), ToYaml(NodeConfig{}));
  EXPECT_THAT(nothing.remarks, IsEmpty());
  EXPECT_THAT(nothing.not_yet, IsEmpty());
}

TEST(ExporterOptions, MeanWhatTheySay) {
  const Translation said =
      Well({{"--collectors", "/etc/dcgm-exporter/mine.csv"},
            {"--configmap-data", "gpu:metrics"},
            {"--address", ":9401"},
            {"--web-config-file", "/etc/web.yaml"},
            {"--web-write-timeout", "30s"},
            {"--collect-interval", "1500"},
            {"--kubernetes", "false"},
            {"--kubernetes-enable-pod-uid", "true"},
            {"--kubernetes-virtual-gpus", "1"},
            {"--use-old-namespace", "T"},
            {"--no-hostname", "true"},
            {"--replace-blanks-in-model-name", "true"},
            {"--xid-count-window-size", "60000"},
            {"--clock-events-count-window-size", "120000"},
            {"--hpc-job-mapping-dir", "/run/jobs"},
            {"--pod-resources-kubelet-socket", "/k/pod-resources/kubelet.sock"}});
  const TelemetryConfig& telemetry = said.config.telemetry;
  EXPECT_EQ(telemetry.counters_file, "/etc/dcgm-exporter/mine.csv");
  EXPECT_EQ(telemetry.counters_map, "gpu:metrics");
  EXPECT_EQ(said.config.http.listen, ":9401");
  EXPECT_EQ(said.config.http.web_config_file, "/etc/web.yaml");
  EXPECT_EQ(said.config.http.deadline, 30s);
  EXPECT_EQ(telemetry.interval, 1500ms);
  EXPECT_FALSE(telemetry.holders);
  EXPECT_TRUE(telemetry.pod_uid);
  EXPECT_EQ(telemetry.virtual_gpus, Switch::kOn);
  EXPECT_TRUE(telemetry.old_names);
  EXPECT_EQ(telemetry.host_label, HostLabel::kNone);
  EXPECT_TRUE(telemetry.blanks_replaced);
  EXPECT_EQ(telemetry.errors_window, 1min);
  EXPECT_EQ(telemetry.clock_events_window, 2min);
  EXPECT_EQ(telemetry.job_directory, "/run/jobs");
  EXPECT_EQ(said.config.paths.kubelet_dir, "/k");
  EXPECT_THAT(said.remarks, IsEmpty());
  EXPECT_THAT(said.not_yet, IsEmpty());
  EXPECT_TRUE(Validate(said.config).ok());
}

TEST(ExporterOptions, SystemdsSocketsCountMoreThanTheAddress) {
  EXPECT_EQ(Well({{"--web-systemd-socket", "true"}, {"--address", ":9400"}}).config.http.listen,
            "systemd:");
  EXPECT_EQ(Well({{"--web-systemd-socket", "false"}, {"--address", ":9400"}}).config.http.listen,
            ":9400");
}

TEST(ExporterOptions, PodLabelsNeedTheirSwitch) {
  EXPECT_THAT(Well({{"--kubernetes-enable-pod-labels", "true"}}).config.telemetry.holder_labels,
              ElementsAre("*"));
  const std::string patterns = "^app$,^team(-name)?$ , app\\.kubernetes\\.io/.*";
  EXPECT_THAT(Well({{"--kubernetes-pod-label-allowlist-regex", patterns},
                    {"--kubernetes-enable-pod-labels", "true"}})
                  .config.telemetry.holder_labels,
              ElementsAre("app", "team", "team-name", "*app.kubernetes.io/*"));
  const Translation alone = Well({{"--kubernetes-pod-label-allowlist-regex", patterns}});
  EXPECT_THAT(alone.config.telemetry.holder_labels, IsEmpty());
  EXPECT_THAT(alone.remarks, ElementsAre("--kubernetes-pod-label-allowlist-regex: has no effect "
                                         "without --kubernetes-enable-pod-labels"));
  NodeConfig base;
  base.telemetry.holder_labels = {"app"};
  EXPECT_THAT(Well({}, "", base).config.telemetry.holder_labels, ElementsAre("app"));
  EXPECT_THAT(
      Well({{"--kubernetes-enable-pod-labels", "false"}}, "", base).config.telemetry.holder_labels,
      IsEmpty());
  EXPECT_THAT(OptionsError({{"--kubernetes-enable-pod-labels", "true"},
                            {"--kubernetes-pod-label-allowlist-regex", "^[a-z]+$"}}),
              HasSubstr("--kubernetes-pod-label-allowlist-regex: \"^[a-z]+$\" has a character "
                        "class, \"[...]\", which a glob cannot express"));
}

TEST(ExporterOptions, TheLastOfAFlagCountsAndTheOthersAreNotLookedAt) {
  EXPECT_EQ(
      Well({{"--collect-interval", "x"}, {"--collect-interval", "2000"}}).config.telemetry.interval,
      2s);
}

TEST(ExporterOptions, SayAllThatIsWrongByTheirNames) {
  const std::array<std::array<const char*, 3>, 17> cases = {{
      {"--collect-interval", "30s",
       "--collect-interval: \"30s\" is not a number of milliseconds from 1 to 86400000"},
      {"--collect-interval", "0", "is not a number of milliseconds"},
      {"--collect-interval", "-1", "is not a number of milliseconds"},
      {"--xid-count-window-size", "", "is not a number of milliseconds"},
      {"--kubernetes", "yes", "--kubernetes: \"yes\" is none of true, false"},
      {"--kubernetes-gpu-id-type", "uuid", "\"uuid\" is none of uid, device-name"},
      {"--devices", "a", "--devices: \"a\" is not a choice of devices: write f, g, i or g+i"},
      {"--devices", "f+g", "is not a choice of devices"},
      {"--devices", "g:", "is not a choice of devices"},
      {"--devices", "g:3-1", "is not a choice of devices"},
      {"--devices", "g+g", "is not a choice of devices"},
      {"--switch-devices", "x", "--switch-devices: \"x\" is not a choice of devices"},
      {"--pod-resources-kubelet-socket", "/x/kubelet.sock",
       "does not end with /pod-resources/kubelet.sock"},
      {"--log-format", "xml", "\"xml\" is none of text, json"},
      {"--web-write-timeout", "10", "is not a duration"},
      {"--collectors", "", "--collectors: must not be empty"},
      {"--kubernetes-pod-label-allowlist-regex", "(", "a \"(\" without its \")\""},
  }};
  std::vector<std::pair<std::string, std::string>> two;
  for (const auto& [flag, value, wanted] : cases) {
    EXPECT_THAT(OptionsError({{flag, value}}), HasSubstr(wanted)) << flag << " " << value;
    if (two.size() < 2 && (two.empty() || two[0].first != flag)) two.emplace_back(flag, value);
  }
  const std::string both = OptionsError(two);
  for (const auto& [flag, value] : two) EXPECT_THAT(both, HasSubstr(flag + ": "));
}

TEST(ExporterOptions, ChoicesOfDevicesAreUnderstoodAndSaidUnavailable) {
  for (const char* all : {"f"}) EXPECT_THAT(Well({{"--devices", all}}).remarks, IsEmpty());
  for (const char* kind : {"g", "i", "g+i", "i+g"}) {
    EXPECT_THAT(Well({{"--devices", kind}}).remarks, ElementsAre(HasSubstr("has no effect")))
        << kind;
    EXPECT_THAT(Well({{"--devices", kind}}).not_yet, IsEmpty()) << kind;
  }
  for (const char* some : {"g:0", "g:0,2-4", "i:1", "g:0+i", "g+i:0-6"})
    EXPECT_THAT(
        Well({{"--devices", some}}).not_yet,
        ElementsAre(HasSubstr("selection by number is not supported; all devices are shown")))
        << some;
}

TEST(ExporterOptions, WhatHasNoMeaningIsARemarkThatSaysWhyButForTheDefault) {
  EXPECT_THAT(Well({{"--remote-hostengine-info", "localhost:5555"}}).remarks,
              ElementsAre("--remote-hostengine-info: has no effect: DCGM is not used, the driver "
                          "is read directly"));
  for (const char* here :
       {"", "127.0.0.1:5555", "[::1]:5555", "tcp://localhost:5555", "unix:///run/nv-hostengine"})
    EXPECT_THAT(Well({{"--remote-hostengine-info", here}}).not_yet, IsEmpty()) << here;
  for (const char* elsewhere :
       {"gpu-2:5555", "tcp://10.0.0.2:5555", "vsock://3:5555", "nvidia-dcgm"})
    EXPECT_THAT(Well({{"--remote-hostengine-info", elsewhere}}).not_yet,
                ElementsAre("--remote-hostengine-info: \"" + std::string(elsewhere) +
                            "\": DCGM is not used; the page shows the GPUs of this machine. For "
                            "another machine, run an agent there"))
        << elsewhere;
  EXPECT_THAT(Well({{"--dcgm-log-level", "NONE"},
                    {"--enable-dcgm-log", "false"},
                    {"--dump-compression", "true"},
                    {"--log-format", "text"},
                    {"--devices", "f"},
                    {"--kubernetes-gpu-id-type", "uid"},
                    {"--nvidia-resource-names", ""}})
                  .remarks,
              IsEmpty());
  EXPECT_THAT(Well({{"--dump-compression", "false"}}).remarks,
              ElementsAre(HasSubstr("--dump-compression: has no effect")));
}

TEST(ExporterOptions, WhatIsUnavailableIsSaidByName) {
  for (const auto& [flag, value] :
       std::vector<std::pair<std::string, std::string>>{{"--kubernetes-enable-dra", "true"},
                                                        {"--fake-gpus", "true"},
                                                        {"--container-labels", "true"}})
    EXPECT_THAT(Well({{flag, value}}).not_yet, ElementsAre(HasSubstr(flag + ": "))) << flag;
  EXPECT_THAT(Well({{"--kubernetes-enable-dra", "false"}}).not_yet, IsEmpty());
}

TEST(ExporterOptions, EveryOneTakesWhatItMeansOrSaysWhyNot) {
  std::set<std::string_view> names;
  for (const ExporterOption& option : ExporterOptions()) {
    EXPECT_FALSE(option.environment.empty()) << option.flags.front();
    EXPECT_TRUE(names.insert(option.environment).second) << option.environment;
    for (const std::string_view flag : option.flags) EXPECT_TRUE(names.insert(flag).second) << flag;
    EXPECT_TRUE(!option.on_off ||
                TranslatedOptions({{std::string(option.flags.front()), "true"}}).ok())
        << option.flags.front();
  }
  EXPECT_EQ(ExporterOptions().size(), 47u);
}

TEST(ExporterOptions, AreUnderstoodAsGoWritesThem) {
  const std::vector<std::string> arguments = {
      "-f",         "/x.csv", "-collectors=/y.csv", "-rbmn", "-k=false", "--n", "--config", "f",
      "-r=host:55", "--rbmn", "-unknown",           "-",     "--",       "-x"};
  EXPECT_THAT(
      FromGoFlags(arguments),
      ElementsAre("--collectors", "/x.csv", "--collectors=/y.csv", "--replace-blanks-in-model-name",
                  "--kubernetes=false", "--no-hostname", "--config", "f",
                  "--remote-hostengine-info=host:55", "--replace-blanks-in-model-name", "-unknown",
                  "-", "--", "--xid-count-window-size"));
}

TEST(ExporterOptions, SoAreTheDevicePluginsWithOneDash) {
  const std::vector<std::string> arguments = {
      "-mig-strategy=none", "-device-list-strategy", "cdi-cri",        "-gds-enabled",
      "-driver-root=/x",    "-no-such-flag",         "--mig-strategy", "-container-driver-root=/y"};
  EXPECT_THAT(FromGoFlags(arguments),
              ElementsAre("--mig-strategy=none", "--device-list-strategy", "cdi-cri",
                          "--gds-enabled", "--driver-root=/x", "-no-such-flag", "--mig-strategy",
                          "--container-driver-root=/y"));
}

TEST(ExporterOptions, KnowWhetherDebuggingWasAskedFor) {
  EXPECT_FALSE(SaysDebug({}));
  EXPECT_TRUE(SaysDebug(std::vector<Given>{{"--debug", "true", ""}}));
  EXPECT_FALSE(SaysDebug(std::vector<Given>{{"--debug", "true", ""}, {"--debug", "false", ""}}));
}

TEST(ExporterConfig, IsReportedFromTheOtherDocuments) {
  for (const char* text : {"version: 1\nmetrics: {file: /x}\n", "version: 2\n", "version: 1\n",
                           "metrics: {file: /x}\n", "collections: []\n"})
    EXPECT_EQ(Recognise(text), Document::kExporter) << text;
  for (const char* text :
       {"version: v1\n", "version: 1\nflags: {}\n", "version: 1\nsharing: {timeSlicing: {}}\n", ""})
    EXPECT_EQ(Recognise(text), Document::kDevicePlugin) << text;
  for (const char* text : {"apiVersion: penstock.io/v1alpha1\nmetrics: {}\n",
                           "telemetry: {interval: 1s}\n", "usage: {}\n"})
    EXPECT_EQ(Recognise(text), Document::kNodeConfig) << text;
}

TEST(ExporterConfig, OfVersionOneIsTaken) {
  const Translation said = Well({}, R"(version: 1
metrics:
  file: /etc/dcgm-exporter/default-counters.csv
collection:
  interval: 45s
  watchGroups:
    - name: fast
      interval: 5s
      fields: [DCGM_FI_DEV_GPU_TEMP]
)");
  EXPECT_EQ(said.config.telemetry.counters_file, "/etc/dcgm-exporter/default-counters.csv");
  EXPECT_EQ(said.config.telemetry.interval, 45s);
  EXPECT_THAT(said.remarks, ElementsAre(HasSubstr("collection.watchGroups: has no effect")));
}

TEST(ExporterConfig, OfVersionTwoIsTaken) {
  const Translation said = Well({}, R"(version: 2
metrics:
  enableExporterMetrics: true
  fields:
    - {name: DCGM_FI_DEV_GPU_TEMP, prometheusType: gauge, help: GPU temperature (in C).}
    - {name: DCGM_FI_DRIVER_VERSION, prometheusType: label}
server: {maxConcurrentScrapes: 16}
sources: {dcgm: {watch: {maxKeepAge: 10m, maxKeepSamples: 0}, detectBindUnbind: {enabled: true, pollInterval: 1s}}}
collections:
  - {name: scrape, every: 20s, metrics: {include: ["*"]}}
  - {name: fast, every: 5s, metrics: {include: [DCGM_FI_DEV_GPU_TEMP]}, sources: {dcgm: {watch: {maxKeepSamples: 2}}}}
)");
  EXPECT_THAT(said.config.telemetry.counters,
              ElementsAre(MetricRow{"DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C)."},
                          MetricRow{"DCGM_FI_DRIVER_VERSION", "label", ""}));
  EXPECT_EQ(said.config.telemetry.interval, 20s);
  EXPECT_EQ(said.remarks.size(), 6u);
}

TEST(ExporterConfig, ItsSourceOfMetricsGivesWayToAFlags) {
  const std::string text =
      "version: 1\nmetrics: {fields: [{name: DCGM_FI_DEV_GPU_TEMP, prometheusType: "
      "gauge}]}\ncollection: {interval: 45s}\n";
  const Translation said = Well({{"--collectors", "/x.csv"}, {"--collect-interval", "1000"}}, text);
  EXPECT_THAT(said.config.telemetry.counters, IsEmpty());
  EXPECT_EQ(said.config.telemetry.counters_file, "/x.csv");
  EXPECT_EQ(said.config.telemetry.interval, 1s);
}

TEST(ExporterConfig, IsReadStrictly) {
  const std::string error = OptionsError({}, R"(version: 1
metric: {}
metrics: {file: /x, fields: [{name: A, prometheusType: gague}, {prometheusType: gauge, hlp: x}]}
collection: {interval: 1ms}
collections: []
)");
  for (const char* wanted :
       {"exporter.yaml:2:1: unknown key \"metric\"; did you mean \"metrics\"?",
        "metrics.fields: is set together with metrics.file; remove one of the two",
        "metrics.fields[0].prometheusType: \"gague\" is none of gauge, counter, label",
        "metrics.fields[1].name is missing", "unknown key \"metrics.fields[1].hlp\"",
        "collection.interval: is 1ms, outside of 100ms to 1h", "unknown key \"collections\""})
    EXPECT_THAT(error, HasSubstr(wanted));
  EXPECT_THAT(OptionsError({}, "version: 3\n"), HasSubstr("version: is 3, outside of 1 to 2"));
  EXPECT_THAT(OptionsError({}, "metrics: {fields: []}\n"), HasSubstr("version is missing"));
  EXPECT_THAT(OptionsError({}, "version: 2\ncollection: {}\n"),
              HasSubstr("unknown key \"collection\""));
}

}  // namespace
}  // namespace penstock::api::compat
