#include "protocol/engine/engine_commands.h"

#include <gmock/gmock.h>

namespace penstock::protocol::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using testing::Pair;

TEST(AskingAnEngine, VersionsAreFoundInWhatEachPrints) {
  EXPECT_THAT(
      ParseVersion("containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3\n"),
      Optional(Pair(1, 6)));
  EXPECT_THAT(ParseVersion("containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b7193e4"),
              Optional(Pair(2, 1)));
  EXPECT_THAT(ParseVersion("containerd github.com/k3s-io/containerd v1.7.23-k3s2"),
              Optional(Pair(1, 7)));
  EXPECT_THAT(ParseVersion("crio version 1.30.0\nVersion: 1.30.0\n"), Optional(Pair(1, 30)));
  EXPECT_THAT(ParseVersion("Docker version 27.5.1, build 27.5.1-0ubuntu3"), Optional(Pair(27, 5)));
  EXPECT_THAT(ParseVersion("podman version 4.3.1"), Optional(Pair(4, 3)));
  EXPECT_EQ(ParseVersion("command not found"), std::nullopt);
  EXPECT_EQ(ParseVersion("v99999999999999999999.1"), std::nullopt);
}

TEST(AskingAnEngine, ItIsReportedTheFileThatItIsStartedWith) {
  EngineInstall install = *RecipeOf("microk8s");
  EXPECT_THAT(EffectCommand(install, true),
              ElementsAre("/snap/microk8s/current/bin/containerd", "--config",
                          "/var/snap/microk8s/current/args/containerd.toml", "config", "dump"));
  install = *RecipeOf("containerd");
  EXPECT_THAT(EffectCommand(install, false), ElementsAre("containerd", "config", "dump"));
  install.config = "/elsewhere.toml";
  EXPECT_THAT(EffectCommand(install, false), IsEmpty());
  install.enter = {"enter", "1"};
  EXPECT_THAT(RestartCommand(install),
              ElementsAre("enter", "1", "systemctl", "restart", "containerd.service"));
  EXPECT_THAT(CheckCommand(*RecipeOf("docker"), 23),
              ElementsAre("dockerd", "--validate", "--config-file", "/etc/docker/daemon.json"));
  EXPECT_THAT(CheckCommand(*RecipeOf("docker"), 20), testing::IsEmpty());
}

TEST(AskingAnEngine, AContainerdWithoutItsCriPluginIsIll) {
  const EngineInstall install = *RecipeOf("containerd");
  constexpr char kHead[] =
      "TYPE                            ID                       PLATFORMS      STATUS    \n";
  EXPECT_EQ(
      HealthProblem(
          install, 0,
          std::string(kHead) +
              "io.containerd.snapshotter.v1    zfs                      linux/amd64    error\n"
              "io.containerd.grpc.v1           cri                      linux/amd64    ok\n"),
      std::nullopt);
  EXPECT_THAT(HealthProblem(install, 0,
                            std::string(kHead) + "io.containerd.grpc.v1           cri              "
                                                 "        linux/amd64    error     \n"),
              Optional(testing::HasSubstr("io.containerd.grpc.v1.cri did not start")));
  EXPECT_THAT(
      HealthProblem(install, 0,
                    "io.containerd.cri.v1           runtime           linux/amd64    error\n"),
      Optional(testing::HasSubstr("io.containerd.cri.v1.runtime")));
  EXPECT_THAT(HealthProblem(install, 1, "x\nctr: no such socket\n"),
              Optional(std::string("ctr: no such socket")));
}

EngineInstall InstallOf(const std::string& program, const std::vector<std::string>& arguments,
                        const std::string& socket, const std::string& cgroup = "/") {
  const std::string name = program.substr(program.find_last_of('/') + 1) == "k3s"
                               ? arguments.front()
                               : program.substr(program.find_last_of('/') + 1);
  const auto install = InstallOfProcess(
      {.pid = 1, .name = name, .program = program, .arguments = arguments, .cgroups = {cgroup}},
      socket);
  return install.ok() ? *install : EngineInstall{.name = install.error().message()};
}

TEST(FindingAnEngine, AProcessSaysWhichDistributionItIsOf) {
  constexpr char kK3s[] = "/run/k3s/containerd/containerd.sock";
  const std::string k3s = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
                    rke2 = "/var/lib/rancher/rke2/agent/etc/containerd/config.toml";
  EngineInstall install =
      InstallOf("/var/lib/rancher/k3s/data/abc/bin/k3s", {"containerd", "-c", k3s}, kK3s,
                "/system.slice/k3s-agent.service");
  EXPECT_EQ(install.name, "k3s");
  EXPECT_EQ(install.unit, "k3s-agent.service");
  EXPECT_EQ(install.program, "/var/lib/rancher/k3s/data/current/bin/containerd")
      << "k3s itself is a different program of that name";
  install = InstallOf("/x/containerd", {"containerd", "-c", rke2}, kK3s);
  EXPECT_EQ(install.name, "rke2");
  EXPECT_EQ(install.template_file, "/var/lib/rancher/rke2/agent/etc/containerd/config.toml.tmpl");
  EXPECT_EQ(InstallOf("/x/containerd", {"containerd"}, "/run/k0s/containerd.sock").name, "k0s");
  EXPECT_EQ(InstallOf("/x/containerd",
                      {"containerd", "--config=/var/snap/microk8s/current/args/containerd.toml"},
                      "/x.sock")
                .config,
            "/var/snap/microk8s/current/args/containerd-template.toml");
  EXPECT_EQ(InstallOf("/usr/bin/crio", {"crio"}, "/var/run/crio/crio.sock").drop_in,
            "/etc/crio/crio.conf.d/99-penstock.toml");
}

TEST(FindingAnEngine, FilesOfItsOwnCountMoreThanARecipe) {
  const EngineInstall install = InstallOf(
      "/usr/bin/containerd", {"containerd", "--config", "/srv/c/main.toml"}, "/srv/c/c.sock");
  EXPECT_EQ(install.name, "containerd");
  EXPECT_EQ(install.config, "/srv/c/main.toml");
  EXPECT_EQ(install.drop_in, "/srv/c/conf.d/99-penstock.toml");
  EXPECT_EQ(install.socket, "/srv/c/c.sock");
  EXPECT_EQ(install.program, "/usr/bin/containerd");
}

TEST(FindingAnEngine, BehindCriDockerdIsDocker) {
  const EngineInstall install =
      InstallOf("/usr/bin/cri-dockerd", {"cri-dockerd"}, "/run/cri-dockerd.sock",
                "/system.slice/cri-docker.service");
  EXPECT_EQ(install.engine, Engine::kDocker);
  EXPECT_EQ(install.socket, "/run/docker.sock");
  EXPECT_EQ(install.unit, "docker.service");
}

TEST(FindingAnEngine, OtherProgramsAreNoGuess) {
  EXPECT_THAT(InstallOf("/usr/bin/isulad", {"isulad"}, "/run/isulad.sock").name,
              testing::HasSubstr("the process at /run/isulad.sock is /usr/bin/isulad"));
}

}  // namespace
}  // namespace penstock::protocol::engine
