#include "app/options.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/config/config_change.h"
#include "app/agent_command.h"
#include "app/command/parse.h"
#include "base/core/strings.h"
#include "base/core/testing/must.h"
#include "base/testing/build_tree.h"
#include "os/core/file.h"

namespace penstock::app {
namespace {

using ::testing::HasSubstr;

/// Parses a line with all options of the agent, and a verb.
base::Status ParseInto(Settings& settings, const std::string& line) {
  command::Verb program{.name = "program", .verbs = {{.name = "verb"}}};
  for (auto* options : {&NodeOptions, &PluginOptions, &ExporterOptions})
    for (command::Option& option : options(settings)) program.options.push_back(std::move(option));
  std::vector<std::string> words = base::Split(line, ' ');
  std::erase(words, "");
  const auto parsed = command::Parse(program, words);
  return parsed.ok() ? base::Status() : parsed.error();
}

Settings Parse(const std::string& line) {
  Settings settings;
  const base::Status parsed = ParseInto(settings, line);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message();
  return settings;
}

std::string Written(const std::string& content) {
  std::string path = testing::TempDir() + "/options_test_" +
                     testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml";
  EXPECT_TRUE(os::WriteFileAtomically(
                  path, "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\n" + content)
                  .ok());
  return path;
}

TEST(Options, AreUnderstoodBeforeAndAfterTheVerb) {
  for (const api::PathOption& option : api::PathOptions()) {
    const std::string flag(option.flag);
    for (const std::string& line :
         {flag + " /x/y verb", "verb " + flag + " /x/y", "verb " + flag + "=/x/y"}) {
      const auto config = Must(Resolve(Parse(line)));
      EXPECT_EQ(config.paths.*option.member, "/x/y") << line;
    }
  }
  EXPECT_EQ(Resolve(Parse("verb --node-name n --listen :1"))->node_name, "n");
  EXPECT_EQ(Resolve(Parse("verb --node-name n --listen :1"))->http.listen, ":1");
}

TEST(Options, SetWhatOneVendorHas) {
  EXPECT_EQ(api::OfVendor(Resolve(Parse("verb --nvml-library=/n.so"))->paths.libraries, "nvidia"),
            "/n.so");
  const std::string file = Written(
      "paths: {nvmlLibrary: /n.so}\nhealth: {policy: [{kind: ras-deferred, action: warn}]}\n");
  const auto resolved = ResolveAll(Parse("verb --config " + file));
  ASSERT_TRUE(resolved.ok()) << resolved.error().message();
  EXPECT_EQ(api::OfVendor(resolved->config.paths.libraries, "nvidia"), "/n.so");
  EXPECT_THAT(resolved->remarks, testing::ElementsAre(HasSubstr("use paths.libraries.nvidia")));
  EXPECT_EQ(resolved->config.cluster.config_map.node_label, "nvidia.com/device-plugin.config");
  const std::string own = Written("cluster: {config: {nodeLabel: example.com/config}}\n");
  EXPECT_EQ(Resolve(Parse("verb --config " + own))->cluster.config_map.node_label,
            "example.com/config");
}

/// What `penstock config show` of 0.1.0 printed of them.
TEST(Options, TakeFormerKeysWithTheirDefaultsForTheDefaults) {
  const std::string file = Written(
      "paths: {nvmlLibrary: \"\"}\nsharing: {mps: {root: /run/nvidia/mps, hostRoot: \"\"}}\n");
  const auto former = Resolve(Parse("verb --config " + file));
  ASSERT_TRUE(former.ok()) << former.error().message();
  const auto none = Resolve(Parse("verb --config " + Written("")));
  EXPECT_EQ(api::OfVendor(none->sharing.server_roots, "nvidia"), "/run/nvidia/mps");
  EXPECT_THAT(api::Changes(*none, *former), testing::IsEmpty());
}

TEST(Options, CountMoreThanTheFile) {
  const std::string file = Written("node: {name: from-file}\npaths: {runDir: /a, stateDir: /b}\n");
  const auto config = Must(Resolve(Parse("--config " + file + " --run-dir /c")));
  EXPECT_EQ(config.paths.run_dir, "/c");
  EXPECT_EQ(config.paths.state_dir, "/b");
  EXPECT_EQ(config.node_name, "from-file");
}

TEST(Options, TheLastOfAFlagCounts) {
  EXPECT_EQ(Resolve(Parse("--run-dir /a verb --run-dir /b"))->paths.run_dir, "/b");
}

TEST(Options, TakeRelativePathsFromTheWorkingFolder) {
  const auto config = Must(Resolve(Parse("--run-dir ./x/../run/ --driver-root /")));
  EXPECT_EQ(config.paths.run_dir, (std::filesystem::current_path() / "run").string());
  EXPECT_EQ(config.paths.driver_root, "/");
}

TEST(Options, ReportABadFileAndABadFlag) {
  EXPECT_THAT(Resolve(Parse("--config /does/not/exist")).error().message(),
              HasSubstr("/does/not/exist"));
  EXPECT_THAT(Resolve(Parse("--listen nowhere")).error().message(), HasSubstr("--listen"));
  EXPECT_THAT(Resolve(Parse("--config " + Written("pats: {}\n"))).error().message(),
              HasSubstr("did you mean \"paths\"?"));
}

TEST(Options, CanBeHandedToAnotherProgram) {
  EXPECT_THAT(ToArguments(Parse("--run-dir /r verb --listen off")),
              testing::ElementsAre("--listen", "off", "--run-dir", "/r"));
}

TEST(Options, SayHowTheClusterIsReached) {
  const auto config =
      Must(Resolve(Parse("--cluster off --kubeconfig k --namespace ns --config-map cm "
                         "--config-map-namespace other --config-map-default a "
                         "--config-map-fallback empty")));
  EXPECT_EQ(config.cluster.enabled, api::Switch::kOff);
  EXPECT_EQ(config.cluster.kubeconfig, (std::filesystem::current_path() / "k").string());
  EXPECT_EQ(config.cluster.namespace_name, "ns");
  EXPECT_EQ(config.cluster.config_map.name, "cm");
  EXPECT_EQ(config.cluster.config_map.namespace_name, "other");
  EXPECT_EQ(config.cluster.config_map.default_key, "a");
  EXPECT_THAT(config.cluster.config_map.fallbacks, testing::ElementsAre("empty"));
  Settings settings;
  EXPECT_THAT(ParseInto(settings, "--cluster maybe").error().message(),
              HasSubstr("--cluster: \"maybe\" is not one of auto, on, off"));
  EXPECT_THAT(ParseInto(settings, "--config-map-fallback first").error().message(),
              HasSubstr("\"first\" is not one of named, single, empty"));
}

TEST(Options, TakeEveryFlagOfTheDevicePluginOnceOrAsAliases) {
  for (const auto& option : api::compat::PluginOptions()) {
    for (const auto flag : option.flags) {
      const std::string line = std::string(flag) + " /x/device-plugins/kubelet.sock";
      const Settings settings = Parse(option.on_off ? std::string(flag) : line);
      if (flag == "--config-file") {
        EXPECT_EQ(settings.config_file, "/x/device-plugins/kubelet.sock");
      } else if (flag == "--node-name") {
        EXPECT_EQ(settings.flags.size(), 1u);
      } else {
        ASSERT_EQ(settings.plugin_flags.size(), 1u) << flag;
        EXPECT_EQ(settings.plugin_flags[0].flag, option.flags.front());
        if (option.on_off) { EXPECT_EQ(settings.plugin_flags[0].value, "true"); }
      }
    }
  }
  EXPECT_EQ(Parse("--pass-device-specs=false").plugin_flags.at(0).value, "false");
}

/// A lookup function for an environment with these variables.
std::function<const char*(const char*)> Having(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

TEST(Options, TheCommandLineCountsMoreThanTheEnvironmentAndThatMoreThanTheFile) {
  const std::string file = testing::TempDir() + "/options_test_precedence.yaml";
  ASSERT_TRUE(os::WriteFileAtomically(file,
                                      "flags: {plugin: {deviceIDStrategy: index}, "
                                      "nvidiaDriverRoot: /file, gfd: {outputFile: /file}}\n")
                  .ok());
  Settings settings = Parse("--output-file /line");
  TakeEnvironment(settings, Having({{"CONFIG_FILE", file},
                                    {"NVIDIA_DRIVER_ROOT", "/variable"},
                                    {"GFD_OUTPUT_FILE", "/variable"},
                                    {"MIG_STRATEGY", ""}}));
  const auto resolved = Must(ResolveAll(settings));
  EXPECT_EQ(resolved.origin, "file " + file);
  EXPECT_EQ(resolved.config.device_ids, api::DeviceIds::kIndex);
  EXPECT_EQ(resolved.config.paths.host_driver_root, "/variable");
  EXPECT_EQ(resolved.config.labels.features_file, "/line");
}

// The plugin's --driver-root is the host's path. Penstock's flag and these variables are the path
// at which the agent opens the driver.
TEST(Options, ReportWhereThingsAreOpenedFromWhereTheyLieOnTheHost) {
  Settings settings = Parse("--dev-root /opened --nvidia-dev-root /host");
  TakeEnvironment(settings, Having({{"CONTAINER_DRIVER_ROOT", "/driver-root"},
                                    {"NVIDIA_DRIVER_ROOT", "/run/nvidia/driver"}}));
  auto config = Must(Resolve(settings));
  EXPECT_EQ(config.paths.driver_root, "/driver-root");
  EXPECT_EQ(config.paths.dev_root, "/opened");
  EXPECT_EQ(config.paths.host_driver_root, "/run/nvidia/driver");
  EXPECT_EQ(config.paths.host_dev_root, "/host");
  settings.flags["--driver-root"] = "/mine";
  EXPECT_EQ(Resolve(settings)->paths.driver_root, "/mine");
}

TEST(Options, OnTheDevicePluginsOwnCommandLinesTheRootIsTheHosts) {
  const auto theirs =
      Must(ResolveAll(Parse("--driver-root /run/nvidia/driver --mig-strategy none --node-name n")));
  EXPECT_EQ(theirs.config.paths.host_driver_root, "/run/nvidia/driver");
  EXPECT_EQ(theirs.config.paths.driver_root, "/");
  EXPECT_THAT(theirs.remarks, testing::Contains(HasSubstr("interpreted as --nvidia-driver-root")));
  const auto both = ResolveAll(
      Parse("--driver-root /run/nvidia/driver --driver-root-ctr-path /driver-root --dev-root /"));
  EXPECT_EQ(both->config.paths.host_driver_root, "/run/nvidia/driver");
  EXPECT_EQ(both->config.paths.driver_root, "/driver-root");
  EXPECT_EQ(both->config.paths.host_dev_root, "/");
  // Alone, beside its other name, or beside Penstock's flags it is the path at which the agent
  // opens the driver.
  for (const char* line : {"--driver-root /x", "--driver-root /x --nvidia-driver-root /y",
                           "--driver-root /x --mig-strategy none --run-dir /r"}) {
    const auto ours = ResolveAll(Parse(line));
    EXPECT_EQ(ours->config.paths.driver_root, "/x") << line;
    EXPECT_THAT(ours->remarks, testing::Not(testing::Contains(HasSubstr("--driver-root beside"))))
        << line;
  }
}

TEST(Options, AnEmptyKubeletSocketClosesTheKubeletsAllocator) {
  Settings settings;
  TakeEnvironment(settings, Having({{"KUBELET_SOCKET", ""}, {"NODE_NAME", "gpu-7"}}));
  EXPECT_EQ(Resolve(settings)->kubelet_allocator, api::Switch::kOff);
  EXPECT_EQ(Resolve(settings)->node_name, "gpu-7");
}

TEST(Options, NameTheVariableThatIsWrong) {
  Settings settings;
  TakeEnvironment(settings, Having({{"DEVICE_ID_STRATEGY", "name"}}));
  EXPECT_THAT(Resolve(settings).error().message(),
              HasSubstr("environment DEVICE_ID_STRATEGY: \"name\" is none of uuid, index"));
}

TEST(Options, AllAreHandedToAnotherProgram) {
  EXPECT_THAT(
      ToArguments(Parse("--kubeconfig /k --gds-enabled --device-list-strategy envvar,cdi-cri")),
      testing::ElementsAre("--kubeconfig", "/k", "--device-list-strategy=envvar,cdi-cri",
                           "--gds-enabled=true"));
}

TEST(Options, TakeEveryFlagOfTheExporterUnderAllItsNames) {
  for (const auto& option : api::compat::ExporterOptions()) {
    for (const auto flag : option.flags) {
      const Settings settings = Parse(std::string(flag) + (option.on_off ? "" : " /x"));
      ASSERT_EQ(settings.exporter_flags.size(), 1u) << flag;
      EXPECT_EQ(settings.exporter_flags[0].flag, option.flags.front());
      EXPECT_EQ(settings.exporter_flags[0].value, option.on_off ? "true" : "/x") << flag;
    }
  }
}

TEST(Options, NoFlagOfTheExporterIsOneOfOurs) {
  Settings settings;
  std::vector<std::string> names;
  for (auto* options : {&NodeOptions, &PluginOptions})
    for (const command::Option& option : options(settings))
      for (const std::string& name : command::NamesOf(option)) names.push_back(name);
  for (const auto& option : api::compat::ExporterOptions())
    for (const auto flag : option.flags)
      EXPECT_THAT(names, testing::Not(testing::Contains(std::string(flag))));
}

TEST(Options, TheExportersFlagsCountMoreThanItsEnvironmentAndThatMoreThanItsFile) {
  const std::string file = Written("");
  ASSERT_TRUE(os::WriteFileAtomically(
                  file, "version: 1\nmetrics: {file: /file.csv}\ncollection: {interval: 50s}\n")
                  .ok());
  Settings settings = Parse("-f /line.csv --web-config-file w.yaml");
  TakeEnvironment(settings, Having({{"DCGM_EXPORTER_CONFIG_FILE", file},
                                    {"DCGM_EXPORTER_COLLECTORS", "/variable.csv"},
                                    {"DCGM_EXPORTER_INTERVAL", "15000"},
                                    {"DCGM_EXPORTER_KUBERNETES", "true"},
                                    {"DCGM_EXPORTER_WEB_CONFIG_FILE", "/variable.yaml"},
                                    {"DCGM_EXPORTER_LISTEN", ":9400"}}));
  EXPECT_EQ(settings.config_file, file);
  const auto resolved = Must(ResolveAll(settings));
  EXPECT_EQ(resolved.config.telemetry.counters_file, "/line.csv");
  EXPECT_EQ(resolved.config.telemetry.interval, std::chrono::seconds(15));
  EXPECT_EQ(resolved.config.http.web_config_file,
            (std::filesystem::current_path() / "w.yaml").string());
  EXPECT_EQ(resolved.config.http.listen, ":9400");
  settings.flags["--listen"] = "off";
  EXPECT_EQ(Resolve(settings)->http.listen, "off");
}

// Users who migrate from dcgm-exporter get its page, not nine times as many series.
TEST(Options, WhatOnlyTheExportersUsersSayMeansItsNamesAlone) {
  using api::MetricNames;
  using Names = std::vector<MetricNames>;
  const Names both = {MetricNames::kExporter, MetricNames::kAccelerator},
              exporter = {MetricNames::kExporter};
  const auto names = [](const std::string& text, const Settings& settings) {
    const auto resolved = ResolveText(settings, text, "f");
    EXPECT_TRUE(resolved.ok()) << resolved.error().message();
    return resolved.ok() ? resolved->config.telemetry.names : Names{};
  };
  const std::string ours = "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\n";
  EXPECT_EQ(names("", {}), both);
  EXPECT_EQ(names("version: v1\n", Parse("--mig-strategy none")), both);
  EXPECT_EQ(names(ours + "telemetry: {interval: 5s}\n", {}), both);
  EXPECT_EQ(names(ours + "telemetry: {countersFile: /c.csv}\n", {}), exporter);
  EXPECT_EQ(names(ours + "telemetry: {countersConfigMap: \"gpu:metrics\"}\n", {}), exporter);
  EXPECT_EQ(
      names(
          ours + "telemetry: {counters: [{field: DCGM_FI_DEV_GPU_TEMP, type: gauge, help: hot}]}\n",
          {}),
      exporter);
  EXPECT_EQ(names("version: 1\ncollection: {interval: 5s}\n", {}), exporter);
  EXPECT_EQ(names("", Parse("-f /c.csv")), exporter);
  EXPECT_EQ(names("", Parse("--no-hostname")), exporter);
  Settings environment;
  TakeEnvironment(environment, Having({{"DCGM_EXPORTER_INTERVAL", "15000"}}));
  EXPECT_EQ(names("", environment), exporter);
  EXPECT_EQ(names(ours + "telemetry: {names: [dcgm, accelerator]}\n", Parse("-f /c.csv")), both)
      << "names that are asked for count";
}

TEST(Options, ReportWhatIsWrongOfThePluginAndTheExporterTogether) {
  Settings settings = Parse("-c soon --device-id-strategy name");
  TakeEnvironment(settings, Having({{"DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE", "long"}}));
  for (const char* wanted : {"--collect-interval: \"soon\"", "--device-id-strategy: \"name\"",
                             "environment DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE: \"long\""})
    EXPECT_THAT(Resolve(settings).error().message(), HasSubstr(wanted));
}

TEST(Options, TheExportersAreHandedToAnotherProgram) {
  EXPECT_THAT(
      ToArguments(Parse("-k -d g:0 -f /x.csv")),
      testing::UnorderedElementsAre("--kubernetes=true", "--devices=g:0", "--collectors=/x.csv"));
}

TEST(Options, CountersOfADocumentAreHeldAgainstTheFieldsThatThereAre) {
  EXPECT_THAT(
      Resolve(
          Parse("--config " +
                Written("telemetry: {counters: [{field: DCGM_FI_DEV_GPU_TMEP, type: gauge}]}\n")))
          .error()
          .message(),
      HasSubstr("telemetry.counters[0]: there is no field \"DCGM_FI_DEV_GPU_TMEP\"; did you mean "
                "\"DCGM_FI_DEV_GPU_TEMP\"?"));
  EXPECT_EQ(
      Resolve(
          Parse("--config " +
                Written(
                    "telemetry: {counters: [{field: DCGM_FI_DEV_SM_CLOCK_HERTZ, type: gauge}]}\n")))
          ->telemetry.counters[0]
          .field,
      "DCGM_FI_DEV_SM_CLOCK");
}

TEST(Options, AnUnknownFlagIsAnsweredWithTheOneThatMayBeMeant) {
  AgentCommandLine line;
  const command::Verb agent = AgentCommand(line);
  EXPECT_EQ(command::Parse(agent, {"--colectors=/x", "nothing", "-9"}).error().message(),
            "penstock-agent: unknown option \"--colectors\"; did you mean \"--collectors\"?\n"
            "penstock-agent: unexpected argument \"nothing\"\n"
            "penstock-agent: unknown option \"-9\"\nSee penstock-agent --help");
}

TEST(Options, TheExportersReferenceNamesEachOfItsSettings) {
  const auto text =
      Must(os::ReadFile(base::SourcePath("docs/reference/dcgm-exporter.md"), 1u << 20));
  for (const auto& option : api::compat::ExporterOptions()) {
    for (const auto flag : option.flags)
      EXPECT_THAT(text, HasSubstr("`" + std::string(flag == "--rbmn" ? "-rbmn" : flag) + "`"))
          << flag;
    EXPECT_THAT(text, HasSubstr("`" + std::string(option.environment) + "`"));
  }
}

}  // namespace
}  // namespace penstock::app
