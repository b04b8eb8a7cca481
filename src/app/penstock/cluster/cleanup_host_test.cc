#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/kept_configuration.h"
#include "app/penstock/cluster/cleanup.h"
#include "app/stopped_services.h"
#include "base/core/testing/must.h"
#include "node/ledger/checkpoint.h"
#include "os/core/file.h"
#include "os/lock_file.h"
#include "os/process/process.h"
#include "os/testing/temporary_folder.h"
#include "protocol/engine/apply/engine_configurator.h"

namespace penstock::app {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class CleanHostTest : public testing::Test {
 protected:
  CleanHostTest() {
    config_.paths.run_dir = folder_ / "run";
    config_.paths.state_dir = folder_ / "state";
    config_.paths.cdi_root = folder_ / "cdi";
    config_.cdi.install = folder_ / "state/bin";
    config_.labels.features_file = folder_ / "features.d/penstock";
    config_.validation.directory = folder_ / "validations";
  }
  void AgentWasHere() {
    for (const char* file :
         {"configuration.json", "ledger.json", "health.json", "health-marks.json", "doors.json",
          "changes.json", "layout.json", "parts.json", "queue.json", "usage.json", "usage-end.json",
          "usage/usage-000001.jsonl"})
      folder_.Write(std::string("state/") + file, "{}");
    folder_.Write("state/services.json", EncodeStoppedServices({}));
    for (const char* file :
         {"penstock-nvidia.com-gpu.json", "k8s.device-plugin.nvidia.com-gpu.json",
          "k8s.device-plugin.nvidia.com-gds.json"})
      folder_.Write(std::string("cdi/") + file, "{}");
    for (const char* program : {"penstock-hook", "penstock-runtime", "penstock-probe"})
      folder_.Write(std::string("state/bin/") + program, "");
    folder_.Write("state/penstock-proof.log", "");
    folder_.Write("run/agent.lock", "1\n");
    LockMode(0600);
    folder_.Write("features.d/penstock", "nvidia.com/gpu.count=8\n");
    folder_.Write("validations/driver-ready", "");
  }

  std::string Ledger(std::vector<node::ledger::Lease> leases) const {
    node::ledger::Snapshot snapshot;
    snapshot.leases = std::move(leases);
    return EncodeCheckpoint(snapshot, os::ReadBootId(config_.paths.proc_root).value_or(""));
  }

  void LockMode(int mode) {
    std::filesystem::permissions(folder_ / "run/agent.lock",
                                 static_cast<std::filesystem::perms>(mode));
  }

  /// This process is none of a container.
  void SeeTheMachinesFiles() {
    config_.paths.proc_root = folder_ / "proc";
    for (const char* process : {"self", "1"})
      folder_.Link("proc/" + std::string(process) + "/ns/mnt", "mnt:[1]");
  }

  os::TemporaryFolder folder_;
  api::NodeConfig config_;
};

TEST_F(CleanHostTest, LeavesNothingOfAnAgentThatHasEnded) {
  AgentWasHere();
  EXPECT_EQ(LeftOnHost(config_).size(), 23u);
  LockMode(0644);  // as written by 0.1.0
  const auto outcome = Must(CleanHost(config_, false));
  EXPECT_THAT(outcome.failures, IsEmpty());
  EXPECT_THAT(LeftOnHost(config_), IsEmpty());
  EXPECT_FALSE(os::Exists(config_.paths.run_dir));
  EXPECT_FALSE(os::Exists(config_.paths.state_dir));
  const auto again = Must(CleanHost(config_, false));
  EXPECT_THAT(again.removed, IsEmpty());
}

TEST_F(CleanHostTest, FollowsNoLinkInPlaceOfTheValidatorsFolder) {
  AgentWasHere();
  std::filesystem::rename(folder_ / "validations", folder_ / "elsewhere");
  folder_.Link("validations", folder_ / "elsewhere");
  const auto outcome = Must(CleanHost(config_, false));
  EXPECT_THAT(outcome.failures, Contains(HasSubstr("is a symbolic link")));
  EXPECT_TRUE(os::Exists(folder_ / "elsewhere/driver-ready"));
}

TEST_F(CleanHostTest, LeavesWhatIsNotOurs) {
  AgentWasHere();
  folder_.Write("state/notes.txt", "mine");
  folder_.Write("cdi/nvidia.yaml", "theirs");
  const auto plugins = [this](const char* hook) {
    folder_.Write("cdi/k8s.device-plugin.nvidia.com-gpu.json",
                  R"({"hooks": [{"path": "/usr/bin/)" + std::string(hook) + R"("}]})");
  };
  plugins("nvidia-cdi-hook");
  const auto outcome = Must(CleanHost(config_, false));
  EXPECT_TRUE(os::Exists(folder_ / "cdi/k8s.device-plugin.nvidia.com-gpu.json"));
  config_.cdi.hook = "/usr/bin/nvidia-cdi-hook";
  EXPECT_THAT(LeftOnHost(config_), Contains(folder_ / "cdi/k8s.device-plugin.nvidia.com-gpu.json"));
  config_.cdi.hook.clear();
  plugins("penstock-hook");
  Must(CleanHost(config_, false));
  EXPECT_FALSE(os::Exists(folder_ / "cdi/k8s.device-plugin.nvidia.com-gpu.json"));
  EXPECT_TRUE(os::Exists(folder_ / "state/notes.txt"));
  EXPECT_TRUE(os::Exists(folder_ / "cdi/nvidia.yaml"));
  EXPECT_FALSE(os::Exists(folder_ / "state/ledger.json"));
}

TEST_F(CleanHostTest, LeavesUsageRecordsInAFolderThatSomeoneChose) {
  AgentWasHere();
  config_.usage.dir = folder_ / "state/usage";
  const auto outcome = Must(CleanHost(config_, false));
  EXPECT_TRUE(os::Exists(folder_ / "state/usage/usage-000001.jsonl"));
  EXPECT_FALSE(os::Exists(folder_ / "state/usage.json"));
}

TEST_F(CleanHostTest, SaysInADryRunWhatItWouldRemove) {
  AgentWasHere();
  const auto outcome = Must(CleanHost(config_, true));
  EXPECT_THAT(outcome.removed, Contains(folder_ / "state/ledger.json"));
  EXPECT_EQ(LeftOnHost(config_).size(), 23u);
}

TEST_F(CleanHostTest, TouchesNothingWhileAnAgentRuns) {
  AgentWasHere();
  const auto lock = Must(os::LockFile::Take(config_.paths.run_dir + "/agent.lock"));
  const base::Error outcome = CleanHost(config_, false).error();
  EXPECT_EQ(outcome.code(), base::Code::kFailedPrecondition);
  EXPECT_THAT(outcome.message(), HasSubstr(std::to_string(getpid())));
  EXPECT_EQ(LeftOnHost(config_).size(), 23u);
}

TEST_F(CleanHostTest, KeepsWhatALaterAgentGoesOnWithAndTakesBackWhatOthersSee) {
  AgentWasHere();
  folder_.Write("state/ledger.json", Ledger({}));
  SeeTheMachinesFiles();
  protocol::engine::EngineInstall docker = Must(protocol::engine::RecipeOf("docker"));
  docker.config = folder_ / "daemon.json";
  docker.program = folder_ / "no-program";
  docker.socket = folder_ / "no.sock";
  folder_.Write("daemon.json", "{}\n");
  Must(protocol::engine::Configure(
      docker, {.desired = {.cdi = true}, .state_dir = config_.paths.state_dir}, nullptr));
  EXPECT_THAT(Must(os::ReadFile(docker.config)), HasSubstr("cdi"));
  const auto seen = SeenOnHost(config_);
  EXPECT_THAT(seen,
              testing::UnorderedElementsAre(
                  HasSubstr("/state/engines/"), folder_ / "validations/driver-ready",
                  folder_ / "features.d/penstock", folder_ / "cdi/penstock-nvidia.com-gpu.json",
                  folder_ / "cdi/k8s.device-plugin.nvidia.com-gpu.json",
                  folder_ / "cdi/k8s.device-plugin.nvidia.com-gds.json"));
  EXPECT_EQ(Must(CleanSeen(config_, true)).removed, seen);
  {
    const auto lock = Must(os::LockFile::Take(config_.paths.run_dir + "/agent.lock"));
    EXPECT_EQ(CleanSeen(config_, false).error().code(), base::Code::kFailedPrecondition);
  }
  const auto outcome = Must(CleanSeen(config_, false));
  EXPECT_THAT(outcome.failures, IsEmpty());
  EXPECT_THAT(outcome.removed, Contains(HasSubstr(docker.config)));
  EXPECT_EQ(Must(os::ReadFile(docker.config)), "{}\n");
  EXPECT_THAT(SeenOnHost(config_), IsEmpty());
  for (const char* kept : {"ledger.json", "parts.json", "usage/usage-000001.jsonl",
                           "bin/penstock-runtime", "bin/penstock-hook"})
    EXPECT_TRUE(os::Exists(folder_ / (std::string("state/") + kept))) << kept;
  EXPECT_THAT(Must(CleanSeen(config_, false)).removed, IsEmpty());
}

TEST_F(CleanHostTest, RemovesTheValidatorsFilesOfTheConfigurationThatTheAgentHadLast) {
  AgentWasHere();
  config_.validation.directory.clear();
  const std::string file = folder_ / "validations/driver-ready";
  EXPECT_THAT(SeenOnHost(config_), Not(Contains(file)));
  api::NodeConfig last;
  last.validation.directory = folder_ / "validations";
  folder_.Write("state/configuration.json",
                EncodeKept({.file = KeptText{.from = "node.yaml", .text = ToShortYaml(last)}}));
  EXPECT_THAT(SeenOnHost(config_), Contains(file));
  EXPECT_THAT(Must(CleanSeen(config_, false)).removed, Contains(file));
  EXPECT_FALSE(os::Exists(file));
}

TEST_F(CleanHostTest, RemovesWhatTheAgentWroteByTheConfigurationThatItHadLast) {
  AgentWasHere();
  SeeTheMachinesFiles();
  api::NodeConfig last, of_the_map;
  std::swap(last.paths.cdi_root, config_.paths.cdi_root);
  std::swap(last.cdi.install, config_.cdi.install);
  std::swap(last.labels.features_file, config_.labels.features_file);
  config_.paths.cdi_root = folder_ / "other";
  last.cluster.config_map.namespace_name = "gpu";
  last.cluster.config_map.name = "shares";
  of_the_map.labels.features_file = folder_ / "features.d/of-the-map";
  of_the_map.cdi.install = folder_ / "not-changed-by-a-map";
  folder_.Write("features.d/of-the-map", "nvidia.com/gpu.count=8\n");
  folder_.Write("not-changed-by-a-map/penstock-probe", "");
  const std::vector<std::string> seen = {folder_ / "cdi/penstock-nvidia.com-gpu.json",
                                         folder_ / "features.d/penstock",
                                         folder_ / "features.d/of-the-map"};
  std::filesystem::remove(folder_ / "state/ledger.json");
  for (const std::string& file : seen) EXPECT_THAT(SeenOnHost(config_), Not(Contains(file)));
  folder_.Write(
      "state/configuration.json",
      EncodeKept({.file = KeptText{.from = "node.yaml", .text = ToShortYaml(last)},
                  .config_map = KeptText{.from = "gpu/shares", .text = ToShortYaml(of_the_map)}}));
  for (const std::string& file : seen) EXPECT_THAT(SeenOnHost(config_), Contains(file));
  const auto outcome = Must(CleanHost(config_, false));
  EXPECT_THAT(outcome.failures, IsEmpty());
  EXPECT_THAT(outcome.removed, Contains(folder_ / "state/bin/penstock-runtime"));
  for (const std::string& file : seen) EXPECT_THAT(outcome.removed, Contains(file));
  EXPECT_FALSE(os::Exists(folder_ / "state/bin"));
  EXPECT_TRUE(os::Exists(folder_ / "not-changed-by-a-map/penstock-probe"));
}

TEST_F(CleanHostTest, SpecificationsStayWhileDevicesAreHeld) {
  AgentWasHere();
  for (const std::string& text :
       {Ledger({{.id = "a", .allocator = "kubelet"}}), std::string("{half")}) {
    folder_.Write("state/ledger.json", text);
    Must(CleanSeen(config_, false));
    EXPECT_TRUE(os::Exists(folder_ / "cdi/penstock-nvidia.com-gpu.json")) << text;
    EXPECT_FALSE(os::Exists(folder_ / "features.d/penstock"));
    EXPECT_THAT(SeenOnHost(config_), IsEmpty()) << "a pod would never be ready";
  }
  std::filesystem::remove(folder_ / "state/ledger.json");
  Must(CleanSeen(config_, false));
  EXPECT_FALSE(os::Exists(folder_ / "cdi/penstock-nvidia.com-gpu.json"));
}

TEST_F(CleanHostTest, ForgetsNoEngineWhoseFilesItDoesNotSee) {
  AgentWasHere();
  folder_.Link("proc/1/ns/mnt", "mnt:[1]");
  folder_.Link("proc/self", "1");
  config_.paths.proc_root = folder_ / "proc";
  protocol::engine::EngineInstall docker = Must(protocol::engine::RecipeOf("docker"));
  docker.config = folder_ / "daemon.json";
  docker.program = folder_ / "no-program";
  folder_.Write("daemon.json", "{}\n");
  Must(protocol::engine::Configure(
      docker, {.desired = {.cdi = true}, .state_dir = config_.paths.state_dir}, nullptr));
  std::filesystem::remove(docker.config);
  EXPECT_THAT(Must(CleanSeen(config_, false)).failures,
              ElementsAre(AllOf(HasSubstr(docker.config), HasSubstr("--host --keep-state`"))));
  EXPECT_THAT(Must(CleanHost(config_, false)).failures,
              ElementsAre(AllOf(HasSubstr(docker.config), HasSubstr("cleanup --host`")),
                          AllOf(HasSubstr(folder_ / "state/bin/penstock-hook"),
                                HasSubstr(folder_ / "state/bin/penstock-runtime"),
                                HasSubstr("cleanup --host`"))));
  EXPECT_THAT(SeenOnHost(config_), ElementsAre(HasSubstr("state/engines/")));
  // New pods of the class would fail, and running ones could not be deleted.
  EXPECT_THAT(LeftOnHost(config_),
              testing::UnorderedElementsAre(
                  HasSubstr("state/engines/"), folder_ / "state/configuration.json",
                  folder_ / "state/bin/penstock-hook", folder_ / "state/bin/penstock-runtime"));
  // On the machine.
  config_.paths.proc_root = folder_ / "machine";
  for (const char* process : {"self", "1"})
    folder_.Link("machine/" + std::string(process) + "/ns/mnt", "mnt:[1]");
  EXPECT_THAT(Must(CleanHost(config_, false)).failures, IsEmpty());
  EXPECT_THAT(LeftOnHost(config_), IsEmpty());
}

/// A service manager in whose place a script writes what it is asked.
class CleanHostServices : public CleanHostTest {
 protected:
  CleanHostServices() {
    folder_.Write("bin/systemctl", "#!/bin/sh\necho \"$@\" >> " + (folder_ / "asked") +
                                       "\n[ \"$4\" != broken.service ] || exit 1\n");
    std::filesystem::permissions(folder_ / "bin/systemctl", std::filesystem::perms::owner_all);
    ::setenv("PATH", ((folder_ / "bin") + ":" + path_).c_str(), 1);
    SeeTheMachinesFiles();
    folder_.Write("proc/sys/kernel/random/boot_id", "this\n");
  }
  ~CleanHostServices() override { ::setenv("PATH", path_.c_str(), 1); }
  void Stopped(const std::string& boot, std::vector<std::string> units) const {
    folder_.Write("state/services.json", EncodeStoppedServices({boot, std::move(units)}));
  }
  std::string Asked() const { return os::ReadFile(folder_ / "asked").value_or(""); }

 private:
  const std::string path_ = ::getenv("PATH");
};

TEST_F(CleanHostServices, StartsWhatAnAgentHasStoppedInTheReverseOrder) {
  Stopped("this", {"a.service", "broken.service", "b.service"});
  const auto outcome = Must(CleanHost(config_, false));
  EXPECT_EQ(Asked(),
            "--no-ask-password start -- b.service\n--no-ask-password start -- broken.service\n"
            "--no-ask-password start -- a.service\n");
  EXPECT_THAT(outcome.remarks,
              testing::ElementsAre("b.service was started again", "a.service was started again"));
  EXPECT_THAT(outcome.failures, testing::ElementsAre(HasSubstr("broken.service was stopped")));
  EXPECT_THAT(LeftOnHost(config_), IsEmpty());
}

TEST_F(CleanHostServices, StartsThemAlsoWhereAnotherAgentMayFollowWhichDoesNotDoItAgain) {
  Stopped("this", {"broken.service"});
  EXPECT_THAT(Must(CleanSeen(config_, false)).failures, testing::SizeIs(1));
  EXPECT_TRUE(os::Exists(folder_ / "state/services.json")) << "a later agent tries it";
  Stopped("this", {"a.service"});
  Must(CleanSeen(config_, false));
  EXPECT_THAT(Asked(), HasSubstr("start -- a.service"));
  EXPECT_FALSE(os::Exists(folder_ / "state/services.json"));
}

TEST_F(CleanHostServices, StartsNothingThatAnotherBootHasStarted) {
  Stopped("another", {"a.service"});
  const auto outcome = Must(CleanHost(config_, false));
  EXPECT_EQ(Asked(), "");
  EXPECT_THAT(outcome.failures, IsEmpty());
}

TEST_F(CleanHostTest, MakesNoFolderWhereThereIsNone) {
  const auto outcome = Must(CleanHost(config_, false));
  EXPECT_FALSE(os::Exists(config_.paths.run_dir));
}

}  // namespace
}  // namespace penstock::app
