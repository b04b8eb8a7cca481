// Tests the installation of the programs that container engines execute, and what is said of an
// engine that stays configured.
#include "app/agent/containers.h"

#include <filesystem>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/core/testing/must.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"
#include "os/testing/turned_loop.h"
#include "protocol/engine/apply/engine_configurator.h"

namespace penstock::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ContainersTest : public testing::Test {
 protected:
  ContainersTest() {
    config_.paths.cdi_root = folder_ / "cdi";
    config_.cdi.enabled = api::Switch::kOn;
    config_.cdi.install = folder_ / "host/bin";
    folder_.Write("own/penstock-hook", "a hook");
    folder_.Write("own/penstock-runtime", "a runtime");
  }

  /// Starts it like the agent, and returns its report.
  api::CdiReport Report() {
    os::Loop loop("test");
    return Containers(loop, loop, config_, inventory_, ledger_, folder_ / "own", false, [] {})
        .Report(true);
  }
  std::string Installed(const std::string& name) const {
    return os::ReadFile(config_.cdi.install + "/" + name).value_or("none");
  }
  struct stat StatOf(const std::string& name) const {
    struct stat info {};
    EXPECT_EQ(::stat((config_.cdi.install + "/" + name).c_str(), &info), 0);
    return info;
  }

  const os::TemporaryFolder folder_;
  api::NodeConfig config_;
  node::inventory::Inventory inventory_;
  node::ledger::Ledger ledger_;
};

TEST_F(ContainersTest, BothProgramsAreInstalledSoThatAnyUserCanExecuteThem) {
  const mode_t before = ::umask(0077);
  const api::CdiReport report = Report();
  ::umask(before);
  EXPECT_THAT(report.remarks, IsEmpty());
  EXPECT_EQ(Installed("penstock-hook"), "a hook");
  EXPECT_EQ(Installed("penstock-runtime"), "a runtime");
  for (const char* name : {"penstock-hook", "penstock-runtime"})
    EXPECT_EQ(StatOf(name).st_mode & 07777, 0755u);
}

TEST_F(ContainersTest, TheProgramOfTheValidationIsInstalledWhereItIsThere) {
  folder_.Write("own/penstock-probe", "a probe");
  EXPECT_THAT(Report().remarks, IsEmpty());
  EXPECT_EQ(Installed("penstock-probe"), "a probe");
  EXPECT_EQ(StatOf("penstock-probe").st_mode & 07777, 0755u);
}

// An engine may be executing the old program at that moment.
TEST_F(ContainersTest, ANewVersionIsANewFileAndTheSameVersionIsLeftAlone) {
  Report();
  const os::UniqueFd running(
      ::open((config_.cdi.install + "/penstock-hook").c_str(), O_RDONLY | O_CLOEXEC));
  const struct stat hook = StatOf("penstock-hook"), runtime = StatOf("penstock-runtime");
  folder_.Write("own/penstock-hook", "a newer hook");
  EXPECT_THAT(Report().remarks, IsEmpty());
  EXPECT_EQ(Installed("penstock-hook"), "a newer hook");
  EXPECT_NE(StatOf("penstock-hook").st_ino, hook.st_ino);
  EXPECT_EQ(StatOf("penstock-runtime").st_ino, runtime.st_ino);
  EXPECT_EQ(os::ReadAll(running.get(), "the old hook").value_or("none"), "a hook");
  EXPECT_THAT(*os::ListDirectory(config_.cdi.install),
              ElementsAre("penstock-hook", "penstock-runtime"));
}

TEST_F(ContainersTest, WithoutThemSpecificationsHaveNoHooksAndTheReportSaysWhy) {
  std::filesystem::remove(folder_ / "own/penstock-runtime");
  EXPECT_THAT(Report().remarks,
              ElementsAre(testing::AllOf(HasSubstr("CDI specifications have no hooks: "),
                                         HasSubstr("own/penstock-runtime"))));
  folder_.Write("file", "");
  config_.cdi.install = folder_ / "file/bin";
  EXPECT_THAT(Report().remarks,
              ElementsAre(testing::AllOf(HasSubstr("CDI specifications have no hooks: "),
                                         HasSubstr("file"))));
}

TEST_F(ContainersTest, NothingIsInstalledWhereThatIsNotAskedForOrSpecificationsAreNotWritten) {
  const std::string folder = config_.cdi.install;
  config_.cdi.enabled = api::Switch::kOff;
  EXPECT_THAT(Report().problems, ElementsAre("switched off"));
  EXPECT_FALSE(os::Exists(folder));
  config_.cdi.enabled = api::Switch::kOn;
  config_.cdi.install = "";
  EXPECT_THAT(Report().remarks, IsEmpty()) << "the hook beside the agent is used";
  std::filesystem::remove(folder_ / "own/penstock-hook");
  EXPECT_THAT(Report().remarks, ElementsAre("CDI specifications have no hooks: there is no " +
                                            folder_ / "own/penstock-hook"));
  config_.cdi.hook = "/usr/bin/penstock-hook";
  EXPECT_THAT(Report().remarks, IsEmpty()) << "the host has the hook";
  EXPECT_FALSE(os::Exists(folder));
}

TEST_F(ContainersTest, WhatIsWrittenForAnEngineIsNamedWhereNothingIsToBeWritten) {
  config_.paths.state_dir = folder_ / "state";
  config_.paths.proc_root = folder_ / "proc";
  config_.paths.kubelet_dir = folder_ / "kubelet";
  config_.containers.engine_socket =
      folder_ / "no.sock";  // the kubelet's engine is none of this machine's
  protocol::engine::EngineInstall docker = Must(protocol::engine::RecipeOf("docker"));
  docker.config = folder_ / "daemon.json";
  docker.program = folder_ / "no-program";
  Must(protocol::engine::Configure(
      docker, {.desired = {.cdi = true}, .state_dir = config_.paths.state_dir}, nullptr));
  os::TurnedLoop loop("test");
  loop.Start();
  std::optional<Containers> containers;
  const auto remarks = [&](bool setup_known) {
    loop.Settle();
    std::vector<std::string> found;
    loop.Run([&] { found = containers->Report(setup_known).remarks; });
    return found;
  };
  const auto begin = [&](const api::NodeConfig& config) {
    loop.Run([&] { containers->Begin(config); });
  };
  const auto set_up = [&](api::EngineSetup wanted) {
    config_.containers.configure_engine = wanted;
    loop.Run([&] { containers->Configure(config_); });
  };
  const auto make = [&](const api::NodeConfig& config) {
    loop.Run([&] {
      containers.emplace(loop.loop(), loop.loop(), config, inventory_, ledger_, folder_ / "own",
                         true, [] {});
    });
  };
  api::NodeConfig no_specifications = config_;
  no_specifications.cdi.enabled = api::Switch::kOff;
  make(no_specifications);
  begin(no_specifications);
  EXPECT_THAT(remarks(true), IsEmpty());
  make(config_);
  EXPECT_THAT(remarks(true), IsEmpty()) << "no device was read yet";
  begin(config_);
  EXPECT_THAT(remarks(false), IsEmpty()) << "it may be off for a moment only";
  EXPECT_THAT(remarks(true),
              ElementsAre(testing::AllOf(HasSubstr("docker (" + docker.config + ") stays until"),
                                         HasSubstr("`penstock runtime unconfigure --all`"))));
  set_up(api::EngineSetup::kCdi);
  EXPECT_THAT(remarks(true), IsEmpty());
  Must(protocol::engine::Configure(docker, {.state_dir = config_.paths.state_dir}, nullptr));
  set_up(api::EngineSetup::kOff);
  EXPECT_THAT(remarks(true), IsEmpty());
  loop.Run([&] { containers.reset(); });
  loop.Stop();
}

TEST(RuntimeHandlersTest, AreThoseOfTheVendorsThatTheMachineHas) {
  node::inventory::Inventory inventory;
  const auto handlers = [&] { return RuntimeHandlersOf(*inventory.published().Get()); };
  EXPECT_THAT(handlers(), IsEmpty());
  inventory.SetVendor({.vendor = "amd", .driver = nullptr, .reason = ""});
  inventory.SetVendor({.vendor = "nvidia", .driver = nullptr, .reason = "no driver is installed"});
  EXPECT_THAT(handlers(), ElementsAre("nvidia"));
  inventory.SetVendor(
      {.vendor = "amd", .driver = std::make_shared<const device::Driver>(), .reason = ""});
  EXPECT_THAT(handlers(), testing::UnorderedElementsAre("amd", "nvidia"));
}

TEST(GroupsForTest, AreThoseThatTheReadersOfASpecificationUnderstand) {
  using protocol::engine::cri::EngineAbilities;
  const EngineAbilities reads{.name = "containerd", .version = "2.1.0", .cdi_groups = true},
      older{.name = "containerd", .version = "1.7.2"};
  EXPECT_EQ(GroupsFor(api::Switch::kAuto, reads), (node::cdi::Groups{.for_kubelet = true}));
  EXPECT_EQ(GroupsFor(api::Switch::kAuto, std::nullopt), node::cdi::Groups{});
  const node::cdi::Groups without = GroupsFor(api::Switch::kAuto, older);
  EXPECT_FALSE(without.for_users || without.for_kubelet);
  EXPECT_THAT(without.why_not,
              testing::AllOf(testing::StartsWith("containerd 1.7.2 does not read version 0.7.0"),
                             HasSubstr("supplementalGroups")));
  EXPECT_EQ(GroupsFor(api::Switch::kOn, older),
            (node::cdi::Groups{.for_users = true, .for_kubelet = true}));
  EXPECT_EQ(GroupsFor(api::Switch::kOff, reads), node::cdi::Groups{});
}

}  // namespace
}  // namespace penstock::app
