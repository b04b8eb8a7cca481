// Tests when the file is written, with executors that the test runs.
#include "os/kept_file.h"

#include <optional>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/manual_executor.h"
#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

class KeptFileTest : public testing::Test {
 protected:
  std::string OnDisk() const { return ReadFile(path_).value_or("nothing"); }
  void Settle() {
    for (int round = 0; round < 3; ++round) {
      io_.RunUntilIdle();
      control_.RunUntilIdle();
    }
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "kept.json";
  base::ManualExecutor control_, io_;
  std::optional<KeptFile> file_{std::in_place, control_, io_, path_, "cannot be kept"};
};

TEST_F(KeptFileTest, WritesOnTheOtherExecutorWhatWasKeptLast) {
  for (const char* text : {"one", "two", "three"}) file_->Keep(text);
  EXPECT_EQ(OnDisk(), "nothing");
  io_.RunUntilIdle();
  EXPECT_EQ(OnDisk(), "one") << "the other texts came while the first was written";
  Settle();
  EXPECT_EQ(OnDisk(), "three");
}

TEST_F(KeptFileTest, LeavesTheLastTextAtTheEndWhileAnOlderOneIsUnderWay) {
  file_->Keep("one");
  file_->Keep("two");
  file_.reset();
  EXPECT_EQ(OnDisk(), "two");
  Settle();
  EXPECT_EQ(OnDisk(), "two") << "the pending write comes too late";
}

TEST_F(KeptFileTest, WritesAtTheEndWhatTheOtherExecutorHasNotWritten) {
  file_->Keep("one");
  file_.reset();
  EXPECT_EQ(OnDisk(), "one");
}

TEST_F(KeptFileTest, WritesNothingAtTheEndThatIsThere) {
  file_->Keep("one");
  Settle();
  ASSERT_TRUE(WriteFileAtomically(path_, "somebody else's").ok());
  file_->Keep("one");
  Settle();
  file_.reset();
  EXPECT_EQ(OnDisk(), "somebody else's");
}

TEST_F(KeptFileTest, TriesAgainWhatCouldNotBeWrittenAndAtTheEndToo) {
  ASSERT_TRUE(MakeDirectories(path_ + "/in-the-way").ok());
  file_->Keep("one");
  Settle();
  ASSERT_EQ(::rmdir((path_ + "/in-the-way").c_str()), 0);
  ASSERT_EQ(::rmdir(path_.c_str()), 0);
  control_.Advance(std::chrono::seconds(10));
  Settle();
  EXPECT_EQ(OnDisk(), "one");

  ASSERT_EQ(::unlink(path_.c_str()), 0);
  ASSERT_TRUE(MakeDirectories(path_ + "/in-the-way").ok());
  file_->Keep("two");
  Settle();
  ASSERT_EQ(::rmdir((path_ + "/in-the-way").c_str()), 0);
  ASSERT_EQ(::rmdir(path_.c_str()), 0);
  file_.reset();
  EXPECT_EQ(OnDisk(), "two");
}

TEST_F(KeptFileTest, MakesTheTextOfASourceAtTheTimeOfTheWriteAndRestsAfterIt) {
  std::string state = "one";
  int encoded = 0;
  file_.emplace(control_, io_, path_, "cannot be kept", std::chrono::seconds(1),
                [&] { return [&encoded, text = state] { return ++encoded, text; }; });
  file_->Changed();
  file_->Changed();
  state = "two";
  Settle();
  EXPECT_EQ(OnDisk(), "two");
  EXPECT_EQ(encoded, 1);
  state = "three";
  file_->Changed();
  Settle();
  EXPECT_EQ(OnDisk(), "two") << "the file rests";
  control_.Advance(std::chrono::seconds(1));
  Settle();
  EXPECT_EQ(OnDisk(), "three");
  state = "four";
  file_->Changed();
  file_.reset();
  EXPECT_EQ(OnDisk(), "four");
}

}  // namespace
}  // namespace penstock::os
