#include "protocol/engine/cri/find.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

#include "protocol/engine/testing/fake_machine.h"

namespace penstock::protocol::engine::cri {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kContainerd[] = "/run/containerd/containerd.sock",
               kK3s[] = "/run/k3s/containerd/containerd.sock", kCrio[] = "/run/crio/crio.sock",
               kMicroK8s[] = "/var/snap/microk8s/common/run/containerd.sock";

constexpr uid_t kNobody = 65534;

class FindSocketsTest : public testing::Test {
 protected:
  FindSocketsTest() {
    machine_.SeeItsFiles();
    std::filesystem::create_directories(here_);
  }

  /// Listens at a well-known path.
  std::string WellKnown(const std::string& path) { return machine_.Listen(here_ + path); }
  Sockets Find(const std::string& kubelet_dir = "/var/lib/kubelet") {
    return FindSockets(machine_.proc(), kubelet_dir, here_);
  }
  std::vector<std::string> Paths() { return Find().paths; }
  void Kubelet(int pid, const std::string& arguments) {
    machine_.Process(pid, "/usr/bin/kubelet", "kubelet " + arguments);
  }

  FakeMachine machine_;
  const std::string here_ = machine_ / "here";  // prefix of the well-known paths
};

TEST_F(FindSocketsTest, WithoutAKubeletTheWellKnownOnesWhereSomeoneListensAreLeft) {
  EXPECT_THAT(Paths(), IsEmpty());
  const std::string crio = WellKnown(kCrio), containerd = WellKnown(kContainerd);
  EXPECT_THAT(Paths(), ElementsAre(containerd, crio));
  EXPECT_FALSE(Find().kubelet);
  EXPECT_EQ(Find().problem, "");
  EXPECT_THAT(FindSockets(machine_ / "none", "/var/lib/kubelet", machine_ / "none").paths,
              IsEmpty());
}

TEST_F(FindSocketsTest, TheKubeletsFlagSaysWhichOneAndNoOtherIsAsked) {
  const std::string mine = machine_.Listen(machine_ / "a.sock"),
                    other = machine_.Listen(machine_ / "b.sock");
  WellKnown(kContainerd);
  machine_.File("/k.yaml", "containerRuntimeEndpoint: unix://" + other + "\n");
  Kubelet(7, "--container-runtime-endpoint=unix://" + mine + " --config=/k.yaml");
  EXPECT_THAT(Paths(), ElementsAre(mine));
  EXPECT_TRUE(Find().kubelet);
  Kubelet(7, "--container-runtime-endpoint " + other);
  EXPECT_THAT(Paths(), ElementsAre(other));
}

TEST_F(FindSocketsTest, WhereTheKubeletsEngineDoesNotListenAnotherOneIsNotTakenForIt) {
  WellKnown(kContainerd);
  Kubelet(7, "--container-runtime-endpoint=" + (machine_ / "none.sock"));
  EXPECT_THAT(Paths(), IsEmpty());
  EXPECT_THAT(Find().problem, HasSubstr("none.sock"));
}

TEST_F(FindSocketsTest, OrItsConfigurationFileAsTheKubeletSeesIt) {
  const std::string mine = machine_.Listen(machine_ / "mine.sock"), usual = WellKnown(kContainerd);
  Kubelet(7, "--config /var/lib/kubelet/config.yaml");
  machine_.File("/var/lib/kubelet/config.yaml",
                "kind: KubeletConfiguration\ncontainerRuntimeEndpoint: \"unix://" + mine + "\"\n");
  EXPECT_THAT(Paths(), ElementsAre(mine));
  machine_.File("/var/lib/kubelet/config.yaml", "containerRuntimeEndpoint: [\n");
  EXPECT_THAT(Paths(), ElementsAre(usual));
  machine_.File("/var/lib/kubelet/config.yaml", "containerRuntimeEndpoint: \"\"\n");
  EXPECT_THAT(Paths(), ElementsAre(usual));
}

TEST_F(FindSocketsTest, APipeInPlaceOfItsConfigurationFileIsNotWaitedFor) {
  const std::string usual = WellKnown(kContainerd);
  ASSERT_EQ(::mkfifo((machine_.files() + "/pipe").c_str(), 0666), 0);
  Kubelet(7, "--config /pipe");
  EXPECT_THAT(Paths(), ElementsAre(usual));
}

TEST_F(FindSocketsTest, FromAContainerEachIsLookedForThroughTheMachinesFirstProcessToo) {
  std::filesystem::remove(machine_ / "proc/self/ns/mnt");
  const std::string there = machine_.Listen(machine_.files() + kCrio);
  EXPECT_THAT(Paths(), ElementsAre(machine_.proc() + "/1/root" + kCrio));
  const std::string mounted = WellKnown(kCrio);
  EXPECT_THAT(Paths(), ElementsAre(mounted, machine_.proc() + "/1/root" + kCrio));
}

// An unprivileged container of root's, to which the links of /proc are closed.
TEST_F(FindSocketsTest, WhereTheMachinesFilesCannotBeOpenedThatIsTheReason) {
  std::filesystem::remove(machine_ / "proc/self/ns/mnt");
  std::filesystem::permissions(machine_ / "proc/1", std::filesystem::perms::none);
  const int user = ::setfsuid(kNobody);  // root opens what it likes
  const Sockets found = Find();
  ::setfsuid(static_cast<uid_t>(user));
  std::filesystem::permissions(machine_ / "proc/1", std::filesystem::perms::owner_all);
  EXPECT_THAT(found.paths, IsEmpty());
  EXPECT_EQ(found.problem,
            "the container engine cannot be queried: its socket is reached through " +
                machine_.proc() + "/1/root, which requires a privileged container");
}

TEST_F(FindSocketsTest, TheKubeletOfOurFolderCountsMoreThanAnother) {
  const std::string a = machine_.Listen(machine_ / "a.sock"),
                    b = machine_.Listen(machine_ / "b.sock");
  Kubelet(5, "--root-dir=/data/kubelet --container-runtime-endpoint=" + b);
  Kubelet(9, "--container-runtime-endpoint=" + a);
  EXPECT_THAT(Find().paths, ElementsAre(a));
  EXPECT_THAT(Find("/data/kubelet").paths, ElementsAre(b));
}

TEST_F(FindSocketsTest, SeveralThatDifferAreRefusedByName) {
  const std::string a = machine_.Listen(machine_ / "a.sock"),
                    b = machine_.Listen(machine_ / "b.sock");
  Kubelet(985, "--container-runtime-endpoint=" + a);
  Kubelet(1021, "--container-runtime-endpoint=" + a);
  EXPECT_THAT(Paths(), ElementsAre(a)) << "both kubelets name the same socket";
  Kubelet(1021, "--container-runtime-endpoint=" + b);
  EXPECT_THAT(Paths(), IsEmpty());
  EXPECT_EQ(Find().problem, "several kubelets run on this machine (process 985 uses " + a +
                                ", process 1021 uses " + b +
                                "): set the engine with containers.engineSocket");
  EXPECT_THAT(FindSockets(machine_.proc(), "/data/kubelet", here_).paths, IsEmpty())
      << "neither kubelet uses this folder";
}

/// On a machine whose containers are nodes, each container has a kubelet, and in any container a
/// process can call itself one.
TEST_F(FindSocketsTest, AKubeletInAContainerIsNotTheMachines) {
  const std::string mine = machine_.Listen(machine_ / "a.sock"), usual = WellKnown(kContainerd);
  Kubelet(985, "--container-runtime-endpoint=" + machine_.Listen(machine_ / "b.sock"));
  machine_.Namespace(985, "mnt", "mnt:[2]");
  EXPECT_THAT(Paths(), ElementsAre(usual));
  EXPECT_EQ(Find().problem, "");
  Kubelet(1021, "--container-runtime-endpoint=" + mine);
  EXPECT_THAT(Paths(), ElementsAre(mine));
}

TEST_F(FindSocketsTest, AKubeletOfAnOrdinaryUserIsNotTheMachinesAndIsNamed) {
  const std::string usual = WellKnown(kContainerd);
  Kubelet(985, "--container-runtime-endpoint=" + machine_.Listen(machine_ / "b.sock"));
  machine_.Users(985, "12345");
  EXPECT_THAT(Paths(), ElementsAre(usual));
  EXPECT_THAT(Find().problem, HasSubstr("process 985"));
  EXPECT_THAT(Find().problem, HasSubstr("it runs as user 12345"));
}

TEST_F(FindSocketsTest, ASocketThatOthersCanPutThereIsRefusedByName) {
  const std::string usual = WellKnown(kContainerd);
  std::filesystem::permissions(std::filesystem::path(usual).parent_path(),
                               std::filesystem::perms::all);
  EXPECT_THAT(Paths(), IsEmpty());
  EXPECT_THAT(Find().problem, HasSubstr("run/containerd is writable by everyone"));
  const Sockets chosen = ChosenSocket(machine_.proc(), usual);
  EXPECT_THAT(chosen.paths, IsEmpty());
  EXPECT_THAT(chosen.problem, HasSubstr("is not trusted"));
}

TEST_F(FindSocketsTest, TheChosenOneIsTakenAsItIs) {
  const std::string mine = machine_.Listen(machine_ / "a.sock");
  EXPECT_THAT(ChosenSocket(machine_.proc(), mine).paths, ElementsAre(mine));
  EXPECT_THAT(ChosenSocket(machine_.proc(), machine_ / "none.sock").problem,
              HasSubstr("none.sock: it does not exist"));
}

TEST(ChosenSocket, MayBeAPathThatOnlyTheMachineHas) {
  FakeMachine machine;
  const std::string there = machine.Listen(machine.files() + kK3s);
  EXPECT_THAT(ChosenSocket(machine.proc(), kK3s).paths,
              ElementsAre(machine.proc() + "/1/root" + kK3s));
  std::filesystem::remove(there);
  EXPECT_THAT(ChosenSocket(machine.proc(), kK3s).problem,
              HasSubstr(std::string(kK3s) + ": it does not exist"));
  machine.SeeItsFiles();
  EXPECT_THAT(ChosenSocket(machine.proc(), kK3s).problem,
              HasSubstr(std::string("at ") + kK3s + " does not answer"));
}

TEST_F(FindSocketsTest, KnowsProgramsThatHaveTheKubeletInside) {
  const std::string usual = WellKnown(kContainerd), k3s = WellKnown(kK3s),
                    microk8s = WellKnown(kMicroK8s);
  machine_.Process(3, "/usr/local/bin/k3s", "/usr/local/bin/k3s server");
  EXPECT_THAT(Paths(), ElementsAre(k3s, usual, microk8s));
  EXPECT_TRUE(Find().kubelet);
  machine_.Process(3, "/snap/microk8s/1/kubelite", "/snap/microk8s/1/kubelite");
  EXPECT_THAT(Paths(), ElementsAre(microk8s, usual, k3s));
  machine_.Process(3, "/usr/local/bin/k3s", "kubectl get nodes");
  EXPECT_FALSE(Find().kubelet);
}

TEST(Endpoint, IsAPathWithOrWithoutItsScheme) {
  EXPECT_EQ(PathOfEndpoint("unix:///run/x.sock"), "/run/x.sock");
  EXPECT_EQ(PathOfEndpoint("/run/x.sock"), "/run/x.sock");
  for (const char* bad : {"", "unix://", "tcp://127.0.0.1:1", "run/x.sock", "unix:run/x.sock"})
    EXPECT_EQ(PathOfEndpoint(bad), "") << bad;
}

}  // namespace
}  // namespace penstock::protocol::engine::cri
