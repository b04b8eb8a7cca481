#include "hook/runtime/low_level.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "os/core/file.h"
#include "os/core/testing/temporary_folder.h"

namespace penstock::hook::runtime {
namespace {

using testing::HasSubstr;

class LowLevel : public testing::Test {
 protected:
  std::string Program(const std::string& below, std::string_view text = "#!/bin/sh\n") {
    const std::string path = folder_.path() + "/" + below;
    EXPECT_TRUE(os::MakeDirectories(path.substr(0, path.rfind('/'))).ok());
    EXPECT_TRUE(os::WriteFileAtomically(path, text, 0755).ok());
    return path;
  }
  std::string Find(std::vector<std::string> candidates, const std::string& path) {
    const auto found = FindLowLevelRuntime(candidates, path, self_);
    return found.ok() ? *found : "error: " + found.error().message();
  }

  os::TemporaryFolder folder_;
  std::string self_ = Program("self/penstock-runtime", "#!/bin/sh\n# this program\n");
};

TEST_F(LowLevel, IsTheFirstThatThereIs) {
  const std::string crun = Program("a/crun"), runc = Program("b/zrunc"),
                    path = folder_.path() + "/a:" + folder_.path() + "/b";
  EXPECT_EQ(Find({"zrunc", "crun"}, path), runc);
  EXPECT_EQ(Find({"no-such-runtime", "crun"}, path), crun);
  EXPECT_EQ(Find({"/no/such", crun}, ""), crun);
  EXPECT_EQ(Find({"", "crun"}, path), crun);
}

TEST_F(LowLevel, IsNotLookedForInTheBundle) {
  Program("bundle/zrunc");
  char before[4096];
  ASSERT_NE(::getcwd(before, sizeof before), nullptr);
  ASSERT_EQ(::chdir((folder_.path() + "/bundle").c_str()), 0);
  for (const char* path : {"", ".", ":", "../bundle", "./"})
    EXPECT_THAT(Find({"zrunc"}, path), HasSubstr("error")) << path;
  EXPECT_THAT(Find({"./zrunc", "../bundle/zrunc"}, "/nowhere"), HasSubstr("error"));
  ASSERT_EQ(::chdir(before), 0);
}

TEST_F(LowLevel, IsNoFolderAndNoPlainFile) {
  ASSERT_TRUE(os::MakeDirectories(folder_.path() + "/a/zrunc").ok());
  ASSERT_TRUE(os::MakeDirectories(folder_.path() + "/b").ok());
  ASSERT_TRUE(os::WriteFileAtomically(folder_.path() + "/b/zrunc", "", 0644).ok());
  const std::string right = Program("c/zrunc");
  EXPECT_EQ(
      Find({"zrunc"}, folder_.path() + "/a:" + folder_.path() + "/b:" + folder_.path() + "/c"),
      right);
}

TEST_F(LowLevel, IsNeverThisProgramItself) {
  ASSERT_EQ(::symlink(self_.c_str(), (folder_.path() + "/zrunc").c_str()), 0);
  EXPECT_THAT(Find({"zrunc", "crun"}, folder_.path()),
              HasSubstr("is this program itself; set nvidia-container-runtime.runtimes"));
  EXPECT_THAT(Find({Program("copy/zrunc", "#!/bin/sh\n# this program\n")}, ""),
              HasSubstr("is this program itself"));
  const std::string as_long = Program("other/zrunc", "#!/bin/sh\n# that program\n");
  EXPECT_EQ(Find({as_long}, ""), as_long);
}

TEST_F(LowLevel, SaysWhatToDoWhereThereIsNone) {
  EXPECT_THAT(
      Find({"no-such-a", "no-such-b"}, "/nowhere"),
      HasSubstr("none of the low-level runtimes no-such-a, no-such-b is in PATH; install runc"));
}

}  // namespace
}  // namespace penstock::hook::runtime
