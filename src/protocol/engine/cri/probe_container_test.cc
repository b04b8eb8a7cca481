// Runs the probe with an engine that pretends to, and reads what engines say of their sandboxes.
#include "protocol/engine/cri/probe_container.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/testing/temporary_folder.h"
#include "protocol/engine/cri/fake/fake_engine.h"

namespace penstock::protocol::engine::cri {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr base::Duration kPatience = std::chrono::seconds(60);

class ProbeContainerTest : public testing::Test {
 protected:
  ProbeContainerTest() { engine_.Start({}); }

  ProbeAnswer Run(ProbeContainer container = {}) {
    os::Loop loop("test");
    ProbeAnswer answer;
    container.socket = socket_;
    container.program = "/opt/penstock-probe";
    container.log_folder = log_folder_;
    container.files = {"/dev/acme0", "/lib/libacme.so"};
    if (container.cdi_devices.empty() && container.handler.empty())
      container.cdi_devices = {"k8s.acme.com/gpu=A"};
    const ProbeRun run(loop, std::move(container), patience_, [&](const ProbeAnswer& given) {
      answer = given;
      loop.Stop();
    });
    loop.Run();
    return answer;
  }

  const os::TemporaryFolder folder_;
  const std::string socket_ = folder_ / "c.sock";
  std::string log_folder_ = "/var/lib/penstock";
  base::Duration patience_ = kPatience;
  FakeEngine engine_{socket_};
};

TEST_F(ProbeContainerTest, WithoutAFolderForItsLogNoneIsStarted) {
  for (const char* folder : {"", "logs"}) {
    log_folder_ = folder;
    const ProbeAnswer answer = Run();
    EXPECT_EQ(answer.kind, ProbeAnswer::Kind::kNotTried);
    EXPECT_THAT(answer.text, HasSubstr("no folder for its log"));
  }
  EXPECT_THAT(engine_.containers(), IsEmpty());
}

TEST_F(ProbeContainerTest, OpensTheFilesInAContainerOfTheEnginesOwnImageAndLeavesNothing) {
  engine_.Change([](auto& says) { says.errors = {{"/dev/acme0", ENXIO}}; });
  const ProbeAnswer answer = Run();
  EXPECT_EQ(answer.kind, ProbeAnswer::Kind::kAnswered) << answer.text;
  EXPECT_EQ(answer.text, "6 /dev/acme0\n0 /lib/libacme.so\n");
  ASSERT_THAT(engine_.containers(), SizeIs(1));
  const FakeEngine::Container made = engine_.containers()[0];
  EXPECT_EQ(made.image, "sha256:pause") << "neither by name, nor a user's";
  EXPECT_EQ(made.program, "/opt/penstock-probe");
  EXPECT_THAT(made.command, ElementsAre("/penstock-probe", "--wait", "60"));
  EXPECT_THAT(made.devices, ElementsAre("k8s.acme.com/gpu=A"));
  EXPECT_THAT(made.files, ElementsAre("/dev/acme0", "/lib/libacme.so"));
  EXPECT_TRUE(made.confined);
  EXPECT_EQ(made.log, "/var/lib/penstock/penstock-proof.log") << "a kubelet removes LOG*";
  EXPECT_EQ(made.cgroup_parent, "") << "of which this engine says nothing";
  EXPECT_EQ(engine_.sandboxes(), 0u);
}

TEST_F(ProbeContainerTest, ASandboxStartsInASliceWhereTheEngineUsesSystemd) {
  engine_.Change([](auto& says) {
    says.config = R"({"containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{"options":
                      {"SystemdCgroup":true}}}}})";
  });
  EXPECT_EQ(Run().kind, ProbeAnswer::Kind::kAnswered);
  EXPECT_EQ(engine_.containers()[0].cgroup_parent, "system.slice");
}

TEST_F(ProbeContainerTest, NamesDevicesInAnAnnotationWhereTheEngineReadsThemThere) {
  Run({.cdi_devices = {"acme.com/gpu=A", "acme.com/gpu=B"}, .by_annotation = true});
  EXPECT_THAT(engine_.containers()[0].devices, IsEmpty());
  EXPECT_EQ(engine_.containers()[0].annotations,
            "cdi.k8s.io/penstock-proof=acme.com/gpu=A,acme.com/gpu=B");
}

TEST_F(ProbeContainerTest, WhatTheEngineRefusesIsToldFromWhatAnotherProgramEnded) {
  engine_.Change([](auto& says) { says.refuses = "unresolvable CDI devices"; });
  ProbeAnswer answer = Run();
  EXPECT_EQ(answer.kind, ProbeAnswer::Kind::kRefused);
  EXPECT_EQ(answer.text, "unresolvable CDI devices");
  engine_.Change([](auto& says) { says.ends_sandboxes = true; });
  answer = Run();
  EXPECT_EQ(answer.kind, ProbeAnswer::Kind::kEnded);
  EXPECT_THAT(answer.text, HasSubstr("not running"));
  EXPECT_EQ(engine_.sandboxes(), 0u);
}

TEST_F(ProbeContainerTest, AContainerThatWasStoppedOrCollectedOrKilledHasEnded) {
  for (const FakeEngine::Says& says :
       {FakeEngine::Says{.collects = true}, FakeEngine::Says{.no_exec = "cannot exec"},
        FakeEngine::Says{.exit_code = 137}}) {
    engine_.Change([&](auto& now) { now = says; });
    EXPECT_EQ(Run().kind, ProbeAnswer::Kind::kEnded);
  }
  engine_.Change([](auto& says) { says = {.exit_code = 1}; });
  EXPECT_EQ(Run().kind, ProbeAnswer::Kind::kNotTried) << "the program itself failed";
}

TEST_F(ProbeContainerTest, OneThatDoesNotStartInTimeIsLate) {
  engine_.Change([](auto& says) { says.hangs = true; });
  EXPECT_EQ(Run().kind, ProbeAnswer::Kind::kLate);
  EXPECT_EQ(engine_.sandboxes(), 0u);
}

TEST_F(ProbeContainerTest, AnEngineThatDoesNotStartSandboxesInTimeHasTriedNothing) {
  engine_.Change([](auto& says) { says.silent = true; });
  patience_ = std::chrono::milliseconds(50);
  EXPECT_EQ(Run().kind, ProbeAnswer::Kind::kNotTried);
}

TEST_F(ProbeContainerTest, AKubeletFindsTheContainerInItsSandboxAndStopsItFirst) {
  Run();
  const FakeEngine::Container made = engine_.containers().at(0);
  EXPECT_EQ(made.labels.at("io.kubernetes.pod.uid"), made.uid);
  EXPECT_THAT(made.uid, HasSubstr("penstock-proof")) << "no pod's";
}

TEST_F(ProbeContainerTest, WithoutAnImageOfTheEngineNoneIsTaken) {
  engine_.Change([](auto& says) { says.pinned = false; });
  const ProbeAnswer answer = Run();
  EXPECT_EQ(answer.kind, ProbeAnswer::Kind::kNotTried);
  EXPECT_EQ(answer.text, "the engine reports no image of its own to start it from");
  EXPECT_THAT(engine_.containers(), IsEmpty());
  engine_.Change(
      [](auto& says) { says.config = R"({"sandboxImage":"registry.k8s.io/pause:3.8"})"; });
  EXPECT_EQ(Run().kind, ProbeAnswer::Kind::kAnswered) << "that it names itself";
  engine_.Change(
      [](auto& says) { says.config = R"({"sandboxImage":"registry.k8s.io/pause@sha256:p"})"; });
  EXPECT_EQ(Run().kind, ProbeAnswer::Kind::kAnswered) << "by its digest";
  engine_.Change(
      [](auto& says) { says.config = R"({"sandboxImage":"registry.k8s.io/pause:3.9"})"; });
  EXPECT_EQ(Run().kind, ProbeAnswer::Kind::kNotTried) << "the engine would pull it";
  engine_.Change([](auto& says) { says.pinned = true; });
  EXPECT_EQ(Run().kind, ProbeAnswer::Kind::kNotTried) << "whatever else it keeps";
  engine_.Change([](auto& says) { says.config = ""; });
  EXPECT_EQ(Run().kind, ProbeAnswer::Kind::kAnswered) << "of the image that it keeps";
  EXPECT_EQ(engine_.containers().back().image, "sha256:pause");
}

TEST_F(ProbeContainerTest, AHandlerStartsItWhereItIsPenstocksAndTheDefaultWhereItIsNot) {
  const ProbeContainer wanted = {.cdi_devices = {},
                                 .devices = {{"/dev/acme0", "/acme/dev/acme0", "rw"}},
                                 .environment = {{"ACME_VISIBLE_DEVICES", "A"}},
                                 .handler = "acme",
                                 .runtime = "/p/runtime"};
  engine_.Change([](auto& says) {
    says.config = R"({"containerd":{"defaultRuntimeName":"runc","runtimes":{
        "runc":{"options":{"BinaryName":"/usr/bin/runc"}},
        "acme":{"options":{"BinaryName":"/p/runtime","SystemdCgroup":true}}}}})";
  });
  EXPECT_TRUE(Run(wanted).handled);
  const FakeEngine::Container by_handler = engine_.containers().back();
  EXPECT_EQ(by_handler.handler, "acme");
  EXPECT_EQ(by_handler.cgroup_parent, "system.slice") << "as that handler needs";
  EXPECT_EQ(by_handler.environment, "ACME_VISIBLE_DEVICES=A ");
  EXPECT_EQ(by_handler.files_given, "/acme/dev/acme0:/dev/acme0:rw ");
  EXPECT_THAT(by_handler.devices, IsEmpty());
  engine_.Change([](auto& says) { says.refuses_handler = "/p/runtime: permission denied"; });
  EXPECT_EQ(Run(wanted).kind, ProbeAnswer::Kind::kRefused);
  engine_.Change([](auto& says) {
    says.config = R"({"containerd":{"defaultRuntimeName":"runc","runtimes":{
        "runc":{},"acme":{"options":{"BinaryName":"/usr/bin/another-runtime"}}}}})";
  });
  EXPECT_FALSE(Run(wanted).handled);
  EXPECT_EQ(engine_.containers().back().handler, "");
  EXPECT_EQ(engine_.containers().back().cgroup_parent, "/");
  ProbeContainer by_variable = wanted;
  by_variable.devices.clear();
  const ProbeAnswer answer = Run(by_variable);
  EXPECT_EQ(answer.kind, ProbeAnswer::Kind::kNotTried);
  EXPECT_EQ(answer.text, "the engine has no runtime handler acme that is /p/runtime");
  EXPECT_THAT(engine_.containers(), SizeIs(2));
}

TEST_F(ProbeContainerTest, RemovesWhatAFormerRunOfItsOwnerLeft) {
  engine_.Leave("agent");
  engine_.Leave("other");
  Run({.owner = "agent"});
  EXPECT_EQ(engine_.containers()[0].owner, "agent");
  EXPECT_EQ(engine_.sandboxes(), 1u) << "that of the other";
}

TEST_F(ProbeContainerTest, APodThatAUserLabelledLikeThatIsLeftAlone) {
  engine_.Leave("agent", "0f2c3f0e-6e0a-4a5b-9a55-3a1c2b7d9e11");
  EXPECT_EQ(Run({.owner = "agent"}).kind, ProbeAnswer::Kind::kAnswered);
  EXPECT_EQ(engine_.sandboxes(), 1u);
}

TEST_F(ProbeContainerTest, FailsWhereNoOneListens) {
  engine_.Stop();
  const auto output = RunContainer({.socket = socket_, .image = "i", .program = "/p"}, kPatience);
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().code(), base::Code::kUnavailable);
  EXPECT_NE(output.error().message().find(socket_), std::string::npos);
}

TEST(SandboxSettings, AreReadFromWhatAnEngineSaysOfItself) {
  EXPECT_EQ(SandboxSettingsIn(""), SandboxSettings());
  EXPECT_EQ(SandboxSettingsIn("[crio.image]\npause_image = \"p\""), SandboxSettings());
  EXPECT_EQ(SandboxSettingsIn(R"({"sandboxImage":"registry.k8s.io/pause:3.10"})"),
            (SandboxSettings{.image = "registry.k8s.io/pause:3.10", .cgroup_parent = ""}))
      << "of CRI-O";
  EXPECT_EQ(SandboxSettingsIn(R"({"sandboxImage":5,"containerd":{"runtimes":[]}})"),
            SandboxSettings());
  EXPECT_EQ(SandboxSettingsIn(R"({"sandboxImage":"p:1","containerd":{"defaultRuntimeName":"r",
                "runtimes":{"r":{"options":{"SystemdCgroup":true}},
                            "s":{"options":{"SystemdCgroup":false}}}}})"),
            (SandboxSettings{.image = "p:1", .cgroup_parent = "system.slice"}));
  EXPECT_EQ(SandboxSettingsIn(R"({"containerd":{"defaultRuntimeName":"r","runtimes":{"r":{}}}})"),
            (SandboxSettings{.image = "", .cgroup_parent = "/"}));
}

TEST_F(ProbeContainerTest, OnesThatCannotBeRemovedKeepNoOtherFromStartingUntilThereAreMany) {
  const ProbeContainer owned = {.owner = "agent"};
  engine_.Change([](auto& says) { says.keeps_sandboxes = true; });
  for (int run = 0; run < 5; ++run) EXPECT_EQ(Run(owned).kind, ProbeAnswer::Kind::kAnswered) << run;
  const ProbeAnswer answer = Run(owned);
  EXPECT_EQ(answer.kind, ProbeAnswer::Kind::kNotTried);
  EXPECT_EQ(answer.text, "those that were started before cannot be removed: a process hangs");
  EXPECT_EQ(engine_.sandboxes(), 5u);
  engine_.Change([](auto& says) { says.keeps_sandboxes = false; });
  EXPECT_EQ(Run(owned).kind, ProbeAnswer::Kind::kAnswered);
  EXPECT_EQ(engine_.sandboxes(), 0u);
}

}  // namespace
}  // namespace penstock::protocol::engine::cri
