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

const std::vector<std::string> kUsual = {
    "/run/containerd/containerd.sock", "/run/k3s/containerd/containerd.sock",           "/run/crio/crio.sock",
    "/run/k0s/containerd.sock",        "/var/snap/microk8s/common/run/containerd.sock", "/run/cri-dockerd.sock"};

/// Those, and where a container sees them that sees the machine's processes.
std::vector<std::string> WellKnown(const std::string& proc_root) {
  std::vector<std::string> paths;
  for (const std::string& path : kUsual) paths.insert(paths.end(), {path, proc_root + "/1/root" + path});
  return paths;
}

class FindSocketsTest : public testing::Test {
 protected:
  void SetUp() override { Process(1, "systemd", "/sbin/init"); }

  void Namespaces(int pid, const std::string& mount) {
    const std::string folder = folder_ / (std::to_string(pid) + "/ns");
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    std::filesystem::create_symlink("user:[1]", folder + "/user");
    std::filesystem::create_symlink("pid:[1]", folder + "/pid");
    std::filesystem::create_symlink(mount, folder + "/mnt");
  }
  /// A process of the machine as /proc shows it. `arguments` are separated by blanks.
  void Process(int pid, const std::string& name, std::string arguments) {
    const std::string folder = folder_ / std::to_string(pid);
    std::filesystem::create_directories(folder + "/root");
    Namespaces(pid, "mnt:[1]");
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
  EXPECT_THAT(Find(), ElementsAreArray(WellKnown(folder_.path())));
  EXPECT_THAT(FindSockets(folder_ / "none", "/var/lib/kubelet"), ElementsAreArray(WellKnown(folder_ / "none")));
}

TEST_F(FindSocketsTest, TheKubeletsFlagSaysWhichOne) {
  Process(7, "kubelet", "/usr/bin/kubelet --container-runtime-endpoint=unix:///run/crio/crio.sock --config=/k.yaml");
  File(7, "/k.yaml", "containerRuntimeEndpoint: unix:///run/other.sock\n");
  EXPECT_THAT(First(), "/run/crio/crio.sock");
  EXPECT_THAT(Find()[1], folder_ / "1/root/run/crio/crio.sock") << "for a container that sees the kubelet and not its files";
  EXPECT_EQ(Find().size(), 2 * kUsual.size()) << "none twice";
  Process(7, "kubelet", "kubelet --container-runtime-endpoint /run/a.sock");
  EXPECT_THAT(First(), "/run/a.sock");
}

TEST_F(FindSocketsTest, BesideTheMachinesFilesThereIsOneWayToEach) {
  std::filesystem::create_directories(folder_ / "self/ns");
  std::filesystem::create_symlink("mnt:[1]", folder_ / "self/ns/mnt");
  EXPECT_THAT(Find(), ElementsAreArray(kUsual));
}

TEST_F(FindSocketsTest, OrItsConfigurationFileAsTheKubeletSeesIt) {
  Process(7, "kubelet", "kubelet --config /var/lib/kubelet/config.yaml");
  File(7, "/var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\ncontainerRuntimeEndpoint: \"unix:///run/mine.sock\"\n");
  EXPECT_THAT(First(), "/run/mine.sock");
  File(7, "/var/lib/kubelet/config.yaml", "containerRuntimeEndpoint: [\n");
  EXPECT_THAT(First(), kUsual.front());
  File(7, "/var/lib/kubelet/config.yaml", "containerRuntimeEndpoint: \"\"\n");
  EXPECT_THAT(First(), kUsual.front());
}

TEST_F(FindSocketsTest, TheKubeletOfOurFolderComesFirst) {
  Process(5, "kubelet", "kubelet --root-dir=/data/kubelet --container-runtime-endpoint=/run/b.sock");
  Process(9, "kubelet", "kubelet --container-runtime-endpoint=/run/a.sock");
  EXPECT_EQ(Find()[0], "/run/a.sock");
  EXPECT_EQ(Find()[2], "/run/b.sock");
  EXPECT_EQ(Find("/data/kubelet")[0], "/run/b.sock");
}

/// On a machine whose containers are nodes each of them has a kubelet, and in any container a process can call itself one.
TEST_F(FindSocketsTest, AKubeletInAContainerIsNotTheMachines) {
  Process(1021, "kubelet", "kubelet --container-runtime-endpoint=/run/b.sock");
  Process(1022, "k3s-server", "k3s server");
  for (const int pid : {1021, 1022}) Namespaces(pid, "mnt:[2]");
  EXPECT_THAT(Find(), ElementsAreArray(WellKnown(folder_.path())));
  Process(985, "kubelet", "kubelet --container-runtime-endpoint=/run/a.sock");
  EXPECT_EQ(Find()[0], "/run/a.sock");
  EXPECT_EQ(Find().size(), 2 * kUsual.size() + 2);
  std::filesystem::remove_all(folder_ / "985/ns");
  EXPECT_EQ(First(), kUsual.front()) << "whose namespaces cannot be seen, of that nothing is believed";
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
