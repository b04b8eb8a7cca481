// Process trees in a /proc of the test's own.
#include "door/family.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "os/process.h"
#include "os/temporary_folder.h"

namespace penstock::door {
namespace {

using node::ledger::Process;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class FakeProc {
 public:
  void Add(pid_t pid, pid_t parent, std::uint64_t start, const std::string& environment = "", char state = 'S', uid_t uid = ::getuid()) {
    const std::string folder = std::to_string(pid);
    folder_.Write(folder + "/stat", folder + " (sh) " + state + " " + std::to_string(parent) +
                                        " 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 " + std::to_string(start) + " 0 0 0");
    folder_.Write(folder + "/environ", environment);
    folder_.Write(folder + "/cmdline", "sh");
    folder_.Write(folder + "/status", "Name:\tsh\nUid:\t" + std::to_string(uid) + "\t0\t0\t0\n");
  }
  void End(pid_t pid) { std::filesystem::remove_all(folder_ / std::to_string(pid)); }
  const std::string& path() const { return folder_.path(); }

 private:
  os::TemporaryFolder folder_;
};

Family Of(pid_t pid, std::uint64_t start) { return {"r-1", os::UserName(::getuid()), {{pid, start, "", ""}}}; }

std::vector<pid_t> Pids(const std::vector<Process>& processes) {
  std::vector<pid_t> pids;
  for (const Process& process : processes) pids.push_back(process.pid);
  return pids;
}

std::vector<pid_t> Find(const FakeProc& proc, const Family& family) { return Pids(FindFamilies(proc.path(), {family}).at(0).members); }

TEST(Family, IsAProcessAndItsDescendants) {
  FakeProc proc;
  proc.Add(1, 0, 1);
  proc.Add(10, 1, 100);
  proc.Add(11, 10, 110);
  proc.Add(12, 11, 120);
  proc.Add(20, 1, 100);
  EXPECT_THAT(Find(proc, Of(10, 100)), ElementsAre(10, 11, 12));
}

TEST(Family, KeepsAMemberWhoseParentsEnded) {
  FakeProc proc;
  proc.Add(12, 1, 120);
  proc.Add(13, 12, 130);
  Family family = Of(10, 100);
  family.members.push_back({12, 120, "", ""});
  EXPECT_THAT(Find(proc, family), ElementsAre(12, 13));
}

TEST(Family, FindsADaemonByItsEnvironment) {
  FakeProc proc;
  proc.Add(12, 1, 120, std::string("HOME=/\0PENSTOCK_LEASE=r-1\0X=y\0", 31));
  proc.Add(13, 1, 120, std::string("PENSTOCK_LEASE=r-12\0", 20));
  EXPECT_THAT(Find(proc, Of(10, 100)), ElementsAre(12));
}

TEST(Family, DoesNotBelieveAnotherUsersEnvironment) {
  FakeProc proc;
  proc.Add(12, 1, 120, "PENSTOCK_LEASE=r-1", 'S', ::getuid() + 1);
  EXPECT_THAT(Find(proc, Of(10, 100)), IsEmpty());
}

TEST(Family, DoesNotTakeALaterProcessWithTheSamePid) {
  FakeProc proc;
  proc.Add(10, 1, 777);
  EXPECT_THAT(Find(proc, Of(10, 100)), IsEmpty());
}

TEST(Family, DoesNotCountTheDead) {
  FakeProc proc;
  proc.Add(10, 1, 100, "", 'Z');
  EXPECT_THAT(Find(proc, Of(10, 100)), IsEmpty());
}

class FamilyWatchTest : public testing::Test {
 protected:
  base::ManualExecutor executor_;
  FakeProc proc_;
  std::vector<std::vector<pid_t>> told_;
  FamilyWatch watch_{executor_, executor_, proc_.path(), [this](const Family& family) { told_.push_back(Pids(family.members)); }};
};

TEST_F(FamilyWatchTest, TellsChangesAndTheEnd) {
  proc_.Add(10, 1, 100);
  watch_.Follow(FindFamilies(proc_.path(), {Of(10, 100)}).at(0));
  executor_.Advance(seconds(3));
  EXPECT_THAT(told_, IsEmpty());
  proc_.Add(11, 10, 110);
  executor_.Advance(seconds(1));
  EXPECT_THAT(told_, ElementsAre(ElementsAre(10, 11)));
  proc_.End(10);
  proc_.End(11);
  executor_.Advance(seconds(1));
  EXPECT_THAT(told_.back(), IsEmpty());
  const std::size_t before = told_.size();
  executor_.Advance(seconds(5));
  EXPECT_EQ(told_.size(), before) << "a family that ended is forgotten";
}

TEST_F(FamilyWatchTest, LooksAgainBeforeItCallsAFamilyEnded) {
  base::ManualExecutor io;
  std::vector<std::vector<pid_t>> told;
  FamilyWatch watch(executor_, io, proc_.path(), [&](const Family& family) { told.push_back(Pids(family.members)); });
  watch.Follow(Of(10, 100));
  executor_.Advance(seconds(1));
  io.RunUntilIdle();  // nobody is there: the daemon is between two parents
  proc_.Add(12, 1, 120, "PENSTOCK_LEASE=r-1");
  executor_.RunUntilIdle();
  executor_.Advance(seconds(0));
  io.RunUntilIdle();
  executor_.RunUntilIdle();
  EXPECT_THAT(told, ElementsAre(ElementsAre(12)));
}

TEST(FamilyWatch, MayEndWhileALookIsOnItsWay) {
  base::ManualExecutor control, io;
  FakeProc proc;
  {
    FamilyWatch watch(control, io, proc.path(), [](const Family&) { FAIL() << "called after the end"; });
    watch.Follow(Of(10, 100));
    control.Advance(seconds(1));
  }
  io.RunUntilIdle();
  control.Advance(seconds(5));
}

}  // namespace
}  // namespace penstock::door
