// With an engine that pretends to run containers.
#include "app/agent/container_check.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/testing/eventually.h"
#include "os/testing/temporary_folder.h"
#include "protocol/engine/cri/fake/fake_engine.h"

namespace penstock::app {
namespace {

using node::validate::ContainerFacts;
using protocol::engine::cri::FakeEngine;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using State = ContainerFacts::State;

constexpr char kSpecification[] =
    R"({"cdiVersion":"0.5.0","kind":"k8s.device-plugin.acme.com/gpu","devices":[
         {"name":"A","containerEdits":{"deviceNodes":[{"path":"/dev/acme0"}]}},
         {"name":"B","containerEdits":{"deviceNodes":[{"path":"/dev/acme1"}]}}],
         "containerEdits":{"deviceNodes":[{"path":"/dev/acmectl"}]}})";

class ContainerCheckTest : public testing::Test {
 protected:
  ContainerCheckTest() {
    folder_.Write("cdi/acme.json", kSpecification);
    folder_.Write("penstock-probe", "");
    engine_.Start({});
    Begin({});
    control_.Start();
    io_.Start();
  }
  ~ContainerCheckTest() override {
    OnLoop([this] { check_.reset(); });
    io_.Stop();
    control_.Stop();
  }

  void Begin(const ContainerCheck::Times& times) {
    check_.emplace(
        control_, io_, [this] { Changed(); }, times);
    check_->Configure(api::NodeConfig());
  }

  /// Times that show what follows in a short time.
  void BeginQuick() {
    OnLoop([this] {
      const base::Duration some = std::chrono::milliseconds(200);
      Begin({.patience = some,
             .apart = some,
             .failure = some,
             .nothing = some,
             .late = some,
             .kubelet = some});
    });
  }

  /// As with a kubelet that ends each sandbox: it is tried again after a short time, and rarely
  /// once that is no chance.
  void BeginEnded(base::Duration rarely) {
    OnLoop([&] {
      const base::Duration some = std::chrono::milliseconds(10);
      Begin({.patience = some,
             .apart = some,
             .nothing = some,
             .most = rarely,
             .ended = some,
             .kubelet = some});
    });
    engine_.Change([](auto& says) { says.ends_sandboxes = true; });
    Follow();
  }

  ContainerCheck::Target Target() const {
    if (listed_) return *listed_;
    return {.start = {.socket = socket_,
                      .folder = folder_ / "cdi",
                      .own_program = folder_ / "penstock-probe",
                      .program = "/opt/penstock-probe",
                      .installed = true,
                      .instance = engine_instance_},
            .way = by_annotation_ ? "cdi-annotations" : "cdi-cri",
            .devices = devices_,
            .by_annotation = by_annotation_,
            .instance = driver_instance_};
  }

  /// As the agent: makes a report after each change.
  void Changed() {
    ++changes_;
    if (!follows_) return;
    control_.Post([this] {
      if (check_) check_->Follow(Target(), changing_);
    });
  }

  void Follow() {
    OnLoop([this] {
      follows_ = true;
      check_->Follow(Target(), changing_);
    });
  }

  void OnLoop(const std::function<void()>& work) {
    std::promise<void> done;
    control_.Post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  ContainerFacts Facts() {
    ContainerFacts facts;
    OnLoop([&] { facts = check_->facts(); });
    return facts;
  }

  ContainerFacts WaitFor(State state) {
    EXPECT_TRUE(os::Eventually([&] { return Facts().state == state; }));
    return Facts();
  }

  const os::TemporaryFolder folder_;
  const std::string socket_ = folder_ / "c.sock";
  FakeEngine engine_{socket_};
  std::optional<ContainerCheck::Target> listed_;  // what a pod gets without CDI
  std::string engine_instance_ = "1", driver_instance_ = "1";
  std::vector<std::string> devices_ = {"k8s.device-plugin.acme.com/gpu=A",
                                       "k8s.device-plugin.acme.com/gpu=B"};
  bool by_annotation_ = false, changing_ = false, follows_ = false;
  int changes_ = 0;
  os::Loop control_{"control"}, io_{"io"};
  std::optional<ContainerCheck> check_;
};

TEST_F(ContainerCheckTest, OneContainerOpensAllThatTheSpecificationsPromise) {
  Follow();
  EXPECT_EQ(WaitFor(State::kOpened).opened, 3u);
  ASSERT_THAT(engine_.containers(), SizeIs(1));
  const FakeEngine::Container made = engine_.containers()[0];
  EXPECT_THAT(made.devices,
              ElementsAre("k8s.device-plugin.acme.com/gpu=A", "k8s.device-plugin.acme.com/gpu=B"));
  EXPECT_THAT(made.files, ElementsAre("/dev/acme0", "/dev/acme1", "/dev/acmectl"));
  EXPECT_EQ(made.program, "/opt/penstock-probe");
  EXPECT_EQ(made.owner, "agent");
  EXPECT_TRUE(made.confined);
  EXPECT_EQ(engine_.sandboxes(), 0u);
}

TEST_F(ContainerCheckTest, TheNodeWaitsForTheFirstAnswerOnly) {
  OnLoop([this] {
    follows_ = true;
    check_->Follow(Target(), false);
    EXPECT_EQ(check_->facts().state, State::kWaiting) << "at once, before the step has passed";
  });
  WaitFor(State::kOpened);
  OnLoop([this] {
    engine_instance_ = "2";
    check_->Follow(Target(), false);
    EXPECT_EQ(check_->facts().state, State::kOpened) << "until the next one has answered";
  });
}

TEST_F(ContainerCheckTest, WithoutCdiAContainerGetsWhatPodsGet) {
  ContainerCheck::Target target = Target();
  target.start.runtime = "/p/runtime";
  target.devices = {"A"};
  target.files = {{"/dev/acme0", "/acme/dev/acme0", "rw"}};
  target.environment = {{"ACME_VISIBLE_DEVICES", "A"}};
  target.handler = "acme";
  target.promised = {"/dev/acme0"};
  listed_ = target;
  Follow();
  EXPECT_EQ(WaitFor(State::kOpened).opened, 1u);
  EXPECT_EQ(Facts().remark,
            "without a runtime handler: the engine has no runtime handler acme that is /p/runtime");
  ASSERT_THAT(engine_.containers(), SizeIs(1));
  const FakeEngine::Container made = engine_.containers()[0];
  EXPECT_EQ(made.files_given, "/acme/dev/acme0:/dev/acme0:rw ");
  EXPECT_EQ(made.environment, "ACME_VISIBLE_DEVICES=A ");
  EXPECT_THAT(made.files, ElementsAre("/dev/acme0"));
  EXPECT_THAT(made.devices, IsEmpty());
}

TEST_F(ContainerCheckTest, AHandlerIsTriedAndSaid) {
  engine_.Change([](auto& says) {
    says.config = R"({"containerd":{"runtimes":{"acme":{"options":{"BinaryName":"/p/runtime"}}}}})";
  });
  ContainerCheck::Target target = Target();
  target.start.runtime = "/p/runtime";
  target.devices = {"A"};
  target.environment = {{"ACME_VISIBLE_DEVICES", "A"}};
  target.handler = "acme";
  target.promised = {"/dev/acme0"};
  listed_ = target;
  Follow();
  WaitFor(State::kOpened);
  EXPECT_EQ(Facts().remark, "by the runtime handler acme");
  EXPECT_EQ(engine_.containers().at(0).handler, "acme");
}

TEST_F(ContainerCheckTest, WhereOnlyAHandlerGivesDevicesAndThereIsNoneItIsSaid) {
  ContainerCheck::Target target = Target();
  target.start.runtime = "/p/runtime";
  target.devices = {"A"};
  target.handler = "acme";
  target.promised = {"/dev/acme0"};
  listed_ = target;
  Follow();
  EXPECT_THAT(WaitFor(State::kNotTried).why,
              ElementsAre("the engine has no runtime handler acme that is /p/runtime"));
  EXPECT_THAT(engine_.containers(), IsEmpty());
}

TEST_F(ContainerCheckTest, WhatAnotherWayHasShownDoesNotCount) {
  OnLoop([this] { Begin({.apart = {}, .failure = std::chrono::hours(1)}); });
  engine_.Change([](auto& says) { says.errors = {{"/dev/acme1", EIO}}; });
  Follow();
  WaitFor(State::kFailed);
  ContainerCheck::Target target = Target();
  target.way = "volume-mounts";
  target.devices.clear();
  OnLoop([&] { check_->Follow(target, false); });
  EXPECT_EQ(Facts().state, State::kNone);
  engine_.Change([](auto& says) { says = {}; });
  Follow();
  WaitFor(State::kOpened);
  engine_.Change([](auto& says) { says.slow = true; });
  OnLoop([&] {
    by_annotation_ = true;
    check_->Follow(Target(), false);
    EXPECT_THAT(check_->facts().why, ElementsAre("it has not answered yet"))
        << "and the node waits for nothing";
  });
  engine_.Change([](auto& says) { says = {}; });
  WaitFor(State::kOpened);
}

TEST_F(ContainerCheckTest, ANodeThatServesDoesNotWaitAgainAfterAWayWithoutAContainer) {
  Follow();
  WaitFor(State::kOpened);
  ContainerCheck::Target none = Target();
  none.way = "envvar";
  none.devices.clear();
  OnLoop([&] { check_->Follow(none, false); });
  ASSERT_EQ(Facts().state, State::kNone);
  engine_.Change([](auto& says) { says.slow = true; });
  OnLoop([&] {
    check_->Follow(Target(), false);
    EXPECT_EQ(check_->facts().state, State::kNotTried) << "its step has passed";
  });
}

TEST_F(ContainerCheckTest, ANodeThatWaitsGoesOnWhenAnotherWayGivesNoDevice) {
  BeginQuick();
  engine_.Change([](auto& says) { says.slow = true; });
  ContainerCheck::Target none = Target();
  none.way = "envvar";
  none.devices.clear();
  OnLoop([&] {
    check_->Follow(Target(), false);
    EXPECT_EQ(check_->facts().state, State::kWaiting);
    check_->Follow(none, false);
    EXPECT_EQ(check_->facts().state, State::kNone);
    check_->Follow(Target(), false);
    EXPECT_EQ(check_->facts().state, State::kNotTried);
    check_->Follow(none, false);
  });
  EXPECT_EQ(Facts().state, State::kNone);
}

TEST_F(ContainerCheckTest, AtRestNoneIsStartedHoweverManyReportsAreMade) {
  OnLoop([this] { Begin({.apart = base::Duration::zero()}); });
  Follow();
  WaitFor(State::kOpened);
  int before = 0;
  OnLoop([&] { before = changes_; });
  for (int i = 0; i < 100; ++i) Follow();
  OnLoop([&] { EXPECT_EQ(changes_, before) << "nor anything else done"; });
  EXPECT_THAT(engine_.containers(), SizeIs(1));
}

TEST_F(ContainerCheckTest, AfterEachChangeOneIsStarted) {
  BeginQuick();
  Follow();
  std::size_t containers = 1;
  for (std::string* instance : {&engine_instance_, &driver_instance_}) {
    EXPECT_TRUE(os::Eventually([&] { return engine_.containers().size() == containers; }));
    OnLoop([&] { *instance += "+"; });
    Follow();
    ++containers;
  }
  EXPECT_TRUE(os::Eventually([&] { return engine_.containers().size() == containers; }));
}

TEST_F(ContainerCheckTest, AnotherDeviceOrAnotherWayToNameThemIsTriedAndOneDeviceLessIsNot) {
  OnLoop([this] {
    Begin({.apart = base::Duration::zero()});
    devices_ = {"k8s.device-plugin.acme.com/gpu=A"};
  });
  const auto with = [this](std::vector<std::string> devices, bool by_annotation) {
    OnLoop([&] {
      devices_ = std::move(devices);
      by_annotation_ = by_annotation;
    });
    Follow();
    EXPECT_TRUE(os::Eventually([this] { return engine_.sandboxes() == 0; }));
  };
  Follow();
  EXPECT_EQ(WaitFor(State::kOpened).opened, 2u);
  with({"k8s.device-plugin.acme.com/gpu=A", "k8s.device-plugin.acme.com/gpu=B"}, false);
  EXPECT_TRUE(os::Eventually([this] { return Facts().opened == 3; }));
  with({"k8s.device-plugin.acme.com/gpu=B"}, false);
  with({"k8s.device-plugin.acme.com/gpu=B"}, true);
  EXPECT_TRUE(os::Eventually([this] { return Facts().opened == 2; }));
  ASSERT_THAT(engine_.containers(), SizeIs(3));
  EXPECT_THAT(engine_.containers()[2].annotations, HasSubstr("gpu=B"));
}

TEST_F(ContainerCheckTest, AFailureIsTriedAgainAtOnceWithoutADeviceThatIsGone) {
  OnLoop([this] { Begin({.apart = {}, .failure = std::chrono::hours(1)}); });
  engine_.Change([](auto& says) { says.errors = {{"/dev/acme1", EIO}}; });
  Follow();
  WaitFor(State::kFailed);
  OnLoop([this] { devices_.pop_back(); });
  Follow();
  WaitFor(State::kOpened);
}

TEST_F(ContainerCheckTest, ChangesThatFollowEachOtherHaveOneContainer) {
  Follow();
  WaitFor(State::kOpened);
  for (std::string* instance : {&engine_instance_, &driver_instance_}) {
    OnLoop([&] { *instance += "+"; });
    Follow();
  }
  EXPECT_THAT(engine_.containers(), SizeIs(1)) << "and half a minute later another one";
}

TEST_F(ContainerCheckTest, AFailureIsTriedAgainUntilItIsNone) {
  BeginQuick();
  engine_.Change([](auto& says) { says.errors = {{"/dev/acme1", ENOENT}}; });
  Follow();
  EXPECT_THAT(WaitFor(State::kFailed).why, ElementsAre(HasSubstr("was not injected")));
  EXPECT_TRUE(os::Eventually([this] { return engine_.containers().size() >= 2; }));
  EXPECT_EQ(Facts().state, State::kFailed);
  engine_.Change([](auto& says) { says.errors.clear(); });
  WaitFor(State::kOpened);
}

TEST_F(ContainerCheckTest, ADeviceFileThatNoDriverServesIsNotCountedAsOpened) {
  engine_.Change([](auto& says) { says.errors = {{"/dev/acme1", ENXIO}, {"/dev/acme0", ENXIO}}; });
  Follow();
  EXPECT_EQ(WaitFor(State::kOpened).opened, 1u);
  EXPECT_EQ(Facts().unserved, 2u);
}

TEST_F(ContainerCheckTest, WhatCannotBeOpenedIsAFailureWithItsCause) {
  engine_.Change([](auto& says) { says.errors = {{"/dev/acme1", EPERM}, {"/dev/acme0", ENXIO}}; });
  Follow();
  EXPECT_THAT(WaitFor(State::kFailed).why,
              ElementsAre(AllOf(HasSubstr("/dev/acme1"), HasSubstr("control group"))));
}

TEST_F(ContainerCheckTest, AnEngineThatRefusesTheDevicesIsAFailureAndOneThatRefusesAllIsNone) {
  engine_.Change([](auto& says) { says.refuses = "unresolvable CDI devices\n"; });
  Follow();
  EXPECT_THAT(WaitFor(State::kFailed).why,
              ElementsAre(HasSubstr("does not start: unresolvable CDI devices")));
  ASSERT_THAT(engine_.containers(), SizeIs(3));
  EXPECT_THAT(engine_.containers()[1].devices, IsEmpty()) << "to see whether another one starts";
  EXPECT_THAT(engine_.containers()[2].devices, SizeIs(2)) << "to see whether it was chance";
}

TEST_F(ContainerCheckTest, AReasonIsTheSameEachTime) {
  engine_.Change([](auto& says) {
    says.refuses = "sandbox 0123456789abcdef: open /proc/4711/ns/net: abcdef0 is no id";
  });
  Follow();
  EXPECT_THAT(WaitFor(State::kFailed).why,
              ElementsAre(HasSubstr(": sandbox …: open /proc/…/ns/net: abcdef0 is no id")));
}

TEST_F(ContainerCheckTest, OneRefusalIsNoFailure) {
  engine_.Change([](auto& says) { says.refuses_once = "task does not exist"; });
  Follow();
  WaitFor(State::kOpened);
  EXPECT_THAT(engine_.containers(), SizeIs(3));
}

TEST_F(ContainerCheckTest, AnEngineThatStartsNoContainerSaysNothingAboutTheDevices) {
  BeginQuick();
  engine_.Change([](auto& says) { says.refuses_all = "no space left on device"; });
  Follow();
  EXPECT_TRUE(os::Eventually([this] { return engine_.containers().size() >= 4; }))
      << "it is tried again";
  EXPECT_THAT(WaitFor(State::kNotTried).why, ElementsAre(HasSubstr("also one without devices")));
}

TEST_F(ContainerCheckTest, AContainerThatTheKubeletEndsIsTriedAgain) {
  engine_.Change([](auto& says) { says.ends_sandboxes = true; });
  Follow();
  EXPECT_TRUE(os::Eventually([this] { return engine_.containers().size() >= 2; }));
  EXPECT_NE(Facts().state, State::kFailed);
  engine_.Change([](auto& says) { says.ends_sandboxes = false; });
  WaitFor(State::kOpened);
}

TEST_F(ContainerCheckTest, OneThatIsEndedAgainAndAgainIsTriedSoonUntilItIsNoChance) {
  BeginEnded(std::chrono::hours(1));
  EXPECT_TRUE(os::Eventually([this] { return engine_.containers().size() == 10; }))
      << "soon, however many there were";
  EXPECT_THAT(WaitFor(State::kNotTried).why,
              ElementsAre(AllOf(HasSubstr("another program ended it"), HasSubstr("not running"))));
  engine_.Change([](auto& says) { says = {}; });
  OnLoop([&] { engine_instance_ += "+"; });
  Follow();
  WaitFor(State::kOpened);
  EXPECT_THAT(engine_.containers(), SizeIs(11)) << "at once, since something changed";
}

TEST_F(ContainerCheckTest, OneThatIsNotEndedByChanceIsTriedRarely) {
  const base::Duration rarely = std::chrono::milliseconds(300);
  BeginEnded(rarely);
  EXPECT_TRUE(os::Eventually([this] { return engine_.containers().size() >= 13; }));
  const auto made = engine_.containers();
  for (std::size_t i = 10; i < 13; ++i) EXPECT_GE(made[i].at - made[i - 1].at, rarely) << i;
}

TEST_F(ContainerCheckTest, DevicesWithWhichNoContainerEndsInTimeAreAFailureAfterThreeRuns) {
  BeginQuick();
  engine_.Change([](auto& says) { says.hangs = true; });
  Follow();
  EXPECT_THAT(WaitFor(State::kFailed).why,
              ElementsAre("a container with the devices does not end within 30 s; one without them "
                          "does"));
  ASSERT_THAT(engine_.containers(), SizeIs(6)) << "one without devices after each";
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(engine_.containers()[i].devices.empty(), i % 2 == 1) << i;
  EXPECT_TRUE(os::Eventually([this] { return engine_.containers().size() >= 8; }));
  EXPECT_EQ(Facts().state, State::kFailed) << "and remains one";
  engine_.Change([](auto& says) { says.hangs = false; });
  WaitFor(State::kOpened);
}

TEST_F(ContainerCheckTest, AnAnswerInBetweenBeginsTheCountOfLateOnesAnew) {
  BeginQuick();
  const auto without_devices = [this] {
    const auto made = engine_.containers();
    return std::ranges::count_if(made, [](const auto& one) { return one.devices.empty(); });
  };
  const auto says = [this](const std::string& part) {
    const std::vector<std::string> why = Facts().why;
    return !why.empty() && why[0].find(part) != std::string::npos;
  };
  engine_.Change([](auto& now) { now.hangs = true; });
  Follow();
  EXPECT_TRUE(os::Eventually([&] { return without_devices() >= 1; }));
  engine_.Change([](auto& now) { now = {.errors = {{"/dev/acme1", ENOENT}}}; });
  EXPECT_TRUE(os::Eventually([&] { return says("was not injected"); }));
  const auto before = without_devices();
  engine_.Change([](auto& now) { now = {.hangs = true}; });
  EXPECT_TRUE(os::Eventually([&] { return says("does not end within"); }));
  EXPECT_GE(without_devices(), before + 3);
}

TEST_F(ContainerCheckTest, AnEngineWithWhichNoContainerEndsInTimeSaysNothingAboutTheDevices) {
  BeginQuick();
  engine_.Change([](auto& says) { says.hangs_all = true; });
  Follow();
  EXPECT_TRUE(os::Eventually([this] { return engine_.containers().size() >= 8; }));
  EXPECT_THAT(WaitFor(State::kNotTried).why,
              ElementsAre("also one without devices does not end within 30 s"));
}

TEST_F(ContainerCheckTest, NoneIsStartedWhileDevicesAreChanged) {
  BeginQuick();
  OnLoop([this] { changing_ = true; });
  Follow();
  EXPECT_THAT(WaitFor(State::kNotTried).why, ElementsAre("a change of devices is under way"));
  EXPECT_THAT(engine_.containers(), IsEmpty());
  OnLoop([this] { changing_ = false; });
  Follow();
  WaitFor(State::kOpened);
}

TEST_F(ContainerCheckTest, OneThatRunsWhenAChangeBeginsIsGivenUpAndTriedAgainAfterIt) {
  BeginQuick();
  engine_.Change([](auto& says) {
    says.errors = {{"/dev/acme1", ENOENT}};
    says.slow = true;
  });
  Follow();
  EXPECT_TRUE(os::Eventually([this] { return engine_.waiting() == 1; }));
  OnLoop([this] { changing_ = true; });
  Follow();
  engine_.Change([](auto& says) { says = {}; });
  EXPECT_THAT(WaitFor(State::kNotTried).why, ElementsAre("a change of devices is under way"));
  EXPECT_THAT(engine_.containers(), SizeIs(1));
  OnLoop([this] { changing_ = false; });
  Follow();
  WaitFor(State::kOpened);
  EXPECT_THAT(engine_.containers(), SizeIs(2));
  EXPECT_TRUE(os::Eventually([this] { return engine_.sandboxes() == 0; }));
}

TEST_F(ContainerCheckTest, OneThatRunsWhenItsNeedsAreGoneIsGivenUp) {
  BeginQuick();
  engine_.Change([](auto& says) { says.slow = true; });
  OnLoop([this] { check_->Follow(Target(), false); });
  EXPECT_TRUE(os::Eventually([this] { return engine_.waiting() == 1; }));
  int before = 0;
  OnLoop([&] {
    before = changes_;
    check_->GiveUp();
    EXPECT_EQ(changes_, before + 1) << "a report follows";
    check_->GiveUp();
    EXPECT_EQ(changes_, before + 1) << "not after one that found nothing to give up";
  });
  engine_.Change([](auto& says) { says = {}; });
  EXPECT_TRUE(os::Eventually([this] { return engine_.waiting() == 0; }));
  EXPECT_THAT(WaitFor(State::kNotTried).why, ElementsAre("something changed meanwhile"));
  Follow();
  WaitFor(State::kOpened);
  EXPECT_THAT(engine_.containers(), SizeIs(2));
}

TEST_F(ContainerCheckTest, OneWhoseSpecificationsAreStillReadIsGivenUpToo) {
  BeginQuick();
  std::promise<void> reads;
  io_.Post([&] { reads.get_future().wait(); });
  OnLoop([this] {
    check_->Follow(Target(), false);
    check_->GiveUp();
  });
  reads.set_value();
  std::promise<void> read;
  io_.Post([&] { read.set_value(); });
  read.get_future().wait();
  EXPECT_THAT(WaitFor(State::kNotTried).why, ElementsAre("something changed meanwhile"));
  EXPECT_THAT(engine_.containers(), IsEmpty());
  Follow();
  WaitFor(State::kOpened);
  EXPECT_THAT(engine_.containers(), SizeIs(1));
}

TEST_F(ContainerCheckTest, OneThatIsGivenUpWhileItIsSwitchedOffSaysNothing) {
  engine_.Change([](auto& says) { says.slow = true; });
  OnLoop([this] { check_->Follow(Target(), false); });
  EXPECT_TRUE(os::Eventually([this] { return engine_.waiting() == 1; }));
  api::NodeConfig config;
  config.validation.container = false;
  OnLoop([&] {
    check_->Configure(config);
    check_->GiveUp();
  });
  EXPECT_THAT(Facts().why, ElementsAre("validation.container is off"));
  config.validation.container = true;
  OnLoop([&] { check_->Configure(config); });
  engine_.Change([](auto& says) { says = {}; });
  Follow();
  WaitFor(State::kOpened);
  EXPECT_THAT(engine_.containers(), SizeIs(2)) << "the answer of the other one came too late";
}

TEST_F(ContainerCheckTest, AFailureIsTriedAgainAsSoonAsAChangeHasEnded) {
  OnLoop([this] { Begin({.apart = {}, .failure = std::chrono::hours(1)}); });
  engine_.Change([](auto& says) { says.errors = {{"/dev/acme1", ENOENT}}; });
  Follow();
  WaitFor(State::kFailed);
  engine_.Change([](auto& says) { says = {}; });
  for (const bool changing : {true, false}) {
    OnLoop([&] { changing_ = changing; });
    Follow();
  }
  WaitFor(State::kOpened);
}

TEST_F(ContainerCheckTest, WithoutAnImageItIsSaidAndTriedAgain) {
  BeginQuick();
  engine_.Change([](auto& says) { says.pinned = false; });
  Follow();
  EXPECT_TRUE(os::Eventually([this] {
    const std::vector<std::string> why = Facts().why;
    return Facts().state == State::kNotTried && why.size() == 1 &&
           why[0].find("no image") != std::string::npos;
  })) << "before, that it has not answered yet";
  engine_.Change([](auto& says) { says.pinned = true; });
  WaitFor(State::kOpened);
}

TEST_F(ContainerCheckTest, WithoutTheProgramItIsSaidAndNotTriedAgain) {
  std::filesystem::remove(folder_ / "penstock-probe");
  Follow();
  EXPECT_THAT(WaitFor(State::kNotTried).why,
              ElementsAre("there is no " + folder_ / "penstock-probe"));
  EXPECT_THAT(engine_.containers(), IsEmpty());
}

TEST_F(ContainerCheckTest, AnEngineThatDoesNotAnswerHoldsTheNodeForAShortTime) {
  BeginQuick();
  engine_.Change([](auto& says) { says.silent = true; });
  Follow();
  EXPECT_THAT(WaitFor(State::kNotTried).why, ElementsAre("it has not answered yet"));
}

TEST_F(ContainerCheckTest, NoneIsStartedForNoDevice) {
  ContainerCheck::Target target = Target();
  target.devices.clear();
  OnLoop([&] { check_->Follow(target, false); });
  EXPECT_EQ(Facts().state, State::kNone);
}

TEST_F(ContainerCheckTest, RemovesWhatAKilledAgentLeft) {
  engine_.Leave("agent");
  Follow();
  WaitFor(State::kOpened);
  EXPECT_TRUE(os::Eventually([this] { return engine_.sandboxes() == 0; }));
}

TEST_F(ContainerCheckTest, CanBeSwitchedOffAndOn) {
  api::NodeConfig config;
  config.validation.container = false;
  OnLoop([&] { check_->Configure(config); });
  Follow();
  EXPECT_THAT(Facts().why, ElementsAre("validation.container is off"));
  EXPECT_THAT(engine_.containers(), IsEmpty());
  config.validation.container = true;
  OnLoop([&] { check_->Configure(config); });
  EXPECT_EQ(Facts().state, State::kNotTried) << "a step that has passed waits for nothing";
  EXPECT_THAT(Facts().why, ElementsAre("it has not answered yet"));
  Follow();
  WaitFor(State::kOpened);
  for (const bool on : {false, true}) {
    config.validation.container = on;
    OnLoop([&] { check_->Configure(config); });
  }
  Follow();
  WaitFor(State::kOpened);
  EXPECT_THAT(engine_.containers(), SizeIs(2)) << "at once, not half a minute later";
}

}  // namespace
}  // namespace penstock::app
