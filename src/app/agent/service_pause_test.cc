// Services that are stopped and started again, also by the agent after one that was killed at any
// moment. A script stands for the service manager.
#include "app/agent/service_pause.h"

#include <filesystem>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/strings.h"
#include "base/core/testing/must.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"
#include "os/testing/turned_loop.h"

namespace penstock::app {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kBoot[] = "this boot";

/// Of a unit x there are the files x, with its state; x.with, with the units that stop with it; and
/// x.no-stop or x.no-start, where that fails; x.slow, while its stop is not over.
constexpr char kServiceManager[] = R"sh(#!/bin/sh
cd UNITS
verb=$3
while [ "$1" != -- ]; do shift; done
shift
for unit; do
  state=$(cat $unit 2>/dev/null || echo inactive)
  case $verb in
    show)
      echo "Id=$unit"
      echo "Names=$unit"
      if [ -e $unit ]; then echo LoadState=loaded; else echo LoadState=not-found; fi
      echo "ActiveState=$state"
      if [ $state = active ]; then echo "ControlGroup=/system.slice/$unit"; fi
      if [ -e $unit.with ]; then echo "RequiredBy=$(cat $unit.with)"; fi
      echo ;;
    stop)
      echo "stop $unit" >> ../asked
      while [ -e $unit.slow ]; do sleep 0.01; done
      if [ -e $unit.no-stop ]; then echo "job of $unit failed" >&2; exit 1; fi
      for one in $unit $(cat $unit.with 2>/dev/null); do echo inactive > $one; done
      if [ -e $unit.again ]; then echo active > $unit; fi ;;
    start)
      echo "start $unit" >> ../asked
      if [ -e $unit.no-start ]; then echo "job of $unit failed" >&2; exit 1; fi
      if [ ! -e $unit ]; then echo "Unit $unit not found." >&2; exit 5; fi
      echo active > $unit ;;
  esac
done
exit 0
)sh";

class ServicePauseTest : public testing::Test {
 protected:
  ServicePauseTest() {
    std::string script = kServiceManager;
    script.replace(script.find("UNITS"), 5, folder_ / "units");
    folder_.Write("enter", script);
    std::filesystem::permissions(folder_ / "enter", std::filesystem::perms::owner_all);
    for (const char* unit : {"dcgm.service", "nvsm.service", "idle.service"}) Unit(unit);
    users_ = {"dcgm.service", "nvsm.service"};
    List("[nvsm.service, dcgm.service, idle.service, missing.service]");
    config_.client_services_file = folder_ / "clients.yaml";
    std::filesystem::create_directories(folder_ / "state");
    device_.id = "GPU-1";
    device_.files = {{.path = "/dev/nvidia0"}};
    loop_.Start();
    Start();
  }
  ~ServicePauseTest() override {
    Kill();
    loop_.Stop();
  }

  void Unit(const std::string& name, const std::string& state = "active") const {
    folder_.Write("units/" + name, state + "\n");
  }
  bool Runs(const std::string& unit) const {
    return os::ReadFile(folder_ / ("units/" + unit)).value_or("") == "active\n";
  }
  void List(const std::string& services) const {
    folder_.Write("clients.yaml", "version: v1\nsystemd-services: " + services + "\n");
  }

  /// The agent that runs, or the next one.
  void Start() {
    loop_.Run([&] {
      pause_.emplace(
          ServicePause::Node{
              .control = loop_.loop(),
              .io = loop_.loop(),
              .devices = [&] { return changing_; },
              .wake = [] {},
              .note =
                  [&](bool, const std::string& reason, const std::string& message) {
                    notes_.push_back(reason + ": " + message);
                  },
              .users = [&](const std::vector<std::string>& files) { return GroupsOf(files); },
              .own_groups = {}},
          std::vector<std::string>{folder_ / "enter"}, folder_ / "state",
          base::Must(LoadStoppedServices(folder_ / "state", kBoot)));
      pause_->Configure(config_);
    });
  }
  void Kill() {
    loop_.Run([&] { pause_.reset(); });
  }
  std::set<std::string> GroupsOf(const std::vector<std::string>& files) const {
    std::set<std::string> groups;
    for (const std::string& user : users_)
      if (files == std::vector<std::string>{"/dev/nvidia0"} && Runs(user))
        groups.insert("/system.slice/" + user);
    return groups;
  }

  /// A change of the device begins; `ends`: and is over.
  void Change(bool begins) {
    loop_.Run([&] {
      changing_ = begins ? std::set<std::string>{"GPU-1"} : std::set<std::string>{};
      pause_->Follow();
    });
  }
  std::string Await(std::string_view program = "mig-manager") {
    std::string waits;
    loop_.Run([&] { waits = pause_->Await(device_, *api::compat::FindLayoutProgram(program)); });
    return waits;
  }
  bool MayBeDivided() {
    return loop_.AdvanceUntil(1ms, [&] { return Await().empty(); });
  }
  bool AllRun() const { return Runs("dcgm.service") && Runs("nvsm.service"); }
  std::vector<std::string> Asked() const {
    auto lines = base::Split(os::ReadFile(folder_ / "asked").value_or(""), '\n');
    lines.pop_back();
    return lines;
  }
  std::vector<std::string> Kept() const {
    return base::Must(LoadStoppedServices(folder_ / "state", kBoot)).units;
  }

  const os::TemporaryFolder folder_;
  os::TurnedLoop loop_{"test"};
  api::NodeConfig config_;
  device::Facts device_;
  std::set<std::string> changing_, users_;
  std::vector<std::string> notes_;
  std::optional<ServicePause> pause_;
};

TEST_F(ServicePauseTest, ServicesThatHoldADeviceAreStoppedInOrderAndStartedInTheReverseOrder) {
  loop_.Run([&] { pause_->Begin(); });
  Change(true);
  EXPECT_NE(Await(), "");
  ASSERT_TRUE(MayBeDivided());
  EXPECT_THAT(Asked(), ElementsAre("stop nvsm.service", "stop dcgm.service"));
  EXPECT_THAT(Kept(), ElementsAre("nvsm.service", "dcgm.service"));
  EXPECT_TRUE(Runs("idle.service")) << "it does not hold the device";
  Change(false);
  ASSERT_TRUE(loop_.AdvanceUntil(1ms, [&] { return Kept().empty(); }));
  EXPECT_THAT(Asked(), ElementsAre("stop nvsm.service", "stop dcgm.service", "start dcgm.service",
                                   "start nvsm.service"));
  EXPECT_TRUE(AllRun());
  EXPECT_THAT(notes_, ElementsAre("ServiceStopped: nvsm.service was stopped while GPU-1 is divided",
                                  "ServiceStopped: dcgm.service was stopped while GPU-1 is divided",
                                  "ServiceStarted: dcgm.service was started again",
                                  "ServiceStarted: nvsm.service was started again"));
}

TEST_F(ServicePauseTest, TheServiceThatIsBeingStoppedIsNamed) {
  folder_.Write("units/nvsm.service.slow", "");
  Change(true);
  EXPECT_TRUE(loop_.AdvanceUntil(
      1ms, [&] { return Await() == "nvsm.service of the host is being stopped"; }));
  std::filesystem::remove(folder_ / "units/nvsm.service.slow");
  EXPECT_TRUE(MayBeDivided());
}

TEST_F(ServicePauseTest, WithoutAListOrAHolderNothingIsAsked) {
  Change(true);
  users_.clear();
  ASSERT_TRUE(MayBeDivided());
  config_.client_services_file.clear();
  loop_.Run([&] { pause_->Configure(config_); });
  Change(false);
  Change(true);
  EXPECT_EQ(Await(), "") << "at once";
  EXPECT_THAT(Asked(), IsEmpty());
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(ServicePauseTest, AListThatCannotBeReadStopsNothingAndIsReported) {
  for (const char* list : {"[../dcgm.service]", "[kubelet]"}) {
    notes_.clear();
    List(list);
    Change(true);
    ASSERT_TRUE(MayBeDivided());
    EXPECT_THAT(notes_, ElementsAre(HasSubstr("clients.yaml:2:20: systemd-services[0]")));
    Change(false);
  }
  std::filesystem::remove(folder_ / "clients.yaml");
  Change(true);
  ASSERT_TRUE(MayBeDivided());
  EXPECT_THAT(notes_, Contains(HasSubstr("no service is stopped: ")));
  EXPECT_THAT(Asked(), IsEmpty());
}

TEST_F(ServicePauseTest, AProblemOfTheListIsReportedOnceForAllDevices) {
  List("[kubelet]");
  loop_.Run([&] {
    changing_ = {"GPU-1", "GPU-2"};
    pause_->Follow();
  });
  ASSERT_TRUE(MayBeDivided());
  device_.id = "GPU-2";
  ASSERT_TRUE(MayBeDivided());
  EXPECT_EQ(notes_.size(), 1u);
}

TEST_F(ServicePauseTest, AServiceThatTheNodeNeedsStays) {
  Unit("kubelet.service");
  users_.insert("kubelet.service");
  List("[kubelet.service, dcgm.service]");
  Change(true);
  ASSERT_TRUE(MayBeDivided());
  EXPECT_THAT(Asked(), ElementsAre("stop dcgm.service"));
  EXPECT_THAT(notes_, Contains("ServicesNotStopped: kubelet.service has GPU-1 open and is not "
                               "stopped: the node needs it"));
}

TEST_F(ServicePauseTest, AServiceThatCannotBeStoppedKeepsNothingFromGoingOn) {
  folder_.Write("units/nvsm.service.no-stop", "");
  loop_.Run([&] { pause_->Begin(); });
  Change(true);
  ASSERT_TRUE(MayBeDivided());
  EXPECT_THAT(Asked(), ElementsAre("stop nvsm.service", "stop dcgm.service"));
  EXPECT_THAT(notes_, Contains(HasSubstr("nvsm.service has GPU-1 open and could not be stopped: "
                                         "systemctl stop nvsm.service: job of nvsm.service "
                                         "failed")));
  Change(false);
  ASSERT_TRUE(loop_.AdvanceUntil(1ms, [&] { return Kept().empty(); }));
  EXPECT_TRUE(AllRun());
}

TEST_F(ServicePauseTest, AServiceThatSomethingElseStartsIsLeftAfterAFewStops) {
  folder_.Write("units/dcgm.service.again", "");
  users_ = {"dcgm.service"};
  Change(true);
  ASSERT_TRUE(MayBeDivided());
  EXPECT_THAT(notes_, Contains(HasSubstr("dcgm.service has GPU-1 open again after each stop: "
                                         "something starts it")));
  EXPECT_EQ(Asked().size(), 4u);
}

TEST_F(ServicePauseTest, WhatStopsWithAServiceIsStartedAfterIt) {
  Unit("exporter.service");
  folder_.Write("units/dcgm.service.with", "exporter.service\n");
  users_ = {"dcgm.service"};
  loop_.Run([&] { pause_->Begin(); });
  Change(true);
  ASSERT_TRUE(MayBeDivided());
  EXPECT_FALSE(Runs("exporter.service"));
  Change(false);
  ASSERT_TRUE(loop_.AdvanceUntil(1ms, [&] { return Kept().empty(); }));
  EXPECT_THAT(Asked(),
              ElementsAre("stop dcgm.service", "start dcgm.service", "start exporter.service"));
  EXPECT_TRUE(Runs("exporter.service"));
}

TEST_F(ServicePauseTest, AServiceThatDoesNotStartIsTriedAgain) {
  folder_.Write("units/dcgm.service.no-start", "");
  loop_.Run([&] { pause_->Begin(); });
  Change(true);
  ASSERT_TRUE(MayBeDivided());
  Change(false);
  // It runs before the agent knows that.
  ASSERT_TRUE(loop_.AdvanceUntil(1ms, [&] { return Kept().size() == 1; }));
  EXPECT_TRUE(Runs("nvsm.service"));
  EXPECT_THAT(notes_, Contains(HasSubstr("ServiceNotStarted: dcgm.service was stopped while a "
                                         "device was divided, and cannot be started again")));
  EXPECT_THAT(Kept(), ElementsAre("dcgm.service"));
  std::filesystem::remove(folder_ / "units/dcgm.service.no-start");
  ASSERT_TRUE(loop_.AdvanceUntil(1s, [&] { return Kept().empty(); }));
  EXPECT_TRUE(Runs("dcgm.service"));
}

TEST_F(ServicePauseTest, AServiceThatWasRemovedMeanwhileIsForgotten) {
  loop_.Run([&] { pause_->Begin(); });
  Change(true);
  ASSERT_TRUE(MayBeDivided());
  std::filesystem::remove(folder_ / "units/dcgm.service");
  Change(false);
  ASSERT_TRUE(loop_.AdvanceUntil(1ms, [&] { return Kept().empty(); }));
  EXPECT_TRUE(Runs("nvsm.service"));
}

TEST_F(ServicePauseTest, NoServiceIsStoppedThatIsNotWrittenDown) {
  std::filesystem::remove(folder_ / "state");
  Change(true);
  // In steps of a second, the programs that it starts would have 20 ms for an answer.
  ASSERT_TRUE(loop_.AdvanceUntil(10ms, [&] { return Await().empty(); }));
  EXPECT_THAT(Asked(), IsEmpty());
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("no service is stopped: services.json cannot be "
                                            "written")));
}

TEST_F(ServicePauseTest, NothingIsStartedBeforeTheDevicesAreKnownOrForFiveMinutes) {
  Change(true);
  ASSERT_TRUE(MayBeDivided());
  Kill();
  changing_.clear();  // not known yet
  Start();
  Change(false);
  loop_.Advance(4min);
  EXPECT_THAT(Asked(), Not(Contains(HasSubstr("start"))));
  ASSERT_TRUE(loop_.AdvanceUntil(10s, [&] { return Kept().empty(); }));
  EXPECT_TRUE(AllRun());
}

/// The agent is killed after each request to the service manager, of stops and of starts; the
/// next one finds the change over, or goes on with it.
TEST_F(ServicePauseTest, AnAgentThatIsKilledAtAnyMomentLeavesTheNextOneToStartThem) {
  for (const bool goes_on : {false, true})
    for (std::size_t kill_after = 0; kill_after <= 4; ++kill_after) {
      SCOPED_TRACE(std::to_string(kill_after) + (goes_on ? ", goes on" : ""));
      std::filesystem::remove(folder_ / "asked");
      folder_.Write("asked", "");
      loop_.Run([&] { pause_->Begin(); });
      Change(true);
      const auto reached = [&] { return Asked().size() >= kill_after; };
      ASSERT_TRUE(loop_.AdvanceUntil(1ms, [&] { return Await().empty() || reached(); }));
      if (!reached()) {
        Change(false);
        ASSERT_TRUE(loop_.AdvanceUntil(1ms, reached));
      }
      Kill();
      if (!goes_on) changing_.clear();
      Start();
      loop_.Run([&] { pause_->Begin(); });
      if (!changing_.empty()) { ASSERT_TRUE(MayBeDivided()); }
      Change(false);
      ASSERT_TRUE(loop_.AdvanceUntil(1ms, [&] { return Kept().empty() && AllRun(); }));
    }
}

TEST_F(ServicePauseTest, TheListOfAmdsDeviceConfigManagerIsFollowed) {
  folder_.Write("config.json", R"({"gpu-config-profiles": {"p": {}}, )"
                               R"("gpuClientSystemdServices": {"names": ["dcgm"]}})");
  config_.mode_profiles_file = folder_ / "config.json";
  loop_.Run([&] { pause_->Configure(config_); });
  Change(true);
  ASSERT_TRUE(loop_.AdvanceUntil(1ms, [&] { return Await("device-config-manager").empty(); }));
  EXPECT_THAT(Asked(), ElementsAre("stop dcgm.service"));
}

}  // namespace
}  // namespace penstock::app
