// The agent's end against a real worker process that answers, hangs, dies and talks rubbish (testing/scripted_worker.cc).
#include "device/remote.h"

#include <csignal>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "os/file.h"
#include "os/process.h"

namespace penstock::device {
namespace {

using base::Code;
using std::chrono::milliseconds;
using testing::HasSubstr;

/// How long a test waits for what must come. Never waited out when all is well.
constexpr auto kSurely = std::chrono::seconds(20);

class RemoteTest : public testing::Test {
 protected:
  RemoteTest() : loop_("test") { loop_.Start(); }

  ~RemoteTest() override {
    OnLoop([&] { remote_.reset(); });
    loop_.Stop();
  }

  void Make(const std::string& script = "", base::Duration deadline = kSurely) {
    Remote::Options options;
    options.command = {PENSTOCK_BINARY_DIR "/tests/scripted_worker", script};
    options.call_deadline = deadline;
    options.open_deadline = script == "hang-at-open" ? deadline : kSurely;
    OnLoop([&] {
      remote_ = std::make_unique<Remote>(loop_, options);
      remote_->Listen({.evidence = [&](std::vector<Evidence> evidence) { evidence_.set_value(std::move(evidence)); },
                       .ended = [&](base::Error error) { ended_.set_value(std::move(error)); }});
    });
  }

  void OnLoop(std::function<void()> function) {
    std::promise<void> ran;
    loop_.Post([&] {
      function();
      ran.set_value();
    });
    ran.get_future().wait();
  }

  /// Calls a method of the remote and waits for its answer.
  template <typename T>
  base::Result<T> Ask(std::function<void(std::function<void(base::Result<T>)>)> method) {
    auto answer = std::make_shared<std::promise<base::Result<T>>>();
    loop_.Post([&, answer] { method([answer](base::Result<T> result) { answer->set_value(std::move(result)); }); });
    auto future = answer->get_future();
    if (future.wait_for(kSurely) != std::future_status::ready) return base::Error(Code::kInternal, "the test waited too long");
    return future.get();
  }
  base::Result<Driver> Open() {
    return Ask<Driver>([&](auto done) { remote_->Open(done); });
  }
  base::Result<Facts> Describe(const std::string& address) {
    return Ask<Facts>([&](auto done) { remote_->Describe(address, done); });
  }
  base::Result<Reading> Read(const std::string& address) {
    return Ask<Reading>([&](auto done) { remote_->Read(address, done); });
  }
  base::Error Ended() {
    auto future = ended_.get_future();
    if (future.wait_for(kSurely) != std::future_status::ready) return {Code::kInternal, "the test waited too long"};
    base::Error error = future.get();
    ended_ = {};
    return error;
  }
  pid_t Pid() {
    pid_t pid = 0;
    OnLoop([&] { pid = remote_->pid(); });
    return pid;
  }

  os::Loop loop_;
  std::unique_ptr<Remote> remote_;
  std::promise<std::vector<Evidence>> evidence_;
  std::promise<base::Error> ended_;
};

TEST_F(RemoteTest, AnswersThroughAWorkerProcess) {
  Make();
  const auto driver = Open();
  ASSERT_TRUE(driver.ok()) << driver.error().ToString();
  EXPECT_EQ(driver->version, "1.0");
  EXPECT_GT(Pid(), 0);
  const auto addresses = Ask<std::vector<std::string>>([&](auto done) { remote_->List(done); });
  EXPECT_EQ(*addresses, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(Describe("1")->id, "device-1");
  EXPECT_TRUE(Read("1").ok());
}

TEST_F(RemoteTest, PassesABackendsErrorsOnUnchanged) {
  Make("no-driver");
  const auto driver = Open();
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.error().code(), Code::kNotFound);
  EXPECT_EQ(driver.error().message(), "no driver; install one");
  EXPECT_EQ(Describe("lost").error().code(), Code::kDataLoss);
}

TEST_F(RemoteTest, HandsEventsOnAsTheyCome) {
  Make();
  ASSERT_TRUE(Open().ok());
  ASSERT_TRUE(Read("event").ok());
  auto evidence = evidence_.get_future();
  ASSERT_EQ(evidence.wait_for(kSurely), std::future_status::ready);
  const auto events = evidence.get();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, "trouble");
  EXPECT_EQ(events[0].code, 79);
}

TEST_F(RemoteTest, KillsAWorkerThatHangsAndStartsAnother) {
  Make("", milliseconds(500));
  ASSERT_TRUE(Open().ok());
  const pid_t first = Pid();
  EXPECT_EQ(Describe("hang").error().code(), Code::kDeadlineExceeded);
  const base::Error ended = Ended();
  EXPECT_EQ(ended.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(ended.message(), HasSubstr("describe hang"));
  EXPECT_EQ(Describe("1").error().code(), Code::kUnavailable) << "nothing but Open starts a worker";
  ASSERT_TRUE(Open().ok());
  EXPECT_NE(Pid(), first);
  EXPECT_EQ(Describe("1")->id, "device-1");
}

TEST_F(RemoteTest, BlamesTheCallThatHangsAndNotThoseBehindIt) {
  Make("", milliseconds(500));
  ASSERT_TRUE(Open().ok());
  std::promise<base::Code> hung, behind;
  loop_.Post([&] {
    remote_->Read("hang", [&](const auto& result) { hung.set_value(result.error().code()); });
    remote_->Describe("1", [&](const auto& result) { behind.set_value(result.error().code()); });
  });
  EXPECT_EQ(hung.get_future().get(), Code::kDeadlineExceeded);
  EXPECT_EQ(behind.get_future().get(), Code::kUnavailable);
}

TEST_F(RemoteTest, GivesUpAnOpenThatHangs) {
  Make("hang-at-open", milliseconds(100));
  EXPECT_EQ(Open().error().code(), Code::kDeadlineExceeded);
}

TEST_F(RemoteTest, SaysHowAWorkerDied) {
  Make();
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Describe("die").error().code(), Code::kUnavailable);
  EXPECT_THAT(Ended().message(), HasSubstr("signal 9"));
  ASSERT_TRUE(Open().ok());
  EXPECT_FALSE(Describe("exit").ok());
  EXPECT_THAT(Ended().message(), HasSubstr("status 7"));
}

TEST_F(RemoteTest, ReapsItsWorkers) {
  Make();
  ASSERT_TRUE(Open().ok());
  const pid_t pid = Pid();
  const auto pidfd = os::OpenPidfd(pid);
  OnLoop([&] { remote_->Stop(); });
  EXPECT_EQ(Pid(), 0);
  ASSERT_TRUE(Open().ok());
  int abandoned = 1;
  for (const auto late = std::chrono::steady_clock::now() + kSurely; abandoned > 0 && std::chrono::steady_clock::now() < late;) {
    OnLoop([&] { abandoned = remote_->abandoned(); });
  }
  EXPECT_EQ(abandoned, 0);
  EXPECT_FALSE(os::Exists("/proc/" + std::to_string(pid)));
}

TEST_F(RemoteTest, EndsAWorkerThatTalksRubbish) {
  Make();
  for (const char* address : {"garbage", "unasked"}) {
    ASSERT_TRUE(Open().ok());
    EXPECT_EQ(Describe(address).error().code(), Code::kInternal) << address;
    EXPECT_EQ(Ended().code(), Code::kInternal) << address;
  }
}

TEST_F(RemoteTest, EndsAWorkerThatLivesOnWithoutLanes) {
  Make();
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Describe("close").error().code(), Code::kUnavailable);
  EXPECT_THAT(Ended().message(), HasSubstr("closed its lanes"));
}

TEST_F(RemoteTest, TellsAProgramThatIsNotThere) {
  Remote::Options options;
  options.command = {"/nonexistent/worker"};
  OnLoop([&] { remote_ = std::make_unique<Remote>(loop_, options); });
  const auto driver = Open();
  ASSERT_FALSE(driver.ok());
  EXPECT_THAT(driver.error().message(), HasSubstr("/nonexistent/worker"));
}

TEST_F(RemoteTest, StopsWithoutCallingItAnEnd) {
  Make();
  ASSERT_TRUE(Open().ok());
  auto answer = std::make_shared<std::promise<base::Code>>();
  OnLoop([&] {
    remote_->Describe("hang", [answer](const auto& result) { answer->set_value(result.error().code()); });
    remote_->Stop();
  });
  EXPECT_EQ(answer->get_future().get(), Code::kCancelled);
  EXPECT_EQ(ended_.get_future().wait_for(milliseconds(0)), std::future_status::timeout);
}

TEST_F(RemoteTest, ItsWorkerEndsWhenTheAgentsEndsClose) {
  Make();
  ASSERT_TRUE(Open().ok());
  // A second worker by hand, whose lanes we close without killing it.
  os::SpawnOptions spawn;
  spawn.arguments = {PENSTOCK_BINARY_DIR "/tests/scripted_worker"};
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
  EXPECT_EQ(::poll(&ended, 1, 20000), 1);
  siginfo_t info{};
  ::waitid(P_PIDFD, static_cast<id_t>(child->pidfd.get()), &info, WEXITED);
  EXPECT_EQ(info.si_code, CLD_EXITED);
  EXPECT_EQ(info.si_status, 0);
}

}  // namespace
}  // namespace penstock::device
