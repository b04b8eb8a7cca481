#include "protocol/kubelet/other_plugin.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "os/testing/temporary_folder.h"
#include "protocol/kubelet/fake/fake_kubelet.h"
#include "protocol/kubelet/testing/plugin_fixture.h"

namespace penstock::protocol::kubelet {
namespace {

TEST(OtherPlugin, NamesTheProcessBehindASocket) {
  const os::TemporaryFolder folder;
  FakeKubelet kubelet(folder / "kubelet");
  kubelet.Start();
  RunningPlugin plugin(folder / "kubelet", "other");
  plugin.Start(TwoDevices());
  ASSERT_TRUE(kubelet.WaitForHealthy(kGpu, 2));
  const auto sockets = ListPluginSockets(folder / "kubelet/device-plugins", "/proc");
  ASSERT_EQ(sockets.size(), 1u);  // without the kubelet's own
  EXPECT_TRUE(sockets[0].alive);
  EXPECT_EQ(sockets[0].pid, ::getpid());
  EXPECT_EQ(sockets[0].process, "kubelet_test");
}

TEST(OtherPlugin, DescribesOneOrSeveralSuspects) {
  EXPECT_EQ(
      (OtherPlugin{{{"nvidia-gpu.sock", true, 4711, "nvidia-device-p"}}, {}, true}.Describe()),
      "nvidia-gpu.sock (nvidia-device-p, pid 4711)");
  EXPECT_EQ((OtherPlugin{{{"a.sock", true, 0, ""}, {"b.sock", true, 7, ""}}, {}, false}.Describe()),
            "a.sock or b.sock (pid 7)");
}

TEST(OtherPlugin, SeesNoOneInAFolderThatIsNotThere) {
  EXPECT_TRUE(ListPluginSockets("/nonexistent", "/proc").empty());
}

}  // namespace
}  // namespace penstock::protocol::kubelet
