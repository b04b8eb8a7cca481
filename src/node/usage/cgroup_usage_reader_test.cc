#include "node/usage/cgroup_usage_reader.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "os/testing/temporary_folder.h"

namespace penstock::node::usage {
namespace {

using namespace std::chrono_literals;

constexpr char kUid[] = "6f1c-aa";

TEST(ContainerGroup, IsTheOneBelowItsPods) {
  EXPECT_EQ(ContainerGroup("/kubepods/burstable/pod6f1c-aa/c1", kUid),
            "/kubepods/burstable/pod6f1c-aa/c1");
  EXPECT_EQ(ContainerGroup("/kubepods/burstable/pod6f1c-aa/c1/inner/most", kUid),
            "/kubepods/burstable/pod6f1c-aa/c1");
  EXPECT_EQ(
      ContainerGroup("/kubepods.slice/kubepods-pod6f1c_aa.slice/cri-containerd-c1.scope", kUid),
      "/kubepods.slice/kubepods-pod6f1c_aa.slice/cri-containerd-c1.scope");
  EXPECT_EQ(ContainerGroup("/../../pod6f1c-aa/c1", kUid), "/../../pod6f1c-aa/c1");
  for (const char* path :
       {"", "/", "/kubepods/pod6f1c-aa", "/kubepods/pod6f1c-ab/c1", "/user.slice"})
    EXPECT_EQ(ContainerGroup(path, kUid), "");
}

/// Runs in a real hierarchy need root (tests/integration/usage_test.py). These tests read the
/// test's own group.
class GroupsTest : public ::testing::Test {
 protected:
  /// Puts a process into the test's own group and declares that to be a container of the pod.
  void Process(pid_t pid, const std::string& path) {
    folder_.Write(std::to_string(pid) + "/cgroup", "0::" + path + "\n");
  }

  ledger::Lease Pod(const std::string& id, std::vector<pid_t> pids) {
    ledger::Lease lease{.id = id, .allocator = "kubelet", .slots = {{id, id, "", {}}}};
    lease.pod_uid = kUid;
    for (const pid_t pid : pids) lease.processes.push_back({pid, 1, "", ""});
    return lease;
  }
  void Follow(std::vector<ledger::Lease> leases) { groups_.Follow({.leases = std::move(leases)}); }
  void Refresh() {
    groups_.Refresh();
    executor_.RunUntilIdle();
  }

  os::TemporaryFolder folder_;
  base::ManualExecutor executor_;
  std::map<std::string, int> reported_;
  CgroupUsageReader groups_{
      executor_, executor_, folder_.path(),
      [this](const std::string& lease, const os::CgroupUsage&) { ++reported_[lease]; }};
};

TEST_F(GroupsTest, AContainerIsReadOnceAProcessOfItIsKnown) {
  Follow({Pod("k-1", {})});
  Refresh();
  EXPECT_TRUE(reported_.empty());
  Process(7, "/kubepods/pod6f1c-aa/c1");
  Follow({Pod("k-1", {6, 7})});
  Refresh();
  EXPECT_EQ(reported_["k-1"], 1);
}

TEST_F(GroupsTest, OldLeasesAreReadLessOften) {
  Process(7, "/kubepods/pod6f1c-aa/c1");
  Follow({Pod("k-1", {7})});
  Refresh();
  executor_.Advance(CgroupUsageReader::kYoung);
  reported_.clear();
  for (int second = 0; second < 10; ++second) {
    Refresh();
    executor_.Advance(1s);
  }
  EXPECT_EQ(reported_["k-1"], 2);
}

TEST_F(GroupsTest, TwoLeasesOfOneContainerAreCountedOnce) {
  Process(7, "/kubepods/pod6f1c-aa/c1");
  Process(8, "/kubepods/pod6f1c-aa/c2");
  Follow({Pod("k-1", {7}), Pod("k-2", {7}), Pod("k-3", {8})});
  Refresh();
  EXPECT_EQ(reported_, (std::map<std::string, int>{{"k-1", 1}, {"k-3", 1}}));
}

TEST_F(GroupsTest, ALeaseThatHasGoneIsReadALastTimeAndThenForgotten) {
  Process(7, "/kubepods/pod6f1c-aa/c1");
  Follow({Pod("k-1", {7})});
  Refresh();
  Follow({});
  EXPECT_EQ(reported_["k-1"], 2);
  Refresh();
  EXPECT_EQ(reported_["k-1"], 2);
}

}  // namespace
}  // namespace penstock::node::usage
