// Tests the agent's end with a real worker process that answers, hangs, dies and sends garbage
// (testing/scripted_worker.cc).
#include "device/remote.h"

#include <csignal>
#include <future>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/testing/build_tree.h"
#include "device/testing/asking.h"
#include "os/core/file.h"
#include "os/process/process.h"

namespace penstock::device {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class RemoteTest : public testing::Test, public Asking {
 protected:
  void Start(const std::string& script = "") {
    Remote::Options options;
    options.command = {base::BuildPath("tests/scripted_worker"), script};
    Make(std::move(options));
  }
  void StartAndOpen() {
    Start();
    ASSERT_TRUE(Open().ok());
  }
};

TEST_F(RemoteTest, AnswersThroughAWorkerProcess) {
  Start();
  const auto driver = Open();
  ASSERT_TRUE(driver.ok()) << driver.error().ToString();
  EXPECT_EQ(driver->version, "1.0");
  EXPECT_GT(pid(), 0);
  EXPECT_EQ(*List(), (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(Describe("1")->id, "device-1");
  EXPECT_TRUE(Read("1").ok());
}

TEST_F(RemoteTest, PassesABackendsErrorsOnUnchanged) {
  Start("no-driver");
  const auto driver = Open();
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.error().code(), Code::kNotFound);
  EXPECT_EQ(driver.error().message(), "no driver; install one");
  EXPECT_EQ(Describe("lost").error().code(), Code::kDataLoss);
}

TEST_F(RemoteTest, ChangesDevicesThroughTheWorker) {
  StartAndOpen();
  const auto set_mode = [this](const char* address, const char* value) {
    return Change(
        [=](Remote& remote, auto done) { remote.SetMode(address, "mig", value, std::move(done)); });
  };
  EXPECT_EQ(*set_mode("0", "enabled"), "0");
  EXPECT_EQ(set_mode("0", "odd").error().code(), Code::kInvalidArgument);
  const auto destroy = [this](const char* address) {
    return Change([=](Remote& remote, auto done) { remote.DestroyPart(address, std::move(done)); });
  };
  EXPECT_EQ(*destroy("0/1"), "0/1");
  EXPECT_EQ(destroy("busy").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(*Change([](Remote& remote, auto done) {
    remote.CreatePart("1",
                      {.profile = "small",
                       .placement = Placement{.start = 4, .size = 1},
                       .within = "2",
                       .outer = true},
                      std::move(done));
  }),
            "1/2/small/4/outer");
  EXPECT_EQ(Describe("1")->id, "device-1") << "the worker serves on";
}

TEST_F(RemoteTest, AChangeThatHangsIsAbandoned) {
  StartAndOpen();
  const auto hangs = [this] {
    return Change([](Remote& remote, auto done) {
      remote.SetMode("hang", "mig", "enabled", std::move(done));
    });
  };
  EXPECT_EQ(Hanging(hangs).error().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(Describe("1").error().code(), Code::kUnavailable);
}

TEST_F(RemoteTest, HandsEventsOnAsTheyCome) {
  StartAndOpen();
  ASSERT_TRUE(Read("event").ok());
  const auto events = Heard();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, "trouble");
  EXPECT_EQ(events[0].code, 79);
}

TEST_F(RemoteTest, SaysWhenEventsFailAndHearsTheNextOneAtOnce) {
  StartAndOpen();
  ASSERT_TRUE(Read("deaf").ok());
  EXPECT_TRUE(Doubted());
  ASSERT_TRUE(Read("event").ok());
  EXPECT_EQ(Heard().size(), 1u);
  EXPECT_TRUE(NoneEnded());
}

TEST_F(RemoteTest, KillsAWorkerThatHangsAndStartsAnother) {
  StartAndOpen();
  const pid_t first = pid();
  EXPECT_EQ(Hanging([&] { return Describe("hang"); }).error().code(), Code::kDeadlineExceeded);
  const base::Error ended = Ended();
  EXPECT_EQ(ended.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(ended.message(), HasSubstr("describe hang"));
  EXPECT_EQ(Describe("1").error().code(), Code::kUnavailable) << "only Open starts a worker";
  ASSERT_TRUE(Open().ok());
  EXPECT_NE(pid(), first);
  EXPECT_EQ(Describe("1")->id, "device-1");
}

TEST_F(RemoteTest, BlamesTheCallThatHangsAndNotThoseBehindIt) {
  StartAndOpen();
  std::optional<Code> hung, behind;
  OnLoop([&] {
    remote().Read("hang", [&](const auto& result) { hung = result.error().code(); });
    remote().Describe("1", [&](const auto& result) { behind = result.error().code(); });
  });
  loop().Advance(Remote::Options{}.call_deadline - milliseconds(1));
  EXPECT_FALSE(hung || behind);
  loop().Advance(milliseconds(1));
  EXPECT_EQ(hung, Code::kDeadlineExceeded);
  EXPECT_EQ(behind, Code::kCancelled);
}

/// Returns when the child process is stopped.
void Halt(pid_t child) {
  siginfo_t info{};
  ASSERT_EQ(::kill(child, SIGSTOP), 0);
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WSTOPPED), 0);
}

TEST_F(RemoteTest, ADeadlineThatPassedWhileThisProcessStoodStillCountsAgain) {
  StartAndOpen();
  const pid_t stopped = pid();
  Halt(stopped);
  std::optional<base::Result<Reading>> answer;
  const auto read = [&] {
    OnLoop([&] { remote().Read("1", [&](auto result) { answer = std::move(result); }); });
  };
  read();
  loop().Advance(Remote::Options{}.call_deadline + std::chrono::seconds(30));
  EXPECT_FALSE(answer) << "the worker was suspended as well";
  ASSERT_EQ(::kill(stopped, SIGCONT), 0);
  EXPECT_TRUE(loop().AdvanceUntil({}, [&] { return answer.has_value(); }));
  EXPECT_TRUE(answer->ok());
  Halt(stopped);
  answer.reset();
  read();
  loop().Advance(Remote::Options{}.call_deadline);
  ASSERT_TRUE(answer && !answer->ok()) << "the call hangs, and this process was not suspended";
  EXPECT_EQ(answer->error().code(), Code::kDeadlineExceeded);
}

TEST_F(RemoteTest, SaysOfWhichDeviceTheSampleHangs) {
  StartAndOpen();
  std::string hung;
  OnLoop([&] {
    remote().TakeSample("hang", {.quantities = {1, 2, 3}},
                        [&](const auto& sample) { hung = sample.error().message(); });
  });
  loop().Advance(Remote::Options{}.call_deadline);
  EXPECT_THAT(hung, HasSubstr("\"sample hang\"")) << "without the rest of the argument";
}

TEST_F(RemoteTest, GivesUpAnOpenThatHangs) {
  Start("hang-at-open");
  std::optional<Code> code;
  OnLoop([&] { remote().Open([&](const auto& driver) { code = driver.error().code(); }); });
  loop().Advance(Remote::Options{}.open_deadline);
  EXPECT_EQ(code, Code::kDeadlineExceeded);
}

TEST_F(RemoteTest, SaysHowAWorkerDied) {
  StartAndOpen();
  EXPECT_EQ(Describe("die").error().code(), Code::kUnavailable);
  EXPECT_THAT(Ended().message(), HasSubstr("signal 9"));
  ASSERT_TRUE(Open().ok());
  EXPECT_FALSE(Describe("exit").ok());
  EXPECT_THAT(Ended().message(), HasSubstr("status 7"));
}

TEST_F(RemoteTest, ReapsItsWorkers) {
  StartAndOpen();
  const pid_t first = pid();
  Stop();
  EXPECT_EQ(pid(), 0);
  ASSERT_TRUE(Open().ok());
  EXPECT_TRUE(NoneAbandonedAtLast());
  EXPECT_FALSE(os::Exists("/proc/" + std::to_string(first)));
}

TEST_F(RemoteTest, EndsAWorkerThatTalksRubbish) {
  Start();
  for (const char* address : {"garbage", "unasked"}) {
    ASSERT_TRUE(Open().ok());
    EXPECT_EQ(Describe(address).error().code(), Code::kInternal) << address;
    EXPECT_EQ(Ended().code(), Code::kInternal) << address;
  }
}

TEST_F(RemoteTest, EndsAWorkerThatLivesOnWithoutLanes) {
  Remote::Options options;
  options.command = {base::BuildPath("tests/scripted_worker")};
  options.call_deadline = std::chrono::hours(1);  // passes after the worker closed its sockets
  Make(std::move(options));
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Hanging([&] { return Describe("close"); }).error().code(), Code::kUnavailable);
  EXPECT_THAT(Ended().message(), HasSubstr("closed its sockets"));
}

TEST_F(RemoteTest, ReportsAProgramThatIsNotThere) {
  Make({.command = {"/nonexistent/worker"}});
  const auto driver = Open();
  ASSERT_FALSE(driver.ok());
  EXPECT_THAT(driver.error().message(), HasSubstr("/nonexistent/worker"));
}

TEST_F(RemoteTest, StopsWithoutCallingItAnEnd) {
  StartAndOpen();
  auto answer = std::make_shared<std::promise<base::Code>>();
  OnLoop([&] {
    remote().Describe("hang",
                      [answer](const auto& result) { answer->set_value(result.error().code()); });
    remote().Stop();
  });
  EXPECT_EQ(answer->get_future().get(), Code::kCancelled);
  EXPECT_TRUE(NoneEnded());
}

TEST_F(RemoteTest, ItsWorkerEndsWhenTheAgentsEndsClose) {
  StartAndOpen();
  // A second worker, started by the test, which closes its lanes without killing it.
  os::SpawnOptions spawn;
  spawn.arguments = {base::BuildPath("tests/scripted_worker")};
  std::vector<os::UniqueFd> ends;
  for (const int lane : {kControlLane, kSamplingLane, kEventsLane}) {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ends.emplace_back(pair[0]);
    ends.emplace_back(pair[1]);
    spawn.descriptors.emplace_back(pair[1], lane);
  }
  const auto child = os::Spawn(spawn);
  ASSERT_TRUE(child.ok());
  ends.clear();
  pollfd ended{.fd = child->pidfd.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&ended, 1, 60'000), 1);
  siginfo_t info{};
  ::waitid(P_PIDFD, static_cast<id_t>(child->pidfd.get()), &info, WEXITED);
  EXPECT_EQ(info.si_code, CLD_EXITED);
  EXPECT_EQ(info.si_status, 0);
}

}  // namespace
}  // namespace penstock::device
