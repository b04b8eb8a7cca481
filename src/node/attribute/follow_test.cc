#include "node/attribute/follow.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/manual_executor.h"
#include "device/testing/acme.h"

namespace penstock::node::attribute {
namespace {

/// A device with the test's own process on it.
class FollowTest : public testing::Test {
 protected:
  void Look() {
    inventory_.SetFacts("acme", {device::testing::AcmeDevice(0, 1)}, "", {});
    inventory_.SetReading("G0", {.processes = {{::getpid(), {}}}}, {});
    executor_.RunUntilIdle();
  }

  std::array<base::Subscription, 2> Subscribe(Follow& follow) {
    const auto changed = [&follow](const auto&) { follow.DevicesChanged(); };
    return {inventory_.published().Subscribe(changed), ledger_.published().Subscribe(changed)};
  }

  base::ManualExecutor executor_;
  inventory::Inventory inventory_;
  ledger::Ledger ledger_;
};

TEST_F(FollowTest, FindsWhoIsOutsideAndThatTheyHaveGone) {
  Follow follow(executor_, executor_, "/proc", inventory_, ledger_);
  const auto subscriptions = Subscribe(follow);
  Look();
  ASSERT_TRUE(ledger_.Get()->outside.contains("G0"));
  EXPECT_EQ(ledger_.Get()->outside.at("G0").at(0).pid, ::getpid());
  inventory_.SetReading("G0", {}, {});
  executor_.RunUntilIdle();
  EXPECT_TRUE(ledger_.Get()->outside.empty());
}

TEST_F(FollowTest, AServerThroughWhichADeviceIsSharedIsNoOnesAndNotOutside) {
  pid_t asked = 0;
  Follow follow(executor_, executor_, "/proc", inventory_, ledger_,
                [&](const os::ProcessInfo& process) {
                  asked = process.pid;
                  return true;
                });
  const auto subscriptions = Subscribe(follow);
  ASSERT_TRUE(ledger_.Add({.id = "k-1", .allocator = "kubelet", .slots = {{"G0::0", "G0"}}}).ok());
  Look();
  EXPECT_EQ(asked, ::getpid());
  EXPECT_TRUE(ledger_.Get()->outside.empty());
  EXPECT_TRUE(ledger_.Get()->leases[0].processes.empty());
}

TEST_F(FollowTest, AProcessOfARunIsKnownOnceItIsOnADevice) {
  Follow follow(executor_, executor_, "/proc", inventory_, ledger_);
  const auto subscriptions = Subscribe(follow);
  const ledger::Process root{::getppid(), *os::ReadProcessStart("/proc", ::getppid()), "eva",
                             "shell"};
  const ledger::Process earlier{::getpid(), 1, "bob", "had our number"};
  ASSERT_TRUE(ledger_
                  .Add({.id = "r-1",
                        .allocator = "local",
                        .slots = {{"G0::0", "G0"}},
                        .processes = {root, earlier}})
                  .ok());
  Look();
  const auto& processes = ledger_.Get()->leases[0].processes;
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_EQ(processes[0], root);
  EXPECT_EQ(processes[1].pid, ::getpid());
  EXPECT_EQ(processes[1].start, *os::ReadProcessStart("/proc", ::getpid()));
  inventory_.SetReading("G0", {}, {});
  executor_.RunUntilIdle();
  EXPECT_EQ(ledger_.Get()->leases[0].processes.size(), 2u)
      << "its allocator knows when it has ended";
}

}  // namespace
}  // namespace penstock::node::attribute
