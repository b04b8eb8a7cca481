#include "node/attribute/follow.h"

#include <array>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/manual_executor.h"
#include "device/testing/acme.h"
#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

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

TEST_F(FollowTest, WhatOneLookFindsIsPublishedOnceAndItsOwnPublicationChangesNothing) {
  Follow follow(executor_, executor_, "/proc", inventory_, ledger_);
  const ledger::Process root{::getppid(), *os::ReadProcessStart("/proc", ::getppid()), "eva",
                             "shell"};
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(ledger_
                    .Add({.id = "r-" + std::to_string(i),
                          .allocator = "local",
                          .slots = {{"G" + std::to_string(i), "G" + std::to_string(i)}},
                          .processes = {root}})
                    .ok());
  std::vector<device::Facts> devices;
  for (int i = 0; i < 6; ++i) devices.push_back(device::testing::AcmeDevice(i, 6));
  inventory_.SetFacts("acme", devices, "", {});
  for (int i = 0; i < 6; ++i)
    inventory_.SetReading("G" + std::to_string(i),
                          {.processes = {{.pid = ::getpid(), .graphics_only = i > 3}}}, {});
  const auto subscriptions = Subscribe(follow);
  int published = 0;
  const auto counts = ledger_.published().Subscribe([&](const auto&) { ++published; });
  follow.DevicesChanged();
  executor_.Advance(std::chrono::minutes(1));
  const auto found = ledger_.Get();
  EXPECT_EQ(found->leases[0].processes.size(), 2u);
  EXPECT_EQ(found->leases[1].processes.size(), 2u);
  EXPECT_EQ(found->outside.size(), 2u);
  EXPECT_EQ(found->graphics.size(), 2u);
  EXPECT_EQ(published, 1);
  for (int i = 0; i < 6; ++i) inventory_.SetReading("G" + std::to_string(i), {}, {});
  executor_.RunUntilIdle();
  EXPECT_TRUE(ledger_.Get()->outside.empty());
  EXPECT_TRUE(ledger_.Get()->graphics.empty());
  EXPECT_EQ(published, 2);
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

TEST_F(FollowTest, AProcessThatExecutesAnotherProgramIsKnownByThatOne) {
  const os::TemporaryFolder proc;
  const std::string process = proc.path() + "/4711";
  ASSERT_TRUE(os::MakeDirectories(process).ok());
  ASSERT_TRUE(os::WriteFileAtomically(process + "/stat",
                                      "4711 (run) S 0 1 1 0 -1 0 1 2 3 4 5 6 0 0 20 0 1 0 99 1\n")
                  .ok());
  const auto executes = [&](const std::string& command) {
    ASSERT_TRUE(os::WriteFileAtomically(process + "/cmdline", command).ok());
  };
  Follow follow(executor_, executor_, proc.path(), inventory_, ledger_);
  const auto subscriptions = Subscribe(follow);
  ASSERT_TRUE(ledger_.Add({.id = "r-1", .allocator = "local", .slots = {{"G0::0", "G0"}}}).ok());
  executes("penstock");
  inventory_.SetFacts("acme", {device::testing::AcmeDevice(0, 1)}, "", {});
  inventory_.SetReading("G0", {.processes = {{4711, {}}}}, {});
  executor_.RunUntilIdle();
  EXPECT_EQ(ledger_.Get()->outside.at("G0").at(0).command, "penstock");
  // The group of the run is read later than the devices.
  ledger::Lease lease = ledger_.Get()->leases[0];
  lease.processes = {{4711, 99, "eva", "penstock"}};
  ASSERT_TRUE(ledger_.Update(lease).ok());
  executor_.RunUntilIdle();
  executes("train");
  executor_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(ledger_.Get()->leases[0].processes.at(0).command, "train");
  EXPECT_EQ(ledger_.Get()->leases[0].processes.at(0).user, "eva");
}

}  // namespace
}  // namespace penstock::node::attribute
