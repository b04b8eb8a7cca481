// Tests a worker that not even SIGKILL ends, like one in a hung driver call. The test simulates it
// with ptrace(2), which stops a killed process before it exits (PTRACE_O_TRACEEXIT) until it is
// released.
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "base/testing/build_tree.h"
#include "device/testing/asking.h"
#include "os/core/file.h"

namespace penstock {
namespace {

/// Child processes that are stopped and cannot exit. Use from one thread: ptrace binds them to
/// their tracer.
class Stuck {
 public:
  ~Stuck() { Release(); }

  /// Stops all threads of a process and returns when they are stopped.
  base::Status Stop(pid_t pid) {
    const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
    for (std::size_t before = threads_.size() + 1; before != threads_.size();) {
      before = threads_.size();
      ASSIGN(const auto names, os::ListDirectory(tasks));
      for (const std::string& name : names)
        TRY(StopThread(static_cast<pid_t>(base::ParseInt(name).value_or(0))));
    }
    return {};
  }

  /// Lets the processes continue, or exit where they were killed.
  void Release() {
    for (const pid_t thread : threads_) {
      // A killed thread is moving from its current stop to the stop before its exit, where it can
      // be detached.
      for (int left = 10'000; left > 0 && ::ptrace(PTRACE_DETACH, thread, nullptr, nullptr) != 0;
           --left) {
        if (!os::Exists("/proc/" + std::to_string(thread))) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    threads_.clear();
  }

 private:
  base::Status StopThread(pid_t thread) {
    if (threads_.contains(thread)) return {};
    if (::ptrace(PTRACE_SEIZE, thread, nullptr, PTRACE_O_TRACEEXIT) != 0)
      return base::ErrnoError(errno, "trace a thread");
    threads_.insert(thread);
    if (::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0)
      return base::ErrnoError(errno, "stop a thread");
    int status = 0;
    if (::waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status))
      return base::Error(Code::kInternal, "a thread did not stop");
    return {};
  }

  std::set<pid_t> threads_;
};

device::Remote::Options ScriptedWorker() {
  return {.command = {base::BuildPath("tests/scripted_worker")}};
}

TEST(AbandonedWorker, IsLeftBehindAndAnotherServesUntilItCanDie) {
  Stuck stuck;
  device::Asking worker;
  worker.Make(ScriptedWorker());
  ASSERT_TRUE(worker.Open().ok());
  const pid_t first = worker.pid();
  const auto status = stuck.Stop(first);
  ASSERT_TRUE(status.ok()) << status.error().ToString();

  EXPECT_EQ(worker.Hanging([&] { return worker.Describe("0"); }).error().code(),
            Code::kDeadlineExceeded);
  EXPECT_EQ(worker.Ended().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(worker.abandoned(), 1);
  EXPECT_TRUE(os::Exists("/proc/" + std::to_string(first))) << "kill -9 did not end it";

  ASSERT_TRUE(worker.Open().ok());
  EXPECT_TRUE(worker.Describe("0").ok());
  EXPECT_EQ(worker.abandoned(), 1);

  stuck.Release();
  EXPECT_TRUE(worker.NoneAbandonedAtLast());
  EXPECT_FALSE(os::Exists("/proc/" + std::to_string(first))) << "it was reaped";
  EXPECT_TRUE(worker.Describe("0").ok()) << "and its end disturbed nobody";
}

TEST(AbandonedWorker, IsNotFollowedByMoreThanEight) {
  Stuck stuck;
  device::Asking worker;
  worker.Make(ScriptedWorker());
  const auto sample = [&worker] {
    std::optional<base::Result<device::Sample>> taken;
    worker.OnLoop([&] {
      worker.remote().TakeSample("0", {}, [&](auto result) { taken = std::move(result); });
    });
    const auto has_taken = [&] {
      bool has = false;
      worker.OnLoop([&] { has = taken.has_value(); });
      return has;
    };
    EXPECT_TRUE(worker.loop().AdvanceUntil({}, has_taken));
    return *std::move(taken);
  };
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(worker.Open().ok()) << i;
    const auto taken = sample();
    EXPECT_EQ(taken.ok(), i < 6) << "the last two are for the calls that tell how devices do";
    EXPECT_TRUE(taken.ok() || taken.error().code() == Code::kResourceExhausted);
    EXPECT_TRUE(worker.Read("0").ok()) << i;
    const auto status = stuck.Stop(worker.pid());
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    worker.Stop();
  }
  EXPECT_EQ(worker.abandoned(), 8);
  EXPECT_EQ(worker.Open().error().code(), Code::kUnavailable);
  stuck.Release();
  EXPECT_TRUE(worker.NoneAbandonedAtLast());
  EXPECT_TRUE(worker.Open().ok());
}

}  // namespace
}  // namespace penstock
