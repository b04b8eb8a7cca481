#include "os/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::os {
namespace {

using ::testing::ElementsAre;

TEST(Launch, SaysWhatItIsToDoAsArguments) {
  const LaunchOptions options{.cgroup = "group", .binds = {{"/a", "/b"}}, .scratch = "/mnt", .root = "/root", .command = {"true", "-d"}};
  EXPECT_THAT(LaunchArguments("worker", options), ElementsAre("worker", "launch", "--cgroup", "group", "--scratch", "/mnt", "--bind",
                                                              "/a=/b", "--root", "/root", "--", "true", "-d"));
}

TEST(Launch, SeesWhatAnotherProcessSees) {
  EXPECT_THAT(LaunchArguments("worker", {.within = "/proc/7"}), ElementsAre("worker", "launch", "--within", "/proc/7", "--"));
}

TEST(Launch, TellsWhatItCouldNotDo) {
  const LaunchRemarks remarks = ReadLaunchRemarks("launch: group: no groups\nwhat the program says\nlaunch: mounts: not permitted: a\n");
  EXPECT_EQ(remarks.group, "no groups");
  EXPECT_EQ(remarks.mounts, "not permitted: a");
  EXPECT_EQ(ReadLaunchRemarks("").mounts, "");
}

}  // namespace
}  // namespace penstock::os
