#include "edge/engine/asking.h"

#include <gmock/gmock.h>

namespace penstock::edge::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using testing::Pair;

TEST(AskingAnEngine, VersionsAreFoundInWhatEachPrints) {
  EXPECT_THAT(ParseVersion("containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3\n"), Optional(Pair(1, 6)));
  EXPECT_THAT(ParseVersion("containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b7193e4"), Optional(Pair(2, 1)));
  EXPECT_THAT(ParseVersion("containerd github.com/k3s-io/containerd v1.7.23-k3s2"), Optional(Pair(1, 7)));
  EXPECT_THAT(ParseVersion("crio version 1.30.0\nVersion: 1.30.0\n"), Optional(Pair(1, 30)));
  EXPECT_THAT(ParseVersion("Docker version 27.5.1, build 27.5.1-0ubuntu3"), Optional(Pair(27, 5)));
  EXPECT_THAT(ParseVersion("podman version 4.3.1"), Optional(Pair(4, 3)));
  EXPECT_EQ(ParseVersion("command not found"), std::nullopt);
  EXPECT_EQ(ParseVersion("v99999999999999999999.1"), std::nullopt);
}

TEST(AskingAnEngine, ItIsToldTheFileThatItIsStartedWith) {
  Site site = *RecipeOf("microk8s");
  EXPECT_THAT(EffectCommand(site, true), ElementsAre("/snap/microk8s/current/bin/containerd", "--config",
                                                     "/var/snap/microk8s/current/args/containerd.toml", "config", "dump"));
  site = *RecipeOf("containerd");
  EXPECT_THAT(EffectCommand(site, false), ElementsAre("containerd", "config", "dump"));
  site.config = "/elsewhere.toml";
  EXPECT_THAT(EffectCommand(site, false), IsEmpty());
  site.enter = {"enter", "1"};
  EXPECT_THAT(RestartCommand(site), ElementsAre("enter", "1", "systemctl", "restart", "containerd.service"));
  EXPECT_THAT(CheckCommand(*RecipeOf("docker"), 23), ElementsAre("dockerd", "--validate", "--config-file", "/etc/docker/daemon.json"));
  EXPECT_THAT(CheckCommand(*RecipeOf("docker"), 20), testing::IsEmpty());
}

TEST(AskingAnEngine, AContainerdWithoutItsCriPluginIsIll) {
  const Site site = *RecipeOf("containerd");
  constexpr char kHead[] = "TYPE                            ID                       PLATFORMS      STATUS    \n";
  EXPECT_EQ(Illness(site, 0,
                    std::string(kHead) + "io.containerd.snapshotter.v1    zfs                      linux/amd64    error\n"
                                         "io.containerd.grpc.v1           cri                      linux/amd64    ok\n"),
            std::nullopt);
  EXPECT_THAT(Illness(site, 0, std::string(kHead) + "io.containerd.grpc.v1           cri                      linux/amd64    error     \n"),
              Optional(testing::HasSubstr("io.containerd.grpc.v1.cri does not start")));
  EXPECT_THAT(Illness(site, 0, "io.containerd.cri.v1           runtime           linux/amd64    error\n"),
              Optional(testing::HasSubstr("io.containerd.cri.v1.runtime")));
  EXPECT_THAT(Illness(site, 1, "x\nctr: no such socket\n"), Optional(std::string("ctr: no such socket")));
}

Site SiteOf(const std::string& program, const std::vector<std::string>& arguments, const std::string& socket,
            const std::string& cgroup = "/") {
  const std::string name =
      program.substr(program.find_last_of('/') + 1) == "k3s" ? arguments.front() : program.substr(program.find_last_of('/') + 1);
  const auto site = SiteOfProcess({.pid = 1, .name = name, .program = program, .arguments = arguments, .cgroups = {cgroup}}, socket);
  return site.ok() ? *site : Site{.name = site.error().message()};
}

TEST(FindingAnEngine, AProcessSaysWhichDistributionItIsOf) {
  constexpr char kK3s[] = "/run/k3s/containerd/containerd.sock";
  const std::string k3s = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
                    rke2 = "/var/lib/rancher/rke2/agent/etc/containerd/config.toml";
  Site site = SiteOf("/var/lib/rancher/k3s/data/abc/bin/k3s", {"containerd", "-c", k3s}, kK3s, "/system.slice/k3s-agent.service");
  EXPECT_EQ(site.name, "k3s");
  EXPECT_EQ(site.unit, "k3s-agent.service");
  EXPECT_EQ(site.program, "/var/lib/rancher/k3s/data/current/bin/containerd") << "k3s itself is another program by that name";
  site = SiteOf("/x/containerd", {"containerd", "-c", rke2}, kK3s);
  EXPECT_EQ(site.name, "rke2");
  EXPECT_EQ(site.template_file, "/var/lib/rancher/rke2/agent/etc/containerd/config.toml.tmpl");
  EXPECT_EQ(SiteOf("/x/containerd", {"containerd"}, "/run/k0s/containerd.sock").name, "k0s");
  EXPECT_EQ(SiteOf("/x/containerd", {"containerd", "--config=/var/snap/microk8s/current/args/containerd.toml"}, "/x.sock").config,
            "/var/snap/microk8s/current/args/containerd-template.toml");
  EXPECT_EQ(SiteOf("/usr/bin/crio", {"crio"}, "/var/run/crio/crio.sock").drop_in, "/etc/crio/crio.conf.d/99-penstock.toml");
}

TEST(FindingAnEngine, FilesOfItsOwnCountMoreThanARecipe) {
  const Site site = SiteOf("/usr/bin/containerd", {"containerd", "--config", "/srv/c/main.toml"}, "/srv/c/c.sock");
  EXPECT_EQ(site.name, "containerd");
  EXPECT_EQ(site.config, "/srv/c/main.toml");
  EXPECT_EQ(site.drop_in, "/srv/c/conf.d/99-penstock.toml");
  EXPECT_EQ(site.socket, "/srv/c/c.sock");
  EXPECT_EQ(site.program, "/usr/bin/containerd");
}

TEST(FindingAnEngine, BehindCriDockerdIsDocker) {
  const Site site = SiteOf("/usr/bin/cri-dockerd", {"cri-dockerd"}, "/run/cri-dockerd.sock", "/system.slice/cri-docker.service");
  EXPECT_EQ(site.engine, Engine::kDocker);
  EXPECT_EQ(site.socket, "/run/docker.sock");
  EXPECT_EQ(site.unit, "docker.service");
}

TEST(FindingAnEngine, OtherProgramsAreNoGuess) {
  EXPECT_THAT(SiteOf("/usr/bin/isulad", {"isulad"}, "/run/isulad.sock").name,
              testing::HasSubstr("at /run/isulad.sock listens /usr/bin/isulad"));
}

}  // namespace
}  // namespace penstock::edge::engine
