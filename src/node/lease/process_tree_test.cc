// Tests process trees in a simulated /proc.
#include "node/lease/process_tree.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/manual_executor.h"
#include "os/process/process.h"
#include "os/testing/temporary_folder.h"

namespace penstock::node::lease {
namespace {

using ledger::Process;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class FakeProc {
 public:
  void Add(pid_t pid, pid_t parent, std::uint64_t start, const std::string& environment = "",
           char state = 'S', uid_t uid = ::getuid()) {
    const std::string folder = std::to_string(pid);
    folder_.Write(folder + "/stat", folder + " (sh) " + state + " " + std::to_string(parent) +
                                        " 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 " +
                                        std::to_string(start) + " 0 0 0");
    folder_.Write(folder + "/environ", environment);
    folder_.Write(folder + "/cmdline", "sh");
    folder_.Write(folder + "/status", "Name:\tsh\nUid:\t" + std::to_string(uid) + "\t0\t0\t0\n");
  }
  void End(pid_t pid) { std::filesystem::remove_all(folder_ / std::to_string(pid)); }
  const std::string& path() const { return folder_.path(); }

 private:
  os::TemporaryFolder folder_;
};

ProcessTree Of(pid_t pid, std::uint64_t start) {
  return {"r-1", os::UserName(::getuid()), {{pid, start, "", ""}}};
}

std::vector<pid_t> Pids(const std::vector<Process>& processes) {
  std::vector<pid_t> pids;
  for (const Process& process : processes) pids.push_back(process.pid);
  return pids;
}

std::vector<pid_t> Find(const FakeProc& proc, const ProcessTree& family) {
  return Pids(FindProcessTrees(proc.path(), {family}).at(0).members);
}

TEST(ProcessTree, IsAProcessAndItsDescendants) {
  FakeProc proc;
  proc.Add(1, 0, 1);
  proc.Add(10, 1, 100);
  proc.Add(11, 10, 110);
  proc.Add(12, 11, 120);
  proc.Add(20, 1, 100);
  EXPECT_THAT(Find(proc, Of(10, 100)), ElementsAre(10, 11, 12));
}

TEST(ProcessTree, KeepsAMemberWhoseParentsEnded) {
  FakeProc proc;
  proc.Add(12, 1, 120);
  proc.Add(13, 12, 130);
  ProcessTree family = Of(10, 100);
  family.members.push_back({12, 120, "", ""});
  EXPECT_THAT(Find(proc, family), ElementsAre(12, 13));
}

TEST(ProcessTree, FindsADaemonByItsEnvironment) {
  FakeProc proc;
  proc.Add(12, 1, 120, std::string("HOME=/\0PENSTOCK_LEASE=r-1\0X=y\0", 31));
  proc.Add(13, 1, 120, std::string("PENSTOCK_LEASE=r-12\0", 20));
  EXPECT_THAT(Find(proc, Of(10, 100)), ElementsAre(12));
}

TEST(ProcessTree, DoesNotBelieveAnotherUsersEnvironment) {
  FakeProc proc;
  proc.Add(12, 1, 120, "PENSTOCK_LEASE=r-1", 'S', ::getuid() + 1);
  EXPECT_THAT(Find(proc, Of(10, 100)), IsEmpty());
}

TEST(ProcessTree, DoesNotTakeALaterProcessWithTheSamePid) {
  FakeProc proc;
  proc.Add(10, 1, 777);
  EXPECT_THAT(Find(proc, Of(10, 100)), IsEmpty());
}

TEST(ProcessTree, DoesNotCountTheDead) {
  FakeProc proc;
  proc.Add(10, 1, 100, "", 'Z');
  EXPECT_THAT(Find(proc, Of(10, 100)), IsEmpty());
}

class FamilyWatchTest : public testing::Test {
 protected:
  base::ManualExecutor executor_;
  FakeProc proc_;
  std::vector<std::vector<pid_t>> reported_;
  ProcessTreeWatch watch_{executor_, executor_, proc_.path(), [this](const ProcessTree& family) {
                            reported_.push_back(Pids(family.members));
                          }};
};

TEST_F(FamilyWatchTest, ReportsChangesAndTheEnd) {
  proc_.Add(10, 1, 100);
  watch_.Follow(FindProcessTrees(proc_.path(), {Of(10, 100)}).at(0));
  executor_.Advance(seconds(3));
  EXPECT_THAT(reported_, IsEmpty());
  proc_.Add(11, 10, 110);
  executor_.Advance(seconds(1));
  EXPECT_THAT(reported_, ElementsAre(ElementsAre(10, 11)));
  proc_.End(10);
  proc_.End(11);
  executor_.Advance(seconds(1));
  EXPECT_THAT(reported_.back(), IsEmpty());
  const std::size_t before = reported_.size();
  executor_.Advance(seconds(5));
  EXPECT_EQ(reported_.size(), before) << "a process tree that ended is no longer followed";
}

TEST_F(FamilyWatchTest, LooksAgainBeforeItCallsAFamilyEnded) {
  base::ManualExecutor io;
  std::vector<std::vector<pid_t>> reported;
  ProcessTreeWatch watch(executor_, io, proc_.path(), [&](const ProcessTree& family) {
    reported.push_back(Pids(family.members));
  });
  watch.Follow(Of(10, 100));
  executor_.Advance(seconds(1));
  io.RunUntilIdle();  // no process is found: the daemon is between two parents
  proc_.Add(12, 1, 120, "PENSTOCK_LEASE=r-1");
  executor_.RunUntilIdle();
  executor_.Advance(seconds(0));
  io.RunUntilIdle();
  executor_.RunUntilIdle();
  EXPECT_THAT(reported, ElementsAre(ElementsAre(12)));
}

TEST(ProcessTreeWatch, MayEndWhileALookIsOnItsWay) {
  base::ManualExecutor control, io;
  FakeProc proc;
  {
    ProcessTreeWatch watch(control, io, proc.path(),
                           [](const ProcessTree&) { FAIL() << "called after the end"; });
    watch.Follow(Of(10, 100));
    control.Advance(seconds(1));
  }
  io.RunUntilIdle();
  control.Advance(seconds(5));
}

}  // namespace
}  // namespace penstock::node::lease
