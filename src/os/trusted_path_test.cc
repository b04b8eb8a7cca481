#include "os/trusted_path.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "os/testing/temporary_folder.h"

namespace penstock::os {
namespace {

using std::filesystem::perms;
using ::testing::HasSubstr;

class TrustedPathTest : public testing::Test {
 protected:
  TrustedPathTest() {
    folder_.Write("a/b/file", "x");
    for (const char* one : {"a", "a/b", "a/b/file"})
      Mode(one, one == std::string("a/b/file") ? 0644 : 0755);
  }
  void Mode(const std::string& below, unsigned mode) {
    std::filesystem::permissions(folder_ / below, static_cast<perms>(mode));
  }
  std::string Error(const std::string& path, const std::string& root = "/") {
    const auto opened = OpenTrusted(root, path);
    return opened.ok() ? "" : opened.error().message();
  }

  TemporaryFolder folder_;
  const std::string file_ = folder_ / "a/b/file";
};

TEST_F(TrustedPathTest, WhatIsOnlyOursIsOpened) {
  const auto opened = OpenTrusted("/", file_);
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  EXPECT_EQ(opened->path, file_);
  EXPECT_EQ(opened->status.st_size, 1);
  EXPECT_EQ(OpenTrusted(folder_.path(), "/a/./b//file")->path, "/a/b/file");
  EXPECT_EQ(OpenTrusted("/", "/")->path, "/");
}

TEST_F(TrustedPathTest, WhatOthersCanWriteToIsRefusedWhereverItIs) {
  for (const std::string open : {"a", "a/b", "a/b/file"}) {
    for (const unsigned mode : {0775, 0757}) {
      Mode(open, mode);
      const auto opened = OpenTrusted("/", file_);
      ASSERT_FALSE(opened.ok()) << open;
      EXPECT_EQ(opened.error().code(), Code::kPermissionDenied);
      EXPECT_EQ(opened.error().message(),
                folder_ / open + " is writable by " + (mode == 0775 ? "its group" : "everyone"));
    }
    Mode(open, 0755);
  }
  EXPECT_EQ(Error(file_), "");
}

TEST_F(TrustedPathTest, AFolderOfAllWithTheStickyBitKeepsWhatIsOurs) {
  Mode("a", 01777);
  EXPECT_EQ(Error(file_), "");
}

TEST_F(TrustedPathTest, WhatBelongsToSomeoneElseIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "changing the owner of a file requires root";
  folder_.Link("link", "a/b/file");
  for (const std::string given : {"a", "a/b/file", "link"}) {
    ASSERT_EQ(::lchown((folder_ / given).c_str(), 12345, 12345), 0);
    EXPECT_EQ(Error(given == "link" ? folder_ / "link" : file_),
              folder_ / given + " belongs to user 12345");
    ASSERT_EQ(::lchown((folder_ / given).c_str(), 0, 0), 0);
  }
  Mode("a", 01777);
  ASSERT_EQ(::chown((folder_ / "a/b").c_str(), 12345, 12345), 0);
  EXPECT_THAT(Error(file_), HasSubstr("a/b belongs to user 12345"));
}

TEST_F(TrustedPathTest, LinksAreFollowedAndWhereTheyLeadIsLookedAtToo) {
  folder_.Link("relative", "a/../a/b/file");
  folder_.Link("absolute", file_);
  folder_.Link("folder", "a/b");
  EXPECT_EQ(OpenTrusted("/", folder_ / "relative")->path, file_);
  EXPECT_EQ(OpenTrusted("/", folder_ / "absolute")->path, file_);
  EXPECT_EQ(OpenTrusted("/", folder_ / "folder/file")->path, file_);
  Mode("a", 0777);
  for (const std::string link : {"relative", "absolute", "folder/file"})
    EXPECT_THAT(Error(folder_ / link), HasSubstr("a is writable"));
}

TEST_F(TrustedPathTest, NothingLeadsOutOfTheRoot) {
  folder_.Link("a/out", "/a/b/file");
  folder_.Link("a/up", "../../../../a/b/file");
  EXPECT_EQ(OpenTrusted(folder_.path(), "/a/out")->path, "/a/b/file");
  EXPECT_EQ(OpenTrusted(folder_.path(), "/../a/up")->path, "/a/b/file");
  EXPECT_EQ(OpenTrusted(folder_.path(), "/etc").error().code(), Code::kNotFound);
}

TEST_F(TrustedPathTest, LinksThatAreNoPathsAndLoopsAreRefused) {
  EXPECT_THAT(Error("/proc/self/exe"), HasSubstr("is a link of /proc"));
  EXPECT_THAT(Error("/proc/self/root/etc"), HasSubstr("is a link of /proc"));
  folder_.Link("loop", "loop");
  EXPECT_THAT(Error(folder_ / "loop"), HasSubstr("Too many levels"));
  EXPECT_EQ(OpenTrusted("/", "relative").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(OpenTrusted("/", folder_ / "none/x").error().code(), Code::kNotFound);
  EXPECT_EQ(OpenTrusted(folder_ / "none", "/x").error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace penstock::os
