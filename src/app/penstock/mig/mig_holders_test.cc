#include "app/penstock/mig/mig_holders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "app/state_files.h"
#include "node/ledger/checkpoint.h"
#include "os/core/file.h"
#include "os/core/testing/temporary_folder.h"
#include "os/process/process.h"

namespace penstock::app {
namespace {

using node::ledger::Lease;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kUid[] = "0a1b2c3d-1111-2222-3333-444455556666";

void Must(const base::Status& status) { ASSERT_TRUE(status.ok()) << status.error().message(); }

class RecordedHoldersTest : public ::testing::Test {
 protected:
  RecordedHoldersTest() {
    paths_.proc_root = folder_.path() + "/proc";
    paths_.state_dir = folder_.path() + "/state";
    paths_.kubelet_dir = folder_.path() + "/kubelet";
    for (const std::string& path : {paths_.proc_root, paths_.state_dir, paths_.kubelet_dir})
      Must(os::MakeDirectories(path));
  }

  static Lease Run(const std::string& device) {
    Lease run;
    run.id = "r-m3k2-1";
    run.allocator = "local";
    run.slots = {{.id = device, .device = device}};
    run.user = os::UserName(::getuid());
    run.processes = {{.pid = 42, .start = 100}};
    return run;
  }

  static Lease Pod(const std::string& device) {
    Lease pod;
    pod.id = "k-1";
    pod.allocator = "kubelet";
    pod.slots = {{.id = device, .device = device}};
    pod.pod_uid = kUid;
    pod.namespace_name = "ml";
    pod.pod = "train-0";
    return pod;
  }

  std::map<std::string, std::string> HoldersOf(const std::vector<Lease>& leases,
                                               const std::string& boot = "") {
    node::ledger::Snapshot snapshot;
    snapshot.leases = leases;
    const std::string now = boot.empty() ? *os::ReadBootId("/proc") : boot;
    Must(os::WriteFileAtomically(LedgerPath(paths_.state_dir),
                                 node::ledger::EncodeCheckpoint(snapshot, now)));
    auto holders = RecordedHolders(paths_);
    EXPECT_TRUE(holders.ok()) << holders.error().message();
    return holders.ok() ? *std::move(holders) : std::map<std::string, std::string>();
  }

  void AddProcess(int pid, int start, const std::string& cgroup, int parent = 1) {
    const std::string at = paths_.proc_root + "/" + std::to_string(pid);
    Must(os::MakeDirectories(at));
    const auto write = [&](const std::string& name, const std::string& text) {
      Must(os::WriteFileAtomically(at + "/" + name, text));
    };
    write("stat", std::to_string(pid) + " (a) S " + std::to_string(parent) + " " +
                      std::to_string(pid) + " 1 0 -1 0 1 2 3 4 5 6 0 0 20 0 1 0 " +
                      std::to_string(start) + " 1 2\n");
    write("status", "Name:\ta\nUid:\t" + std::to_string(::getuid()) + "\t0\t0\t0\n");
    write("cmdline", "a");
    write("environ", "");
    write("cgroup", "0::" + cgroup + "\n");
  }

  os::TemporaryFolder folder_;
  api::PathsConfig paths_;
};

TEST_F(RecordedHoldersTest, ARunIsThereWhileItHasAProcess) {
  const std::string held =
      "the run of " + os::UserName(::getuid()) + ", as the agent that ended recorded";
  EXPECT_THAT(HoldersOf({Run("GPU-1")}), IsEmpty());
  AddProcess(42, 101, "/user.slice");
  EXPECT_THAT(HoldersOf({Run("GPU-1")}), IsEmpty()) << "a later process with the same pid";
  AddProcess(42, 100, "/user.slice");
  EXPECT_THAT(HoldersOf({Run("GPU-1")}), UnorderedElementsAre(Pair("GPU-1", held)));
  EXPECT_THAT(HoldersOf({Run("GPU-1")}, "another boot"), IsEmpty());
}

TEST_F(RecordedHoldersTest, ARunIsThereWhileItsGroupHasAProcess) {
  AddProcess(7, 1, "/user.slice/penstock.r-m3k2-10");
  EXPECT_THAT(HoldersOf({Run("GPU-1")}), IsEmpty()) << "another run's";
  AddProcess(7, 1, "/user.slice/penstock.r-m3k2-1/below");
  EXPECT_EQ(HoldersOf({Run("GPU-1")}).count("GPU-1"), 1u);
  AddProcess(7, 1, "/penstock/r-m3k2-1");
  EXPECT_EQ(HoldersOf({Run("GPU-1")}).count("GPU-1"), 1u);
}

TEST_F(RecordedHoldersTest, APodIsThereWhileItHasAProcessOrAFolder) {
  const auto held =
      UnorderedElementsAre(Pair("GPU-1", "pod ml/train-0, as the agent that ended recorded"));
  EXPECT_THAT(HoldersOf({Pod("GPU-1")}), IsEmpty());
  AddProcess(9, 1, "/kubepods/burstable/pod" + std::string(kUid) + "/c");
  EXPECT_THAT(HoldersOf({Pod("GPU-1")}), held);
  AddProcess(9, 1, "/kubepods/burstable/podother/c");
  EXPECT_THAT(HoldersOf({Pod("GPU-1")}), IsEmpty());
  Must(os::MakeDirectories(paths_.kubelet_dir + "/pods/" + kUid));
  EXPECT_THAT(HoldersOf({Pod("GPU-1")}), held);
}

TEST_F(RecordedHoldersTest, APodWhoseNameIsNotKnownIsThere) {
  Lease unknown = Pod("GPU-1");
  unknown.pod_uid = unknown.pod = unknown.namespace_name = "";
  EXPECT_THAT(HoldersOf({unknown}),
              UnorderedElementsAre(Pair("GPU-1", "a pod, as the agent that ended recorded")));
  // An id that is a path names no folder of the kubelet.
  Lease hostile = Pod("GPU-1");
  hostile.pod_uid = "../../proc";
  EXPECT_THAT(HoldersOf({hostile}), IsEmpty());
}

TEST_F(RecordedHoldersTest, WhatCannotBeReadIsAnError) {
  EXPECT_THAT(*RecordedHolders(paths_), IsEmpty()) << "no agent ever ran";
  Must(os::WriteFileAtomically(LedgerPath(paths_.state_dir), "no JSON"));
  EXPECT_FALSE(RecordedHolders(paths_).ok());
}

}  // namespace
}  // namespace penstock::app
