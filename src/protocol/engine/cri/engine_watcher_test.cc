#include "protocol/engine/cri/engine_watcher.h"

#include <filesystem>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "os/core/file.h"
#include "os/testing/run_on.h"
#include "os/testing/temporary_folder.h"
#include "protocol/engine/cri/fake/fake_engine.h"

namespace penstock::protocol::engine::cri {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

class WatcherTest : public testing::Test {
 protected:
  WatcherTest() {
    std::filesystem::create_directories(folder_ / "run/containerd");
    folder_.Link("proc/" + std::to_string(::getpid()),
                 "/proc/self");  // the machine's real engines do not count
    loop_.Start();
    io_.Start();
  }
  ~WatcherTest() override {
    On([this] { watcher_.reset(); });
    loop_.Stop();
    io_.Stop();
  }

  void Begin(std::string socket = "", base::Duration within = 60s) {
    On([&] {
      watcher_ =
          std::make_unique<EngineWatcher>(loop_, io_,
                                          EngineWatcher::Options{.socket = std::move(socket),
                                                                 .proc_root = folder_ / "proc",
                                                                 .root = folder_.path(),
                                                                 .within = within,
                                                                 .retry = 1ms,
                                                                 .retry_most = 20ms});
    });
  }

  void On(const std::function<void()>& function) { os::RunOn(loop_, function); }

  /// Waits until the status satisfies the predicate, and returns it.
  EngineStatus WaitFor(const std::function<bool(const EngineStatus&)>& predicate) {
    std::promise<EngineStatus> seen;
    bool reported = false;
    base::Subscription subscription;
    On([&] {
      subscription = watcher_->published().Subscribe(
          [&](const auto& known) {
            if (predicate(*known) && !std::exchange(reported, true)) seen.set_value(*known);
          },
          true);
    });
    auto future = seen.get_future();
    const bool came = future.wait_for(60s) == std::future_status::ready;
    On([&] { subscription.Reset(); });
    EXPECT_TRUE(came);
    return came ? future.get() : EngineStatus{};
  }

  EngineStatus WaitForEngine() {
    return WaitFor([](const EngineStatus& one) { return one.engine.has_value(); });
  }
  EngineStatus WaitForAnswer() {
    return WaitFor([](const EngineStatus& one) { return one.queried; });
  }

  os::TemporaryFolder folder_;
  const std::string socket_ = folder_ / "run/containerd/containerd.sock";
  FakeEngine engine_{socket_};
  os::Loop loop_{"test"}, io_{"io"};
  std::unique_ptr<EngineWatcher> watcher_;
};

TEST_F(WatcherTest, AsksTheEngineAtAWellKnownSocket) {
  engine_.Start({});
  Begin();
  const EngineStatus known = WaitForEngine();
  EXPECT_TRUE(known.queried);
  EXPECT_EQ(known.problem, "");
  EXPECT_EQ(known.engine->name, "containerd");
  EXPECT_EQ(known.engine->version, "1.7.24");
  EXPECT_EQ(known.engine->cdi, Cdi::kOn);
  EXPECT_THAT(known.engine->cdi_folders, ElementsAre("/etc/cdi", "/var/run/cdi"));
  EXPECT_EQ(known.engine->socket, socket_);
  EXPECT_EQ(known.engine->pid, ::getpid());
}

TEST_F(WatcherTest, PassesOverAnEngineThatHasNoCri) {
  engine_.Start({.no_such_service = true});
  FakeEngine crio(folder_ / "run/crio/crio.sock");
  crio.Start({.name = "cri-o", .version = "1.31.0", .config = ""});
  Begin();
  EXPECT_EQ(WaitForEngine().engine->name, "cri-o");
}

TEST_F(WatcherTest, TheSocketThatIsSaidCountsAlone) {
  engine_.Start({});
  const std::string other = folder_ / "other.sock";
  Begin(other);
  const EngineStatus none = WaitForAnswer();
  EXPECT_FALSE(none.engine.has_value());
  EXPECT_THAT(none.problem, HasSubstr("the container engine at " + other +
                                      " does not answer: no process listens at " + other +
                                      ": it does not exist"));
  FakeEngine engine(other);
  engine.Start({.version = "2.0.1"});
  EXPECT_EQ(WaitForEngine().engine->version, "2.0.1");
}

TEST_F(WatcherTest, SaysThatThereIsNoEngineAndFindsItWhenItComes) {
  Begin();
  EXPECT_THAT(
      WaitForAnswer().problem,
      HasSubstr("no container engine was found; set its CRI socket with containers.engineSocket"));
  engine_.Start({});
  EXPECT_EQ(WaitForEngine().problem, "");
}

TEST_F(WatcherTest, AsksAgainWhenTheEngineRestarts) {
  engine_.Start({.config = R"({"enableCDI":false})"});
  Begin();
  EXPECT_EQ(WaitForEngine().engine->cdi, Cdi::kOff);
  engine_.Stop();
  engine_.Start({});
  EXPECT_EQ(WaitFor([](const EngineStatus& one) { return one.engine->cdi == Cdi::kOn; }).problem,
            "");
}

TEST_F(WatcherTest, AsksAgainWhenItIsAskedTo) {
  engine_.Start({});
  Begin();
  WaitForEngine();
  engine_.Stop();
  On([this] { watcher_->QueryAgain(); });
  const EngineStatus gone = WaitFor([](const EngineStatus& one) { return !one.problem.empty(); });
  EXPECT_EQ(gone.problem, "the container engine at " + socket_ + " is gone");
  EXPECT_TRUE(gone.engine.has_value());  // the last answer is still the best that is known
  engine_.Start({.version = "1.7.25"});
  EXPECT_EQ(WaitFor([](const EngineStatus& one) { return one.problem.empty(); }).engine->version,
            "1.7.25");
}

TEST_F(WatcherTest, WaitsForNoEngineLongerThanItsDeadline) {
  engine_.Start({.silent = true});
  Begin("", 50ms);
  const EngineStatus known = WaitForAnswer();
  EXPECT_FALSE(known.engine.has_value());
  EXPECT_THAT(known.problem, HasSubstr(socket_ + " does not answer"));
}

TEST_F(WatcherTest, EndsInTheMiddleOfAQuestion) {
  engine_.Start({.silent = true});
  Begin();
  On([this] { watcher_.reset(); });
  EXPECT_EQ(engine_.asked(), 0);
}

}  // namespace
}  // namespace penstock::protocol::engine::cri
