// Tests EngineReconciler against an engine, containerd 2.1, that is this process on a fake machine
// in a folder.
#include "adapter/kubelet/engine_reconciler.h"

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/core/file.h"
#include "os/testing/eventually.h"
#include "os/testing/run_on.h"
#include "os/testing/temporary_folder.h"
#include "protocol/engine/cri/fake/fake_engine.h"
#include "protocol/engine/testing/fake_machine.h"

namespace penstock::adapter::kubelet {
namespace {

using api::EngineSetup::kCdi;
using api::EngineSetup::kOff;
using api::EngineSetup::kRuntime;
using protocol::engine::cri::EngineWatcher;
using protocol::engine::cri::FakeEngine;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

constexpr char kCdiOff[] = R"({"enableCDI":false})", kCdiOn[] = R"({"enableCDI":true})";

class EngineReconcilerTest : public testing::Test {
 protected:
  EngineReconcilerTest() {
    folder_.Write("etc/config.toml", "version = 3\n");
    machine_.SeeItsFiles();
    BeTheEngine("/containerd");
    WriteProgram(program_, "[ \"$1\" = --version ] && echo containerd v2.1.0 && exit\ncat " +
                               drop_in_ + " 2>/dev/null || echo 'version = 3'");
    loop_.Start();
    io_.Start();
  }
  ~EngineReconcilerTest() override {
    On([this] {
      on_engine_.Reset();
      setup_.reset();
      watcher_.reset();
    });
    loop_.Stop();
    io_.Stop();
  }

  void Begin(const char* says_of_cdi, api::EngineSetup wanted) {
    engine_.Start({.version = "2.1.0", .config = says_of_cdi});
    On([&] {
      watcher_ = std::make_unique<EngineWatcher>(
          loop_, io_,
          EngineWatcher::Options{
              .socket = socket_, .within = 60s, .retry = 1ms, .retry_most = 20ms});
      setup_ = std::make_unique<EngineReconciler>(
          loop_, *watcher_,
          EngineReconciler::Options{.state_dir = folder_ / "state",
                                    .proc_root = machine_.proc(),
                                    .runtime = "/opt/penstock-runtime",
                                    .failed = [this] { ++failed_; }});
      on_engine_ =
          watcher_->published().Subscribe([this](const auto&) { setup_->EngineChanged(); });
      setup_->Configure(wanted, handlers_);
    });
  }
  void Configure(api::EngineSetup wanted) {
    On([&] { setup_->Configure(wanted, handlers_); });
  }
  /// Whether the engine answered with this version and the answer was processed.
  bool IsKnownAs(const std::string& version) {
    return os::Eventually([&] {
      bool is_known = false;
      On([&] {
        const auto known = watcher_->published().Get();
        is_known = known->engine && known->engine->version == version;
      });
      return is_known;
    });
  }

  std::string Problem() {
    std::string problem;
    On([&] { problem = setup_->problem(); });
    return problem;
  }
  std::string DropIn() const { return os::ReadFile(drop_in_).value_or(""); }
  /// How often the engine's program was asked for its version, with which each attempt starts.
  std::size_t Attempts() const { return os::ReadFile(folder_ / "asked").value_or("").size(); }

  void On(const std::function<void()>& function) { os::RunOn(loop_, function); }

  void WriteProgram(const std::string& path, const std::string& lines) const {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    ASSERT_TRUE(os::WriteFileAtomically(path,
                                        "#!/bin/sh\n[ \"$1\" != --version ] || printf x >> " +
                                            folder_ / "asked" + "\n" + lines + "\n",
                                        0700)
                    .ok());
  }
  /// Makes this process the one that listens for the engine, with this executable.
  void BeTheEngine(const std::string& program) {
    machine_.Process(::getpid(), program, "containerd --config " + folder_ / "etc/config.toml");
    machine_.Cgroup(::getpid(), "/");
  }

  const os::TemporaryFolder folder_;
  protocol::engine::FakeMachine machine_;
  const std::string program_ = machine_.ProgramHere("/containerd");
  const std::string socket_ = folder_ / "engine.sock",
                    drop_in_ = folder_ / "etc/conf.d/99-penstock.toml";
  FakeEngine engine_{socket_};
  os::Loop loop_{"test"}, io_{"io"};
  std::vector<std::string> handlers_ = {"nvidia"};
  int failed_ = 0;
  std::unique_ptr<EngineWatcher> watcher_;
  std::unique_ptr<EngineReconciler> setup_;
  base::Subscription on_engine_;
};

// One change is made at a time: once another one is done, an attempt before it would have been
// counted.
TEST_F(EngineReconcilerTest, SwitchesCdiOnWhereItIsOffAndAsksTheEngineAgain) {
  Begin(kCdiOff, kCdi);
  EXPECT_TRUE(os::Eventually([this] { return engine_.asked() >= 2; }));
  EXPECT_THAT(DropIn(), HasSubstr("enable_cdi = true"));
  EXPECT_THAT(DropIn(), Not(HasSubstr("penstock-runtime")));
  EXPECT_EQ(Problem(), "");
  EXPECT_TRUE(os::Exists(folder_ / "state/engines")) << "the configuration can be undone";
  Configure(kRuntime);
  EXPECT_TRUE(os::Eventually([this] { return engine_.asked() >= 3; }));
  EXPECT_THAT(DropIn(), HasSubstr("/opt/penstock-runtime"));
  EXPECT_THAT(DropIn(), HasSubstr("enable_cdi = true"));
  EXPECT_EQ(Attempts(), 2u) << "an engine with unchanged answers is not configured again";
}

TEST_F(EngineReconcilerTest, LeavesAnEngineAloneThatHasWhatIsWanted) {
  Begin(kCdiOn, kCdi);
  ASSERT_TRUE(IsKnownAs("2.1.0"));
  EXPECT_EQ(DropIn(), "");
  Configure(kRuntime);
  EXPECT_TRUE(os::Eventually([this] { return engine_.asked() >= 2; }));
  EXPECT_THAT(DropIn(), HasSubstr("/opt/penstock-runtime"));
  EXPECT_EQ(Attempts(), 1u);
}

TEST_F(EngineReconcilerTest, AddsAHandlerThatIsNeededLaterBesideTheFirst) {
  Begin(kCdiOn, kRuntime);
  EXPECT_TRUE(os::Eventually([this] { return engine_.asked() >= 2; }));
  EXPECT_THAT(DropIn(), Not(HasSubstr("acme")));
  handlers_ = {"acme", "nvidia"};
  Configure(kRuntime);
  EXPECT_TRUE(os::Eventually([this] { return engine_.asked() >= 3; }));
  EXPECT_THAT(DropIn(), testing::AllOf(HasSubstr("runtimes.acme"), HasSubstr("runtimes.nvidia")));
  Configure(kRuntime);
  EXPECT_EQ(Attempts(), 2u);
}

TEST_F(EngineReconcilerTest, HandlersDoNotMatterWhereOnlyCdiIsWanted) {
  Begin(kCdiOff, kCdi);
  EXPECT_TRUE(os::Eventually([this] { return engine_.asked() >= 2; }));
  handlers_ = {"acme"};
  Configure(kCdi);
  Configure(kRuntime);
  EXPECT_TRUE(os::Eventually([this] { return engine_.asked() >= 3; }));
  EXPECT_EQ(Attempts(), 2u);
}

TEST_F(EngineReconcilerTest, DoesNothingUntilSomethingIsWanted) {
  Begin(kCdiOff, kOff);
  ASSERT_TRUE(IsKnownAs("2.1.0"));
  EXPECT_EQ(Problem(), "");
  Configure(kCdi);
  EXPECT_TRUE(os::Eventually([this] { return engine_.asked() >= 2; }));
  EXPECT_THAT(DropIn(), HasSubstr("enable_cdi = true"));
  EXPECT_EQ(Attempts(), 1u);
}

TEST_F(EngineReconcilerTest, WhatFailedIsSaidAndNotTriedAgainUntilSomethingElseIsWanted) {
  WriteProgram(program_,
               "[ \"$1\" = --version ] && echo containerd v2.1.0 && exit\necho 'no table of mine' "
               ">&2; exit 1");
  Begin(kCdiOff, kCdi);
  EXPECT_TRUE(os::Eventually([this] { return !Problem().empty(); }));
  EXPECT_EQ(Problem(),
            "cannot configure the container engine: containerd rejects its configuration: no "
            "table of mine");
  Configure(kCdi);
  engine_.Stop();
  engine_.Start({.version = "2.1.1", .config = kCdiOff});
  ASSERT_TRUE(IsKnownAs("2.1.1"));
  EXPECT_NE(Problem(), "");
  EXPECT_EQ(failed_, 1) << "once for each attempt";
  Configure(kRuntime);
  EXPECT_TRUE(os::Eventually([this] { return !Problem().empty(); }));
  EXPECT_EQ(Attempts(), 2u);
  EXPECT_EQ(DropIn(), "");
}

TEST_F(EngineReconcilerTest, WhatIsWantedDuringAnAttemptThatFailsIsTriedAfterIt) {
  const std::string begun = folder_ / "begun", gate = folder_ / "gate";
  ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  WriteProgram(program_, "[ \"$1\" = --version ] && echo containerd v2.1.0 && exit\n[ -e " + begun +
                             " ] || { : > " + begun + "; read line < " + gate +
                             "; echo 'no table of mine' >&2; exit 1; }\ncat " + drop_in_ +
                             " 2>/dev/null || echo 'version = 3'");
  Begin(kCdiOn, kRuntime);
  ASSERT_TRUE(os::Eventually([&] { return os::Exists(begun); }));
  handlers_ = {"acme", "nvidia"};
  Configure(kRuntime);
  EXPECT_EQ(Attempts(), 1u) << "one at a time";
  ASSERT_TRUE(os::WriteControlFile(gate, "go\n").ok());
  EXPECT_TRUE(os::Eventually([this] { return engine_.asked() >= 2; }));
  EXPECT_EQ(Problem(), "");
  EXPECT_THAT(DropIn(), testing::AllOf(HasSubstr("runtimes.acme"), HasSubstr("runtimes.nvidia")));
  EXPECT_EQ(Attempts(), 2u);
}

TEST_F(EngineReconcilerTest, AProgramThatIsNoEngineIsNamed) {
  BeTheEngine("/usr/bin/socat");
  Begin(kCdiOff, kCdi);
  EXPECT_TRUE(os::Eventually([this] { return !Problem().empty(); }));
  EXPECT_EQ(Problem(),
            "cannot configure the container engine: the process at " + socket_ + " is " +
                machine_.ProgramHere("/usr/bin/socat") +
                ", which is not containerd, crio or dockerd: pass --runtime and --config");
  EXPECT_EQ(DropIn(), "");
}

/// The test's programs come before those of the machine in PATH.
class SupervisedEngineReconciler : public EngineReconcilerTest {
 protected:
  SupervisedEngineReconciler() : path_(std::getenv("PATH")) {
    machine_.Cgroup(::getpid(), "/system.slice/containerd.service");
    WriteProgram(folder_ / "bin/systemctl", "echo \"$@\" >> " + calls_);
    ::setenv("PATH", (folder_ / "bin:" + path_).c_str(), 1);
  }
  ~SupervisedEngineReconciler() override { ::setenv("PATH", path_.c_str(), 1); }

  const std::string path_, calls_ = folder_ / "calls";
};

TEST_F(SupervisedEngineReconciler, TheUnitOfTheEngineIsRestarted) {
  Begin(kCdiOff, kCdi);
  EXPECT_TRUE(os::Eventually([this] { return engine_.asked() >= 2; }));
  EXPECT_EQ(os::ReadFile(calls_).value_or(""), "restart containerd.service\n");
  EXPECT_THAT(DropIn(), HasSubstr("enable_cdi = true"));
  EXPECT_EQ(Problem(), "");
}

}  // namespace
}  // namespace penstock::adapter::kubelet
