// Uses a pipe in place of a file of /proc: it blocks its readers, as a process can that holds its
// memory's lock.
#include "os/process/process_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/core/file.h"
#include "os/process/process.h"
#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

using namespace std::chrono_literals;

constexpr uid_t kHostile = 100, kOther = 101;

class ProcessMemoryTest : public testing::Test {
 protected:
  ProcessMemoryTest() {
    Add("1", kOther);
    Add("2", kHostile);
    EXPECT_TRUE(WriteFileAtomically(folder_.path() + "/1/cmdline", std::string("sleep\0"
                                                                               "5\0",
                                                                               8))
                    .ok());
    EXPECT_EQ(::mkfifo(Pipe().c_str(), 0600), 0);
  }
  std::string Pipe() const { return folder_.path() + "/2/cmdline"; }
  void Add(const std::string& pid, uid_t uid) {
    const std::string process = folder_.path() + "/" + pid, user = std::to_string(uid);
    EXPECT_TRUE(MakeDirectories(process).ok());
    EXPECT_TRUE(
        WriteFileAtomically(process + "/stat",
                            pid + " (name) S 0 1 1 0 -1 0 1 2 3 4 5 6 0 0 20 0 1 0 99 1 2 3\n")
            .ok());
    EXPECT_TRUE(
        WriteFileAtomically(process + "/status", "Uid:\t" + user + "\t" + user + "\n").ok());
  }
  /// Releases readers that wait at the pipe.
  void Release() const {
    const UniqueFd writer(::open(Pipe().c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  }

  const TemporaryFolder folder_;
};

TEST_F(ProcessMemoryTest, AProcessThatKeepsReadersWaitingIsShownByItsName) {
  for (int i = 0; i < 20; ++i) {
    const auto hostile = ReadProcess(folder_.path(), 2);
    ASSERT_TRUE(hostile.ok()) << hostile.error().message();
    EXPECT_EQ(hostile->command, "[name]");
    const auto other = ReadProcess(folder_.path(), 1);
    ASSERT_TRUE(other.ok());
    EXPECT_EQ(other->command, "sleep 5") << "a process of another user";
  }
  const UniqueFd process(::open((folder_.path() + "/2").c_str(), O_PATH | O_CLOEXEC));
  EXPECT_EQ(ReadMemoryOf(process, "cmdline", 10, kHostile).error().code(), Code::kUnavailable)
      << "no thread waits for it any longer";
  Release();
}

TEST(Patience, IsForEachUserAndForAll) {
  Patience patience;
  const base::TimePoint start = base::TimePoint{} + 1h;
  const auto waits = [&](uid_t uid) {
    if (!patience.Has(uid, start)) return false;
    patience.Waited(uid, {start, start}, start + 500ms);
    return true;
  };
  EXPECT_TRUE(waits(1) && waits(1));
  EXPECT_FALSE(waits(1));
  for (uid_t uid = 2; uid < 5; ++uid) EXPECT_TRUE(waits(uid) && waits(uid)) << "another user";
  EXPECT_FALSE(waits(5)) << "the limit of all users together";
  EXPECT_TRUE(patience.Has(1, start + Patience::kWindow)) << "later";
}

TEST(Patience, DoesNotCountWhatABusyMachineTakes) {
  Patience patience;
  const base::TimePoint asked = base::TimePoint{} + 1h, begun = asked + 3s;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(patience.Has(1, asked));
    patience.Waited(1, {asked, begun}, begun + Patience::kCounted);
  }
  patience.Waited(1, {asked, std::nullopt}, asked + Patience::kForAThread);
  EXPECT_TRUE(patience.Has(1, asked)) << "no thread read from the process";
}

TEST(Patience, GivesAReadItsTimeFromWhenItBegins) {
  const base::TimePoint asked = base::TimePoint{} + 1h;
  EXPECT_EQ(Patience::Until({asked, asked + 3s}), asked + 3s + Patience::kOnce);
  EXPECT_EQ(Patience::Until({asked, std::nullopt}), asked + Patience::kForAThread);
}

}  // namespace
}  // namespace penstock::os
