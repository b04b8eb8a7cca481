#include "node/attribute/job_follower.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "os/testing/temporary_folder.h"
#include "os/testing/turned_loop.h"

namespace penstock::node::attribute {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

using Jobs = std::vector<std::string>;

class JobFollowerTest : public testing::Test {
 protected:
  JobFollowerTest() {
    subscription_ = follower_.published().Subscribe([this](const auto&) { ++changes_; });
    io_.Start();
    testing::internal::CaptureStderr();
  }
  ~JobFollowerTest() override {
    io_.Stop();
    if (!log_taken_) testing::internal::GetCapturedStderr();
  }

  void Follow(const std::string& path) {
    follower_.Configure(path);
    Settle();
  }
  void Settle() {
    io_.Advance(1s);
    control_.RunUntilIdle();
  }
  bool Becomes(const DeviceJobs& jobs) {
    return io_.AdvanceUntil(1s, [&] {
      control_.RunUntilIdle();
      return *follower_.published().Get() == jobs;
    });
  }
  std::string Log() {
    log_taken_ = true;
    return testing::internal::GetCapturedStderr();
  }

  os::TemporaryFolder folder_;
  base::ManualExecutor control_;
  os::TurnedLoop io_{"jobs-test"};
  JobFollower follower_{control_, io_.loop()};
  base::Subscription subscription_;
  int changes_ = 0;
  bool log_taken_ = false;
};

TEST_F(JobFollowerTest, HasWhatTheFilesSayAndFollowsThem) {
  folder_.Write("jobs/0", "1\n");
  Follow(folder_ / "jobs");
  EXPECT_TRUE(Becomes({{"0", {"1"}}}));
  folder_.Write("jobs/0", "2\n3\n");
  EXPECT_TRUE(Becomes({{"0", {"2", "3"}}}));
  folder_.Write("jobs/1.4", "4\n");
  EXPECT_TRUE(Becomes({{"0", {"2", "3"}}, {"1.4", {"4"}}}));
  folder_.Write("new", "5\n");
  fs::rename(folder_ / "new", folder_ / "jobs/0");
  EXPECT_TRUE(Becomes({{"0", {"5"}}, {"1.4", {"4"}}}));
  fs::remove(folder_ / "jobs/0");
  fs::remove(folder_ / "jobs/1.4");
  EXPECT_TRUE(Becomes({}));
}

TEST_F(JobFollowerTest, FollowsAFolderThatComesGoesAndIsReplaced) {
  Follow(folder_ / "a/jobs");
  EXPECT_EQ(changes_, 0);
  fs::create_directory(folder_ / "a");
  folder_.Write("a/jobs/0", "1\n");
  EXPECT_TRUE(Becomes({{"0", {"1"}}}));
  fs::rename(folder_ / "a/jobs", folder_ / "a/old");
  EXPECT_TRUE(Becomes({}));
  folder_.Write("a/new/0", "2\n");
  fs::rename(folder_ / "a/new", folder_ / "a/jobs");
  EXPECT_TRUE(Becomes({{"0", {"2"}}}));
  folder_.Write("a/jobs/0", "3\n");
  EXPECT_TRUE(Becomes({{"0", {"3"}}}));
  fs::remove_all(folder_ / "a");
  EXPECT_TRUE(Becomes({}));
  EXPECT_THAT(Log(), HasSubstr("the directory does not exist yet"));
}

TEST_F(JobFollowerTest, FollowsTheFolderOfTheConfigurationAndNoOther) {
  folder_.Write("a/0", "1\n");
  folder_.Write("b/0", "2\n");
  Follow(folder_ / "a");
  EXPECT_TRUE(Becomes({{"0", {"1"}}}));
  Follow(folder_ / "b");
  EXPECT_TRUE(Becomes({{"0", {"2"}}}));
  const int before = changes_;
  folder_.Write("a/0", "3\n");
  Settle();
  EXPECT_EQ(changes_, before);
  Follow("");
  EXPECT_TRUE(Becomes({}));
  folder_.Write("b/0", "4\n");
  Settle();
  EXPECT_TRUE(follower_.published().Get()->empty());
}

TEST_F(JobFollowerTest, PublishesOnlyWhatDiffers) {
  folder_.Write("jobs/0", "1\n");
  Follow(folder_ / "jobs");
  EXPECT_TRUE(Becomes({{"0", {"1"}}}));
  folder_.Write("jobs/README", "");
  folder_.Write("jobs/0", "1\n1\n");
  folder_.Write("beside", "");
  Settle();
  EXPECT_EQ(changes_, 1);
}

TEST_F(JobFollowerTest, NamesAProblemOnceAndAgainIfItRecurs) {
  folder_.Link("jobs/0", "/etc/passwd");
  folder_.Write("jobs/1", "1\n");
  Follow(folder_ / "jobs");
  EXPECT_TRUE(Becomes({{"1", {"1"}}}));
  folder_.Write("jobs/1", "2\n");
  EXPECT_TRUE(Becomes({{"1", {"2"}}}));
  std::string log = Log();
  const auto warning = log.find("file 0 was not read: is a symbolic link");
  ASSERT_NE(warning, std::string::npos) << log;
  EXPECT_EQ(log.find("file 0", warning + 1), std::string::npos) << log;
  testing::internal::CaptureStderr();
  log_taken_ = false;
  fs::remove(folder_ / "jobs/0");
  folder_.Write("jobs/1", "3\n");
  EXPECT_TRUE(Becomes({{"1", {"3"}}}));
  folder_.Link("jobs/0", "/etc/passwd");
  folder_.Write("jobs/1", "4\n");
  EXPECT_TRUE(Becomes({{"1", {"4"}}}));
  log = Log();
  EXPECT_THAT(log, HasSubstr("file 0 was not read"));
  EXPECT_THAT(log, Not(HasSubstr("root:")));
}

TEST_F(JobFollowerTest, NamesOnlySomeOfManyProblems) {
  for (int i = 0; i < 20; ++i) folder_.Link("jobs/" + std::to_string(i), "nowhere");
  Follow(folder_ / "jobs");
  const std::string log = Log();
  EXPECT_THAT(log, HasSubstr("file 7 was not read: is a symbolic link; and 12 more"));
  EXPECT_THAT(log, Not(HasSubstr("file 8 ")));
}

}  // namespace
}  // namespace penstock::node::attribute
