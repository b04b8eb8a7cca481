#include "app/agent/configuration.h"

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/config/config_revision.h"
#include "app/kept_configuration.h"
#include "base/core/testing/must.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"
#include "os/watch/watch.h"

namespace penstock::app {
namespace {
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// A configuration that waits for the Node's labels says so after this time.
constexpr base::Duration kLabelsTake = 20ms;
const std::string kOurs = "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\n";

/// A configuration on its own loop, which runs until an awaited condition holds.
class ConfigurationTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_ / name; }

  void Write(const std::string& text, const std::string& name = "config") {
    ASSERT_TRUE(os::WriteFileAtomically(Path(name), text).ok());
  }
  /// Swaps the link to the folder of a mounted ConfigMap for one to a new folder with this file.
  void Mount(const std::string& version, const std::string& name, const std::string& text) {
    fs::create_directories(Path(version));
    Write(text, version + "/" + name);
    fs::create_directory_symlink(version, Path("..data_tmp"));
    fs::rename(Path("..data_tmp"), Path("..data"));
  }

  /// Starts it like the agent.
  void Start() {
    settings_.config_file = file_;
    auto start = Must(ResolveAll(settings_));
    configuration_ =
        std::make_unique<Configuration>(loop_, loop_, settings_, std::move(start), kLabelsTake);
    configuration_->Follow();
  }
  void StartWith(const std::string& text) {
    Write(text);
    file_ = Path("config");
    Start();
  }

  /// Runs the loop until the condition holds; a minute without it is a failure.
  void RunUntil(const std::function<bool()>& holds) {
    const base::TimerId late = loop_.PostAfter(60s, [] {
      ADD_FAILURE() << "timed out waiting";
      std::abort();
    });
    std::function<void()> look = [&] {
      if (holds()) {
        loop_.Cancel(late);
        return loop_.Stop();
      }
      loop_.PostAfter(1ms, look);
    };
    loop_.Post(look);
    loop_.Run();
  }

  /// An action, a condition to wait for, and a check. All steps run in one run of the loop, which
  /// cannot be run twice.
  struct Step {
    std::function<void()> act;
    std::function<bool()> holds;
    std::function<void()> look = [] {};
  };
  void RunThrough(const std::vector<Step>& steps) {
    std::size_t at = 0;
    bool acted = false;
    RunUntil([&] {
      if (!std::exchange(acted, true)) steps[at].act();
      if (!steps[at].holds()) return false;
      steps[at].look();
      acted = false;
      return ++at == steps.size();
    });
  }

  api::NodeConfig Config() const { return configuration_->published().Get()->config; }
  api::ConfigurationReport Report() const { return configuration_->published().Get()->report; }

  const os::TemporaryFolder folder_;
  std::string file_;
  Settings settings_;
  os::Loop loop_{"test"};
  std::unique_ptr<Configuration> configuration_;
};

api::RemoteConfig Remote(const std::string& text) {
  return {.origin = "ConfigMap gpu/config, key a100 (label nvidia.com/device-plugin.config)",
          .text = text};
}

TEST_F(ConfigurationTest, BeginsWithWhatTheAgentWasStartedWith) {
  settings_.flags["--node-name"] = "n";
  Start();
  EXPECT_EQ(Config().node_name, "n");
  EXPECT_EQ(Report().origin, "defaults");
  EXPECT_EQ(Report().problem, "");
  EXPECT_EQ(configuration_->reloads().applied, 0u);
  EXPECT_TRUE(configuration_->reloads().last_successful);
}

TEST_F(ConfigurationTest, FollowsItsFile) {
  StartWith("version: v1\n");
  EXPECT_EQ(Report().origin, "file " + Path("config"));
  loop_.PostAfter(20ms,
                  [this] { Write("version: v1\nflags: {plugin: {deviceIDStrategy: index}}\n"); });
  RunUntil([this] { return Config().device_ids == api::DeviceIds::kIndex; });
  EXPECT_EQ(configuration_->reloads().applied, 1u);
}

TEST_F(ConfigurationTest, AFileThatChangesBeforeItIsFollowedSaysItsRemarks) {
  StartWith("version: v1\n");
  Write("version: v1\nflags: {deviceDiscoveryStrategy: vfio}\n");
  RunUntil([this] { return !Report().not_yet.empty(); });
}

TEST_F(ConfigurationTest, AFileOfAnotherRevisionIsForTheAgentThatComesNext) {
  const std::string own = kOurs + "health: {poll: 1s}\n", next = kOurs + "health: {poll: 2s}\n";
  settings_.config_revision = api::ConfigRevision(own);
  settings_.flags["--state-dir"] = folder_.path();
  StartWith(own);
  configuration_->Serve({}, {});
  const auto saved = [this] { return fs::exists(KeptConfigurationPath(folder_.path())); };
  RunThrough({{[] {}, saved},
              {[&] { Write(next), configuration_->Reload(); },
               [this] { return configuration_->reloads().applied == 1; },
               [&] { EXPECT_EQ(Config().health.poll, 1s); }}});
  EXPECT_EQ(Must(ResolveForStart(settings_)).config.health.poll, 1s) << "the agent starts again";
  settings_.config_revision = api::ConfigRevision(next);
  EXPECT_EQ(Must(ResolveForStart(settings_)).config.health.poll, 2s);
}

TEST_F(ConfigurationTest, WithoutATextOfItsRevisionTheFileCounts) {
  settings_.config_revision = "1";
  StartWith(kOurs + "health: {poll: 1s}\n");
  EXPECT_EQ(Config().health.poll, 1s);
  loop_.PostAfter(20ms, [this] { Write(kOurs + "health: {poll: 2s}\n"); });
  RunUntil([this] { return Config().health.poll == 2s; });
}

// NVIDIA/k8s-device-plugin#364: "error creating symlink: file exists", and the plugin ends.
TEST_F(ConfigurationTest, Issue364FollowsALinkThatIsSwappedAsAMountedConfigMapsAre) {
  Mount("..1", "any", "version: v1\n");
  fs::create_symlink("..data/any", Path("any"));
  file_ = Path("any");
  Start();
  loop_.PostAfter(20ms, [&] { Mount("..2", "any", kOurs + "health: {poll: 1s}\n"); });
  RunUntil([this] { return Config().health.poll == 1s; });
}

TEST_F(ConfigurationTest, ABadFileChangesNothingAndSaysAllThatIsWrongUntilItIsMended) {
  StartWith("version: v1\nflags: {plugin: {deviceIDStrategy: index}}\n");
  loop_.PostAfter(20ms, [this] {
    Write("version: v1\nflags: {migStrategy: nine, plugin: {deviceIDStrategy: uid}}\n");
  });
  RunUntil([this] { return !Report().problem.empty(); });
  EXPECT_EQ(Config().device_ids, api::DeviceIds::kIndex);
  EXPECT_THAT(Report().problem,
              HasSubstr("config:2:22: flags.migStrategy: \"nine\" is none of none, single, mixed"));
  EXPECT_THAT(Report().problem,
              HasSubstr("\"uid\" is none of uuid, index; did you mean \"uuid\"?"));
  EXPECT_EQ(Report().problem_origin, "file " + Path("config"));
  EXPECT_EQ(configuration_->reloads().refused, 1u);
  EXPECT_FALSE(configuration_->reloads().last_successful);
}

TEST_F(ConfigurationTest, AMendedFileIsInForceAndTheProblemForgotten) {
  StartWith("version: v1\n");
  loop_.PostAfter(20ms, [this] { Write("version: v2\n"); });
  bool mended = false;
  RunUntil([&] {
    if (!Report().problem.empty() && !std::exchange(mended, true))
      Write("version: v1\nflags: {gfd: {noTimestamp: true}}\n");
    return mended && Report().problem.empty();
  });
  EXPECT_FALSE(Config().labels.timestamp);
  EXPECT_TRUE(configuration_->reloads().last_successful);
}

TEST_F(ConfigurationTest, AFileThatIsTakenAwayLeavesInForceWhatItSaid) {
  StartWith("version: v1\nflags: {plugin: {deviceIDStrategy: index}}\n");
  loop_.PostAfter(20ms, [this] { fs::remove(Path("config")); });
  RunUntil([this] { return !Report().problem.empty(); });
  EXPECT_THAT(Report().problem, HasSubstr("No such file"));
  EXPECT_EQ(Config().device_ids, api::DeviceIds::kIndex);
}

TEST_F(ConfigurationTest, AFileThatIsEmptiedDoesNotPassForOneThatSaysNothing) {
  StartWith("version: v1\nflags: {plugin: {deviceIDStrategy: index}}\n");
  loop_.PostAfter(20ms, [this] { Write("\n"); });
  RunUntil([this] { return !Report().problem.empty(); });
  EXPECT_THAT(Report().problem, HasSubstr("is empty"));
  EXPECT_EQ(Config().device_ids, api::DeviceIds::kIndex);
}

TEST_F(ConfigurationTest, WhatARunningAgentCannotChangeWaitsForItsNextStartAndSaysSo) {
  StartWith(kOurs);
  loop_.PostAfter(20ms, [this] {
    Write(kOurs + "paths: {stateDir: /elsewhere}\nlabels: {timestamp: false}\n");
  });
  RunUntil([this] { return !Config().labels.timestamp; });
  EXPECT_EQ(Config().paths.state_dir, "/var/lib/penstock");
  EXPECT_THAT(Report().not_yet,
              ElementsAre("paths.stateDir: becomes \"/elsewhere\" at the next start of the agent"));
}

TEST_F(ConfigurationTest, ARequestStandsInThePlaceOfTheFileAndFlagsAboveBoth) {
  settings_.plugin_flags = {{"--no-timestamp", "true", "--no-timestamp"}};
  StartWith("version: v1\nflags: {plugin: {deviceIDStrategy: index}}\n");
  configuration_->SetRemote(
      Remote("version: v1\nflags: {gfd: {noTimestamp: false, machineTypeFile: /m}}\n"));
  EXPECT_EQ(Config().device_ids, api::DeviceIds::kUuid);
  EXPECT_EQ(Config().labels.machine_type_file, "/m");
  EXPECT_FALSE(Config().labels.timestamp);
  EXPECT_EQ(Report().origin,
            "ConfigMap gpu/config, key a100 (label nvidia.com/device-plugin.config)");

  configuration_->SetRemote({});
  RunUntil([this] { return Config().device_ids == api::DeviceIds::kIndex; });
  EXPECT_EQ(Report().origin, "file " + Path("config"));
}

TEST_F(ConfigurationTest, ADevicePluginsTextInTheClusterIsPutOnTopOfANodeConfigFile) {
  StartWith(kOurs + "health: {poll: 1s}\nlabels: {timestamp: false}\n");
  configuration_->SetRemote(Remote("flags: {plugin: {deviceIDStrategy: index}}\n"));
  EXPECT_EQ(Config().health.poll, 1s);
  EXPECT_EQ(Config().device_ids, api::DeviceIds::kIndex);
  EXPECT_FALSE(Config().labels.timestamp);
  configuration_->SetRemote(Remote(kOurs + "devicePlugin: {deviceIDStrategy: index}\n"));
  EXPECT_EQ(Config().health.poll, 5s);
}

TEST_F(ConfigurationTest, ARequestWithAProblemLeavesInForceWhatIs) {
  StartWith("version: v1\nflags: {plugin: {deviceIDStrategy: index}}\n");
  configuration_->SetRemote(
      {.origin = "ConfigMap gpu/config", .text = "", .problem = "has no key \"h100\""});
  EXPECT_EQ(Config().device_ids, api::DeviceIds::kIndex);
  EXPECT_EQ(Report().problem, "has no key \"h100\"");
  EXPECT_EQ(Report().problem_origin, "ConfigMap gpu/config");

  configuration_->SetRemote(Remote("flags: {gfd: {noTimestamp: true}}\n"));
  EXPECT_EQ(Report().problem, "");
  configuration_->SetRemote(Remote("flags: {gfd: {noTimestamp: never}}\n"));
  EXPECT_FALSE(Config().labels.timestamp);
  EXPECT_THAT(
      Report().problem,
      HasSubstr("ConfigMap gpu/config, key a100:1:28: flags.gfd.noTimestamp: is a string (never)"));
  EXPECT_FALSE(configuration_->reloads().last_successful);

  // The file does not replace it: the last remote configuration stays in force.
  configuration_->SetRemote({.origin = "ConfigMap gpu/config", .text = "", .problem = "is gone"});
  bool seen = false;
  const os::PathWatch watch(loop_, Path("config"), [&seen] { seen = true; });
  int turns = 10;  // turns of the loop, more than it takes to read the file and to apply it
  RunThrough({{[this] { Write("version: v1\n"); }, [&] { return seen && --turns == 0; }}});
  EXPECT_FALSE(Config().labels.timestamp);
  EXPECT_EQ(Report().problem, "is gone");
}

TEST_F(ConfigurationTest, WhatAConfigMapSaidLastIsInForceUntilItIsRead) {
  settings_.flags["--config-map"] = "mine";
  settings_.flags["--config-map-namespace"] = "gpu";
  Start();
  const api::ConfigMapConfig where = Config().cluster.config_map;
  configuration_->Serve(
      {.file = {},
       .config_map = KeptText{.from = "gpu/mine",
                              .origin = "ConfigMap gpu/mine, key a",
                              .text = "flags: {plugin: {deviceIDStrategy: index}}\n",
                              .since = ""}},
      where);
  EXPECT_EQ(configuration_->unknown(), "");
  EXPECT_EQ(Config().device_ids, api::DeviceIds::kIndex);
  EXPECT_THAT(Report().not_yet, ElementsAre(HasSubstr("not read since the agent started")));

  configuration_->SetRemote({.origin = "ConfigMap gpu/mine", .text = "", .problem = "is gone"});
  EXPECT_EQ(Config().device_ids, api::DeviceIds::kIndex)
      << "the previous configuration stays in force";
  EXPECT_THAT(Report().not_yet, IsEmpty());
}

TEST_F(ConfigurationTest, AConfigMapOfWhichNothingWasKeptIsNotKnownUntilItCanBeUsed) {
  settings_.flags["--config-map"] = "mine";
  settings_.flags["--config-map-namespace"] = "gpu";
  Start();
  configuration_->Serve(
      {.file = {},
       .config_map = KeptText{.from = "gpu/other", .origin = "", .text = "", .since = ""}},
      Config().cluster.config_map);
  EXPECT_EQ(configuration_->unknown(), "ConfigMap gpu/mine")
      << "the text of another ConfigMap is not used";
  EXPECT_THAT(Report().waiting, HasSubstr("has not been read yet"));
  configuration_->SetRemote(Remote("flags: {gfd: {noTimestamp: never}}\n"));
  EXPECT_NE(configuration_->unknown(), "");
  configuration_->SetRemote(Remote("flags: {gfd: {noTimestamp: true}}\n"));
  EXPECT_EQ(configuration_->unknown(), "");
  EXPECT_EQ(Report().waiting, "");
}

TEST_F(ConfigurationTest, AConfigMapCannotSayHowTheAgentReachesIt) {
  settings_.flags["--config-map"] = "mine";
  Start();
  configuration_->SetRemote(Remote(kOurs +
                                   "cluster: {events: off, config: {configMap: other}}\nhttp: "
                                   "{listen: off}\nlabels: {timestamp: false}\n"));
  EXPECT_FALSE(Config().labels.timestamp);
  EXPECT_EQ(Config().cluster.config_map.name, "mine");
  EXPECT_EQ(Config().cluster.events, api::Switch::kOn);
  EXPECT_EQ(Config().http.listen, "127.0.0.1:9400");
  EXPECT_THAT(
      Report().not_yet,
      ElementsAre(
          "http.listen: cannot be set in a ConfigMap; set it in the agent's own configuration",
          "cluster.events: cannot be set in a ConfigMap; set it in the agent's own configuration"));
}

// NVIDIA/gpu-operator#1144: an edit of the ConfigMap had no effect until the pods were restarted
// manually.
TEST_F(ConfigurationTest, Issue1144AnEditedConfigMapIsInForceAtOnce) {
  Start();
  configuration_->SetRemote(Remote("flags: {gfd: {noTimestamp: true}}\n"));
  EXPECT_FALSE(Config().labels.timestamp);
  configuration_->SetRemote(Remote("flags: {gfd: {noTimestamp: false}}\n"));
  EXPECT_TRUE(Config().labels.timestamp);
  configuration_->SetRemote({});
  EXPECT_EQ(Report().origin, "defaults");
}

TEST_F(ConfigurationTest, WhatNvidiasPluginPassesOverIsARemarkAndTheRestIsInForce) {
  Start();
  configuration_->SetRemote(
      Remote("flags: {gfd: {noTimestamp: true}}\nsharing: {timeSlicin: {}}\n"));
  EXPECT_FALSE(Config().labels.timestamp);
  EXPECT_EQ(Report().problem, "");
  EXPECT_THAT(
      Report().remarks,
      ElementsAre(
          "sharing.timeSlicin: is unknown and ignored; did you mean \"timeSlicing\"? (line 2)"));
  EXPECT_EQ(configuration_->reloads().remarks, 1u);

  std::string many = "version: v1\n";
  for (int i = 0; i < 30; ++i) many += "extra" + std::to_string(i) + ": 1\n";
  configuration_->SetRemote(Remote(many));
  EXPECT_THAT(Report().remarks, SizeIs(21));
  EXPECT_EQ(Report().remarks.back(), "and 10 more: run penstock config check to list them all");
  EXPECT_EQ(configuration_->reloads().remarks, 30u);

  configuration_->SetRemote(Remote("version: v1\n"));
  EXPECT_THAT(Report().remarks, IsEmpty());
}

TEST_F(ConfigurationTest, SaysWhatItCannotDoYetAndServesOn) {
  Start();
  configuration_->SetRemote(
      Remote("flags: {deviceDiscoveryStrategy: vfio}\n"
             "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}\n"));
  EXPECT_EQ(Report().problem, "");
  EXPECT_THAT(Report().not_yet, ElementsAre(HasSubstr("flags.deviceDiscoveryStrategy: ")));
  ASSERT_EQ(Config().sharing.rules.size(), 1u);
  EXPECT_EQ(Config().sharing.rules[0].replicas, 4);
}

TEST_F(ConfigurationTest, ProposesWithoutChangingAnything) {
  StartWith(kOurs);
  const auto proposal = Must(configuration_->Propose(
      kOurs + "labels: {timestamp: false}\npaths: {runDir: /r}\n", "new.yaml"));
  EXPECT_THAT(
      proposal.changes,
      ElementsAre(api::ConfigChange{"paths.runDir", "/run/penstock", "/r", api::Effect::kRestart},
                  api::ConfigChange{"labels.timestamp", "true", "false", api::Effect::kNow}));
  EXPECT_FALSE(proposal.config.labels.timestamp);
  EXPECT_EQ(proposal.config.paths.run_dir, "/run/penstock");
  EXPECT_EQ(proposal.after_restart.paths.run_dir, "/r");
  EXPECT_TRUE(Config().labels.timestamp);

  EXPECT_THAT(configuration_->Propose("version: v3\n", "new.yaml").error().message(),
              HasSubstr("new.yaml:1:10: version: is \"v3\""));
  EXPECT_EQ(Report().problem, "");
}

/// The fields that are shown.
std::vector<std::string> Fields(const api::NodeConfig& config) {
  std::vector<std::string> fields;
  for (const api::MetricRow& row : config.telemetry.counters) fields.push_back(row.field);
  return fields;
}

TEST_F(ConfigurationTest, AFileOfCountersCountsFromTheFirstPageOnAndIsFollowed) {
  Write("DCGM_FI_DEV_GPU_TEMP, gauge, hot\n", "c.csv");
  StartWith(kOurs + "telemetry: {countersFile: " + Path("c.csv") + "}\n");
  EXPECT_THAT(Fields(Config()), ElementsAre("DCGM_FI_DEV_GPU_TEMP"));
  EXPECT_EQ(Report().problem, "");
  loop_.PostAfter(20ms, [this] {
    ASSERT_TRUE(
        os::WriteFileAtomically(
            Path("c.csv"), "DCGM_FI_DEV_FB_USED, gauge, used\nDCGM_FI_DEV_SM_CLOCK, gauge, x\n")
            .ok());
  });
  RunUntil([this] { return Fields(Config()).size() == 2; });
  EXPECT_EQ(configuration_->reloads().applied, 1u);
}

// dcgm-exporter only compares the name of the file itself, and so misses the swap of links when a
// mounted ConfigMap changes.
TEST_F(ConfigurationTest, AFileOfCountersIsFollowedThroughTheSwapOfLinks) {
  Mount("..1", "metrics", "DCGM_FI_DEV_GPU_TEMP, gauge, hot\n");
  fs::create_symlink("..data/metrics", Path("metrics"));
  StartWith(kOurs + "telemetry: {countersFile: " + Path("metrics") + "}\n");
  loop_.PostAfter(20ms, [&] { Mount("..2", "metrics", "DCGM_FI_DEV_FB_USED, gauge, used\n"); });
  RunUntil([this] { return Fields(Config()) == std::vector<std::string>{"DCGM_FI_DEV_FB_USED"}; });
}

TEST_F(ConfigurationTest, ABadFileOfCountersChangesNothingAndIsSaidUntilItIsMended) {
  Write("DCGM_FI_DEV_GPU_TEMP, gauge, hot\n", "c.csv");
  StartWith(kOurs + "telemetry: {countersFile: " + Path("c.csv") + "}\n");
  RunThrough({{[&] { Write("DCGM_FI_DEV_GPU_TMEP, gauge, hot\n", "c.csv"); },
               [this] { return !Report().problem.empty(); },
               [this] {
                 EXPECT_EQ(Report().problem, Path("c.csv") +
                                                 ":1: there is no field \"DCGM_FI_DEV_GPU_TMEP\"; "
                                                 "did you mean \"DCGM_FI_DEV_GPU_TEMP\"?");
                 EXPECT_EQ(Report().problem_origin, "file " + Path("c.csv"));
                 EXPECT_THAT(Fields(Config()), ElementsAre("DCGM_FI_DEV_GPU_TEMP"));
                 EXPECT_EQ(configuration_->reloads().refused, 1u);
                 EXPECT_FALSE(configuration_->reloads().last_successful);
               }},
              {[this] { fs::remove(Path("c.csv")); },
               [this] { return Report().problem.find("No such file") != std::string::npos; },
               [this] { EXPECT_THAT(Fields(Config()), ElementsAre("DCGM_FI_DEV_GPU_TEMP")); }},
              {[&] { Write("DCGM_FI_DEV_FB_USED, gauge, x\n", "c.csv"); },
               [this] { return Report().problem.empty(); }}});
  EXPECT_THAT(Fields(Config()), ElementsAre("DCGM_FI_DEV_FB_USED"));
  EXPECT_TRUE(configuration_->reloads().last_successful);
}

TEST_F(ConfigurationTest, AFileOfCountersThatIsNotThereLeavesTheBuiltInListButForTheExportersOwn) {
  StartWith(kOurs + "telemetry: {countersFile: " + Path("nothing.csv") + "}\n");
  EXPECT_THAT(Fields(Config()), IsEmpty());
  EXPECT_THAT(Report().problem, HasSubstr("nothing.csv"));
  StartWith(kOurs + "telemetry: {countersFile: /etc/dcgm-exporter/dcp-metrics-included.csv}\n");
  EXPECT_THAT(Fields(Config()), IsEmpty());
  EXPECT_EQ(Report().problem, "");
}

TEST_F(ConfigurationTest, AFileOfCountersThatIsNamedNoMoreIsNoProblem) {
  StartWith(kOurs + "telemetry: {countersFile: " + Path("nothing.csv") + "}\n");
  EXPECT_FALSE(configuration_->reloads().last_successful);
  RunThrough({{[&] { Write(kOurs); }, [this] { return Report().problem.empty(); }}});
  EXPECT_TRUE(configuration_->reloads().last_successful);
}

TEST_F(ConfigurationTest, TheClustersCountersCountMoreThanTheFilesWhileTheyAreHad) {
  Write("DCGM_FI_DEV_GPU_TEMP, gauge, hot\n", "c.csv");
  StartWith(kOurs + "telemetry: {countersFile: " + Path("c.csv") +
            ", countersConfigMap: \"gpu:metrics\"}\n");
  const auto remote = [this](const std::string& text, const std::string& problem) {
    configuration_->SetRemoteCounters(
        {.origin = "ConfigMap gpu/metrics", .text = text, .problem = problem});
  };
  RunThrough(
      {{[&] { remote("", "there is no ConfigMap gpu/metrics"); },
        [this] { return !Report().problem.empty(); },
        [this] {
          EXPECT_EQ(Report().problem_origin, "ConfigMap gpu/metrics");
          EXPECT_THAT(Fields(Config()), ElementsAre("DCGM_FI_DEV_GPU_TEMP"));
        }},
       {[&] { remote("DCGM_FI_DEV_FB_USED, gauge, x\n", ""); },
        [this] { return Report().problem.empty(); },
        [this] { EXPECT_THAT(Fields(Config()), ElementsAre("DCGM_FI_DEV_FB_USED")); }},
       {[&] { remote("DCGM_FI_DEV_FB_USED, gague, x\n", ""); },
        [this] { return !Report().problem.empty(); },
        [this] {
          EXPECT_THAT(Report().problem, HasSubstr("ConfigMap gpu/metrics:1: type \"gague\""));
          EXPECT_THAT(Fields(Config()), ElementsAre("DCGM_FI_DEV_FB_USED"));
        }},
       {[&] { Write(kOurs + "telemetry: {countersFile: " + Path("c.csv") + "}\n"); },
        [this] { return Fields(Config()) == std::vector<std::string>{"DCGM_FI_DEV_GPU_TEMP"}; }}});
  EXPECT_EQ(Report().problem, "");
}

TEST_F(ConfigurationTest, WhatAFileOfCountersSaysIsNoChangeOfTheConfiguration) {
  Write("DCGM_FI_DEV_GPU_TEMP, gauge, hot\n", "c.csv");
  const std::string text = kOurs + "telemetry: {countersFile: " + Path("c.csv") + "}\n";
  StartWith(text);
  const auto proposal = Must(configuration_->Propose(text, "same.yaml"));
  EXPECT_THAT(proposal.changes, IsEmpty());
}

TEST_F(ConfigurationTest, AnEngineIsConfiguredOnceTheNodesLabelsLetIt) {
  const std::string text = kOurs + "containers: {configureEngine: runtime}\n";
  const auto engine = [this] { return Config().containers.configure_engine; };
  StartWith(text);
  EXPECT_EQ(engine(), api::EngineSetup::kRuntime) << "no Node could say otherwise";
  StartWith(text + "cluster: {enabled: on}\n");
  EXPECT_EQ(engine(), api::EngineSetup::kOff) << "its labels are not known";
  configuration_->SetServices({.toolkit = false});
  EXPECT_EQ(engine(), api::EngineSetup::kOff);
  configuration_->SetServices({});
  EXPECT_EQ(engine(), api::EngineSetup::kRuntime);
  StartWith(text + "cluster: {enabled: on}\n");
  configuration_->SetServices({});
  EXPECT_EQ(engine(), api::EngineSetup::kRuntime) << "the first answer switches nothing off";
}

TEST_F(ConfigurationTest, AnEngineThatWaitsForTheNodesLabelsIsSaid) {
  settings_.flags["--state-dir"] = folder_.path();
  StartWith(kOurs + "containers: {configureEngine: runtime}\ncluster: {enabled: on}\n");
  EXPECT_THAT(Report().remarks, IsEmpty()) << "they are being read";
  configuration_->Serve({}, {});
  RunThrough({{[] {}, [this] { return !Report().remarks.empty(); },
               [this] {
                 EXPECT_THAT(Report().remarks,
                             ElementsAre(AllOf(
                                 StartsWith("containers.configureEngine: the container engine is "
                                            "left as it is until the labels"),
                                 HasSubstr("nvidia.com/gpu.deploy.container-toolkit=false"),
                                 HasSubstr("needs get, list and watch of nodes"))));
                 configuration_->SetServices({});
                 EXPECT_THAT(Report().remarks, IsEmpty());
                 EXPECT_EQ(Config().containers.configure_engine, api::EngineSetup::kRuntime);
               }}});
}

TEST_F(ConfigurationTest, LabelsForWhichNoEngineWaitsAreNotMissed) {
  settings_.flags["--state-dir"] = folder_.path();
  StartWith(kOurs + "containers: {configureEngine: off}\ncluster: {enabled: on}\n");
  configuration_->Serve({}, {});
  bool later = false;
  // On the same loop as the timer after which labels are missed, and due after it.
  loop_.PostAfter(kLabelsTake, [&later] { later = true; });
  RunUntil([&later] { return later; });
  EXPECT_THAT(Report().remarks, IsEmpty());
}

TEST_F(ConfigurationTest, IsReadAgainWhenAsked) {
  StartWith("version: v1\n");
  configuration_->Reload();
  RunUntil([this] { return configuration_->reloads().applied == 1; });
}

}  // namespace
}  // namespace penstock::app
