// Tests penstock-worker on a simulated machine, through device/remote like the agent.
#include <cerrno>
#include <csignal>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/worker/denied_calls.h"
#include "backend/nvidia/testing/simulated_machine.h"
#include "base/testing/build_tree.h"
#include "device/testing/asking.h"
#include "os/core/file.h"
#include "os/core/system_calls.h"

namespace penstock {
namespace {

using backend::nvidia::SimulatedMachine;
using device::Asking;
using testing::AnyOf;
using testing::HasSubstr;
using testing::SizeIs;

device::Remote::Options WorkerOn(const SimulatedMachine& machine) {
  const device::Paths paths = machine.paths();
  return {.command = {base::BuildPath("bin/penstock-worker"), "nvidia", "--driver-root",
                      paths.driver_root, "--sysfs-root", paths.sysfs_root, "--dev-root",
                      paths.dev_root, "--proc-root", paths.proc_root}};
}

TEST(Worker, DescribesAMachine) {
  const SimulatedMachine machine("dgx-a100");
  Asking worker;
  worker.Make(WorkerOn(machine));
  const auto driver = worker.Open();
  ASSERT_TRUE(driver.ok()) << driver.error().ToString();
  EXPECT_EQ(driver->version, "550.54.15");
  const auto addresses = worker.List();
  ASSERT_THAT(*addresses, SizeIs(8));
  for (const std::string& address : *addresses) {
    EXPECT_EQ(worker.Describe(address)->model, "NVIDIA A100-SXM4-40GB");
    EXPECT_TRUE(worker.Read(address)->reachable);
  }
}

TEST(Worker, DescribesAMachineWithoutTheCallsThatAdministerIt) {
  const SimulatedMachine machine("dgx-a100");
  auto options = WorkerOn(machine);
  options.command.emplace_back("--restrict-system-calls");
  Asking worker;
  worker.Make(options);
  ASSERT_TRUE(worker.Open().ok());
  const auto status = os::ReadFile("/proc/" + std::to_string(worker.pid()) + "/status");
  EXPECT_THAT(status.value_or(""), HasSubstr("Seccomp:\t2\n")) << "a filter is in force";
  const auto addresses = worker.List();
  ASSERT_THAT(*addresses, SizeIs(8));
  for (const std::string& address : *addresses) {
    EXPECT_EQ(worker.Describe(address)->model, "NVIDIA A100-SXM4-40GB");
    EXPECT_TRUE(worker.Read(address)->reachable);
  }
  machine.Sim({"fault", "0", "xid", "63", "--alone"});
  EXPECT_FALSE(worker.Heard().empty());
}

/// Counts the denied calls that do not fail with EPERM in a process that is confined like a worker.
/// Also checks that a filter is active, since the kernel itself denies many of these calls to an
/// ordinary user.
TEST(Worker, IsDeniedEachOfTheseCalls) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!os::DenyCalls(app::kDeniedCalls).ok()) ::_exit(200);
    if (os::ReadFile("/proc/self/status").value_or("").find("Seccomp:\t2\n") == std::string::npos)
      ::_exit(201);
    int made = 0;
    for (const int call : app::kDeniedCalls)
      if (::syscall(call, -1, -1, -1, -1, -1, -1) != -1 || errno != EPERM) ++made;
    const pid_t program = ::fork();  // may be started, and inherits the denials
    if (program == 0) {
      ::execl("/bin/sh", "sh", "-c", "! mount -t tmpfs none /mnt 2>/dev/null", nullptr);
      ::_exit(9);
    }
    int status = 0;
    ::waitpid(program, &status, 0);
    ::_exit(made + (WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 100));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Worker, PassesEventsOn) {
  const SimulatedMachine machine("a100-40gb-x1");
  Asking worker;
  worker.Make(WorkerOn(machine));
  ASSERT_TRUE(worker.Open().ok());
  ASSERT_TRUE(worker.List().ok());
  const auto facts = worker.Describe("0");
  ASSERT_TRUE(facts.ok());
  machine.Sim({"fault", "0", "xid", "63", "--alone"});
  const auto events = worker.Heard();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].device, facts->id);
}

TEST(Worker, ThatHangsInADriverCallIsReplaced) {
  const SimulatedMachine machine("dgx-a100");
  Asking worker;
  worker.Make(WorkerOn(machine));
  ASSERT_TRUE(worker.Open().ok());
  const pid_t first = worker.pid();
  const auto addresses = worker.List();
  for (const std::string& address : *addresses) ASSERT_TRUE(worker.Describe(address).ok());
  machine.Sim({"fault", "5", "hang", "nvmlDeviceGetTemperature", "forever"});
  EXPECT_TRUE(worker.Read("4").ok());
  EXPECT_EQ(worker.Hanging([&] { return worker.Read("5"); }).error().code(),
            Code::kDeadlineExceeded);
  EXPECT_THAT(worker.Ended().message(), HasSubstr("read 5"));
  ASSERT_TRUE(worker.Open().ok());
  EXPECT_NE(worker.pid(), first);
  EXPECT_TRUE(worker.Describe("4").ok());
  machine.Sim({"heal", "5"});
  EXPECT_TRUE(worker.Describe("5").ok());
  EXPECT_TRUE(worker.Read("5")->reachable);
}

TEST(Worker, LivesThroughADriverThatGoesAndComesBackNewer) {
  const SimulatedMachine machine("dgx-a100");
  Asking worker;
  worker.Make(WorkerOn(machine));
  ASSERT_TRUE(worker.Open().ok());
  machine.Sim({"fault", "driver", "unload"});
  EXPECT_EQ(worker.List().error().code(), Code::kNotFound);
  worker.Stop();
  EXPECT_EQ(worker.Open().error().code(), Code::kNotFound);
  machine.Sim({"heal", "driver", "--driver", "570.133.20"});
  worker.Stop();
  const auto driver = worker.Open();
  ASSERT_TRUE(driver.ok()) << driver.error().ToString();
  EXPECT_EQ(driver->version, "570.133.20");
  EXPECT_THAT(*worker.List(), SizeIs(8));
}

TEST(Worker, ThatIsKilledIsReplaced) {
  const SimulatedMachine machine("t4-x1");
  Asking worker;
  worker.Make(WorkerOn(machine));
  ASSERT_TRUE(worker.Open().ok());
  ::kill(worker.pid(), SIGKILL);
  EXPECT_THAT(worker.Ended().message(), HasSubstr("signal 9"));
  EXPECT_TRUE(worker.Open().ok());
}

TEST(Worker, AnswersWithoutADriver) {
  const SimulatedMachine machine("empty");
  Asking worker;
  worker.Make(WorkerOn(machine));
  const auto driver = worker.Open();
  ASSERT_FALSE(driver.ok());
  EXPECT_THAT(driver.error().code(), AnyOf(Code::kNotFound, Code::kUnavailable));
  EXPECT_THAT(driver.error().message(), HasSubstr("driver"));
  EXPECT_GT(worker.pid(), 0) << "it stays, for another try";
}

}  // namespace
}  // namespace penstock
