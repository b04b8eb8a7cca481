#include "os/lock_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace penstock::os {
namespace {

TEST(LockFile, IsHeldByOneAndNamesIt) {
  const std::string path = testing::TempDir() + "lock-" + std::to_string(getpid());
  EXPECT_FALSE(LockFile::Holder(path));
  {
    const auto first = LockFile::Take(path);
    ASSERT_TRUE(first.ok());
    const auto second = LockFile::Take(path);
    EXPECT_EQ(second.error().code(), base::Code::kAlreadyExists);
    EXPECT_THAT(second.error().message(), testing::HasSubstr("process " + std::to_string(getpid())));
    EXPECT_EQ(LockFile::Holder(path), getpid());
  }
  EXPECT_TRUE(LockFile::Take(path).ok());
  unlink(path.c_str());
}

}  // namespace
}  // namespace penstock::os
