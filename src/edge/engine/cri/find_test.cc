#include "edge/engine/cri/find.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/core/file.h"
#include "os/temporary_folder.h"

namespace penstock::edge::engine::cri {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

const std::vector<std::string> kWellKnown = {
    "/run/containerd/containerd.sock", "/run/k3s/containerd/containerd.sock",           "/run/crio/crio.sock",
    "/run/k0s/containerd.sock",        "/var/snap/microk8s/common/run/containerd.sock", "/run/cri-dockerd.sock"};

class FindSocketsTest : public testing::Test {
 protected:
  /// A process as /proc shows it. `arguments` are separated by blanks.
  void Process(int pid, const std::string& name, std::string arguments) {
    const std::string folder = folder_ / std::to_string(pid);
    std::filesystem::create_directories(folder + "/root");
    for (char& c : arguments)
      if (c == ' ') c = '\0';
    ASSERT_TRUE(os::WriteFileAtomically(folder + "/comm", name + "\n").ok());
    ASSERT_TRUE(os::WriteFileAtomically(folder + "/cmdline", arguments + '\0').ok());
  }
  void File(int pid, const std::string& path, const std::string& text) {
    const std::string whole = folder_ / (std::to_string(pid) + "/root" + path);
    std::filesystem::create_directories(std::filesystem::path(whole).parent_path());
    ASSERT_TRUE(os::WriteFileAtomically(whole, text).ok());
  }
  std::vector<std::string> Find(const std::string& kubelet_dir = "/var/lib/kubelet") { return FindSockets(folder_.path(), kubelet_dir); }
  std::string First() { return Find().front(); }

  os::TemporaryFolder folder_;
};

TEST_F(FindSocketsTest, WithoutAKubeletTheWellKnownOnesAreLeft) {
  Process(1, "systemd", "/sbin/init");
  EXPECT_THAT(Find(), ElementsAreArray(kWellKnown));
  EXPECT_THAT(FindSockets(folder_ / "none", "/var/lib/kubelet"), ElementsAreArray(kWellKnown));
}

TEST_F(FindSocketsTest, TheKubeletsFlagSaysWhichOne) {
  Process(7, "kubelet", "/usr/bin/kubelet --container-runtime-endpoint=unix:///run/crio/crio.sock --config=/k.yaml");
  File(7, "/k.yaml", "containerRuntimeEndpoint: unix:///run/other.sock\n");
  EXPECT_THAT(First(), "/run/crio/crio.sock");
  EXPECT_THAT(Find()[1], folder_ / "7/root/run/crio/crio.sock") << "for a container that sees the kubelet and not its files";
  EXPECT_EQ(Find().size(), kWellKnown.size() + 1) << "none twice";
  Process(7, "kubelet", "kubelet --container-runtime-endpoint /run/a.sock");
  EXPECT_THAT(First(), "/run/a.sock");
}

TEST_F(FindSocketsTest, OrItsConfigurationFileAsTheKubeletSeesIt) {
  Process(7, "kubelet", "kubelet --config /var/lib/kubelet/config.yaml");
  File(7, "/var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\ncontainerRuntimeEndpoint: \"unix:///run/mine.sock\"\n");
  EXPECT_THAT(First(), "/run/mine.sock");
  File(7, "/var/lib/kubelet/config.yaml", "containerRuntimeEndpoint: [\n");
  EXPECT_THAT(First(), kWellKnown.front());
  File(7, "/var/lib/kubelet/config.yaml", "containerRuntimeEndpoint: \"\"\n");
  EXPECT_THAT(First(), kWellKnown.front());
}

TEST_F(FindSocketsTest, TheKubeletOfOurFolderComesFirst) {
  Process(5, "kubelet", "kubelet --root-dir=/data/kubelet --container-runtime-endpoint=/run/b.sock");
  Process(9, "kubelet", "kubelet --container-runtime-endpoint=/run/a.sock");
  EXPECT_EQ(Find()[0], "/run/a.sock");
  EXPECT_EQ(Find()[2], "/run/b.sock");
  EXPECT_EQ(Find("/data/kubelet")[0], "/run/b.sock");
}

TEST_F(FindSocketsTest, KnowsProgramsThatHaveTheKubeletInside) {
  Process(3, "k3s-server", "/usr/local/bin/k3s server");
  EXPECT_EQ(First(), "/run/k3s/containerd/containerd.sock");
  Process(3, "kubelite", "/snap/microk8s/1/kubelite");
  EXPECT_EQ(First(), "/var/snap/microk8s/common/run/containerd.sock");
}

TEST(Endpoint, IsAPathWithOrWithoutItsScheme) {
  EXPECT_EQ(PathOfEndpoint("unix:///run/x.sock"), "/run/x.sock");
  EXPECT_EQ(PathOfEndpoint("/run/x.sock"), "/run/x.sock");
  for (const char* bad : {"", "unix://", "tcp://127.0.0.1:1", "run/x.sock", "unix:run/x.sock"}) EXPECT_EQ(PathOfEndpoint(bad), "") << bad;
}

}  // namespace
}  // namespace penstock::edge::engine::cri
