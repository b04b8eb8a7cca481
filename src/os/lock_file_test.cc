#include "os/lock_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/core/file.h"
#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

class LockFileTest : public testing::Test {
 protected:
  /// A file as earlier versions created it.
  void MakeOpenToOthers() {
    ASSERT_TRUE(WriteFileAtomically(path_, "1\n").ok());
    ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  }
  struct stat Look() const {
    struct stat status {};
    EXPECT_EQ(::stat(path_.c_str(), &status), 0);
    return status;
  }
  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/lock";
};

TEST_F(LockFileTest, IsHeldByOneAndNamesIt) {
  EXPECT_EQ(LockFile::Holder(path_).error().code(), Code::kNotFound);
  {
    const auto first = LockFile::Take(path_);
    ASSERT_TRUE(first.ok());
    const auto second = LockFile::Take(path_);
    EXPECT_EQ(second.error().code(), Code::kAlreadyExists);
    EXPECT_THAT(second.error().message(),
                testing::HasSubstr("process " + std::to_string(getpid())));
    const auto holder = LockFile::Holder(path_);
    ASSERT_TRUE(holder.ok()) << holder.error().message();
    EXPECT_EQ(holder->pid, getpid());
    EXPECT_EQ(holder->program, "os_test");
    EXPECT_TRUE(LockFile::IsHeld(path_));
  }
  EXPECT_FALSE(LockFile::IsHeld(path_));
  EXPECT_EQ(LockFile::Holder(path_).error().code(), Code::kNotFound);
  EXPECT_TRUE(LockFile::Take(path_).ok());
}

TEST_F(LockFileTest, CanBeOpenedByItsOwnerAlone) {
  ASSERT_TRUE(LockFile::Take(path_).ok());
  EXPECT_EQ(Look().st_mode & 07777, 0600u);
}

TEST_F(LockFileTest, ReplacesAFileThatOthersCanOpen) {
  MakeOpenToOthers();
  const UniqueFd kept(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  const auto lock = LockFile::Take(path_);
  ASSERT_TRUE(lock.ok()) << lock.error().message();
  EXPECT_EQ(Look().st_mode & 07777, 0600u);
  EXPECT_EQ(::flock(kept.get(), LOCK_EX | LOCK_NB), 0)
      << "a file that another process keeps open is a different one";
  EXPECT_EQ(LockFile::Take(path_).error().code(), Code::kAlreadyExists);
}

TEST_F(LockFileTest, WaitsForOneOfOurUserAlsoWhereOthersCanOpenTheFile) {
  MakeOpenToOthers();
  const UniqueFd older(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(older.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(LockFile::Take(path_).error().code(), Code::kAlreadyExists)
      << "an agent of an earlier version";
}

TEST_F(LockFileTest, ANamedProcessThatDoesNotHaveItIsNotItsHolder) {
  MakeOpenToOthers();  // the file names process 1
  const UniqueFd somebody(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(somebody.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(LockFile::Holder(path_).error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(LockFile::IsHeld(path_));
}

TEST_F(LockFileTest, FollowsNoLink) {
  ASSERT_EQ(::symlink("elsewhere", path_.c_str()), 0);
  EXPECT_FALSE(LockFile::Take(path_).ok());
  EXPECT_FALSE(Exists(folder_.path() + "/elsewhere"));
}

}  // namespace
}  // namespace penstock::os
