#include "hook/runtime/host_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/core/file.h"
#include "os/core/testing/temporary_folder.h"

namespace penstock::hook::runtime {
namespace {

using api::cdi::DeviceNode;
using testing::HasSubstr;

std::string ErrorOf(DeviceNode node) {
  std::vector<DeviceNode> nodes = {std::move(node)};
  const auto status = Complete(nodes);
  return status.ok() ? "" : status.error().message();
}

TEST(HostDevices, FillInWhatTheFileSays) {
  std::vector<DeviceNode> nodes(2);
  nodes[0].path = "/dev/null";
  nodes[1].path = "/dev/in-the-container";
  nodes[1].host_path = "/dev/zero";
  ASSERT_TRUE(Complete(nodes).ok());
  EXPECT_EQ(nodes[0].type, "c");
  EXPECT_EQ(nodes[0].major, 1);
  EXPECT_EQ(nodes[0].minor, 3);
  EXPECT_EQ(nodes[1].minor, 5);
}

TEST(HostDevices, LeaveAloneWhatIsComplete) {
  std::vector<DeviceNode> nodes(1);
  nodes[0].path = "/dev/no-such";
  nodes[0].type = "c";
  nodes[0].major = 195;
  nodes[0].minor = 0;
  const auto before = nodes;
  ASSERT_TRUE(Complete(nodes).ok());
  EXPECT_EQ(nodes, before);
}

TEST(HostDevices, SayWhatIsNoDevice) {
  const os::TemporaryFolder folder;
  const std::string link = folder.path() + "/link", file = folder.path() + "/file",
                    pipe = folder.path() + "/pipe";
  ASSERT_EQ(::symlink("/dev/null", link.c_str()), 0);
  ASSERT_TRUE(os::WriteFileAtomically(file, "").ok());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(
      ErrorOf({.path = "/dev/no-such"}),
      HasSubstr("inspect the device file /dev/no-such: No such file or directory; the CDI spec"));
  EXPECT_THAT(ErrorOf({.path = link}), HasSubstr("is not a device file"));
  EXPECT_THAT(ErrorOf({.path = file}), HasSubstr("is not a device file"));
  EXPECT_THAT(ErrorOf({.path = "/dev/null", .type = "b"}),
              HasSubstr("is a device file of another type"));
  EXPECT_EQ(ErrorOf({.path = pipe}), "");
}

}  // namespace
}  // namespace penstock::hook::runtime
