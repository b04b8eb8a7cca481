#include "protocol/kubelet/other_plugin.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/testing/temporary_folder.h"
#include "protocol/kubelet/fake/fake_kubelet.h"
#include "protocol/kubelet/testing/plugin_fixture.h"

namespace penstock::protocol::kubelet {
namespace {

using testing::ElementsAre;

std::vector<std::string> NamesOf(const std::vector<PluginSocket>& sockets) {
  std::vector<std::string> names;
  for (const PluginSocket& one : sockets) names.push_back(one.name);
  return names;
}

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
  EXPECT_TRUE(sockets[0].trusted);
}

TEST(OtherPlugin, IsTheOneWhoseSocketIsNamedAfterTheResource) {
  const auto suspect = [](const std::string& name) {
    return PluginSocket{name, true, 7, "plugin", true};
  };
  struct Case {
    std::string resource, socket;
    bool named;
  };
  for (const Case& one : std::vector<Case>{{"nvidia.com/gpu", "nvidia-gpu.sock", true},
                                           {"nvidia.com/gpu", "nvidia.com_gpu.sock", true},
                                           {"amd.com/gpu", "amd.com_gpu", true},
                                           {"amd.com/cpx_nps4", "amd.com_cpx_nps4", true},
                                           {"amd.com/gpu", "amd.com_gpu2", false},
                                           {"amd.com/gpu", "amd.com_cpx_nps4", false},
                                           {"amd.com/gpu", "nvidia-gpu.sock", false},
                                           {"amd.com/gpu", "_gpu", false},
                                           {"gpu", "_gpu", false}}) {
    const auto found = NameOther({suspect("rdma.sock"), suspect(one.socket), suspect("a.sock")},
                                 {"id"}, one.resource);
    EXPECT_EQ(found.named, one.named) << one.socket;
    if (one.named) {
      EXPECT_THAT(NamesOf(found.suspects), ElementsAre(one.socket));
    } else {
      EXPECT_EQ(found.suspects.size(), 3u) << one.socket;
    }
  }
}

TEST(OtherPlugin, ASocketOfAnotherUserIsNotBelievedForItsName) {
  const auto found = NameOther({{"amd.com_gpu", true, 7, "squatter", false},
                                {"plugin.sock", true, 8, "k8s-device-plug", true}},
                               {"id"}, "amd.com/gpu");
  EXPECT_FALSE(found.named);
  EXPECT_THAT(NamesOf(found.suspects), ElementsAre("amd.com_gpu", "plugin.sock"));
}

TEST(OtherPlugin, OnlySocketsAreLookedAt) {
  const os::TemporaryFolder folder;
  folder.Write("amd.com_gpu", "");
  ASSERT_EQ(::mkfifo((folder / "amd.com_fifo").c_str(), 0666), 0);  // whose open would wait
  std::filesystem::create_directory(folder / "amd.com_folder");
  std::filesystem::create_symlink("/nonexistent", folder / "amd.com_link");
  EXPECT_TRUE(ListPluginSockets(folder.path(), "/proc").empty());
}

TEST(OtherPlugin, DescribesOneOrSeveralSuspects) {
  EXPECT_EQ(
      (OtherPlugin{{{"nvidia-gpu.sock", true, 4711, "nvidia-device-p"}}, {}, true}.Describe()),
      "nvidia-gpu.sock (nvidia-device-p, pid 4711)");
  EXPECT_EQ((OtherPlugin{{{"a.sock", true, 0, ""}, {"b.sock", true, 7, ""}}, {}, false}.Describe()),
            "a.sock or b.sock (pid 7)");
  // Both are what another process chose.
  EXPECT_EQ((OtherPlugin{{{"a\x1b[2J\n", true, 7, "b\r\xff"}}, {}, false}.Describe()),
            "a?[2J? (b??, pid 7)");
}

TEST(OtherPlugin, SeesNoOneInAFolderThatIsNotThere) {
  EXPECT_TRUE(ListPluginSockets("/nonexistent", "/proc").empty());
}

}  // namespace
}  // namespace penstock::protocol::kubelet
