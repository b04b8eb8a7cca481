// Tests the doctor's rules on facts of real machines: the verdict, and the line that fixes the
// problem.
#include "analysis/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "analysis/doctor/engine_formats.h"

namespace penstock::analysis {
namespace {

using protocol::engine::Engine;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kFile[] = "/var/run/cdi/nvidia.yaml";

api::cdi::Spec Gpu() {
  api::cdi::Spec spec{"",
                      "nvidia.com/gpu",
                      {},
                      {{"0", {}, {.nodes = {{.path = "/dev/nvidia0"}}}},
                       {"all", {}, {.nodes = {{.path = "/dev/nvidia0"}}}}},
                      {}};
  spec.edits.mounts = {{"/usr/lib/libcuda.so.550.54.15", "/usr/lib/libcuda.so.550.54.15", {}, ""}};
  return spec;
}

DoctorFacts MachineWith(const api::cdi::Spec& spec) {
  DoctorFacts facts;
  facts.folders = {"/etc/cdi", "/var/run/cdi"};
  facts.files = {{kFile, 1, api::cdi::ToYaml(spec)}};
  facts.driver = "550.54.15";
  return facts;
}

EngineState EngineOf(Engine engine, const std::string& version) {
  EngineState state;
  state.version = version;
  state.facts.engine = engine;
  if (engine != Engine::kPodman)
    state.restart = "systemctl restart " + std::string(protocol::engine::Name(engine));
  state.facts.name = protocol::engine::Name(engine);
  const Release release = FindRelease(version).value_or(Release{});
  state.facts.major = release.major;
  state.facts.minor = release.minor;
  return state;
}

/// containerd with this effective configuration below its CRI plugin.
EngineState Containerd(const std::string& version, const std::string& in_force) {
  EngineState state = EngineOf(Engine::kContainerd, version);
  state.facts.main = {"/etc/containerd/config.toml", "version = 2\n"};
  state.facts.drop_in = {"/etc/containerd/conf.d/99-penstock.toml", std::nullopt};
  state.facts.effective = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n" + in_force;
  return state;
}

std::vector<DoctorFinding> BadOf(const std::vector<DoctorFinding>& findings) {
  std::vector<DoctorFinding> bad;
  for (const auto& finding : findings)
    if (finding.verdict == FindingState::kBad) bad.push_back(finding);
  return bad;
}

std::vector<DoctorFinding> BadOf(const EngineState& engine, const DoctorFacts& facts) {
  return BadOf(JudgeEngine(engine, facts));
}

auto Why(const std::string& part) { return Field(&DoctorFinding::why, HasSubstr(part)); }

TEST(Specifications, AreWellWhereTheySpeakOfThisMachine) {
  const auto findings = JudgeSpecifications(MachineWith(Gpu()));
  EXPECT_THAT(findings, ElementsAre(DoctorFinding{
                            kFile, FindingState::kOk, "nvidia.com/gpu with 0, all", "", {}, {}}));
}

TEST(Engines, ThatAreNotTrustedAreNamedWithTheReason) {
  DoctorFacts facts = MachineWith(Gpu());
  facts.untrusted = {{"containerd", "/run/containerd/containerd.sock",
                      "the socket is not trusted: /run/containerd belongs to user 12345"}};
  const auto findings = Judge(facts);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[1],
            (DoctorFinding{"containerd",
                           FindingState::kUnknown,
                           "listens at /run/containerd/containerd.sock and was not queried: the "
                           "socket is not trusted: /run/containerd belongs to user 12345",
                           "",
                           {},
                           {}}));
}

TEST(Specifications, AreMissingWhereADriverIsThere) {
  DoctorFacts facts = MachineWith(Gpu());
  facts.files.clear();
  const auto bad = BadOf(JudgeSpecifications(facts));
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_THAT(bad[0].run, ElementsAre("penstock cdi generate --output /var/run/cdi/nvidia.yaml"));
  facts.driver = "";
  EXPECT_EQ(JudgeSpecifications(facts)[0].verdict, FindingState::kUnknown);
}

TEST(Specifications, AreStaleWhereAnotherDriverIsLoaded) {
  DoctorFacts facts = MachineWith(Gpu());
  facts.driver = "570.1.2";
  const auto bad = BadOf(JudgeSpecifications(facts));
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].why, "is for driver 550.54.15, but 570.1.2 is loaded");
  EXPECT_THAT(bad[0].run, ElementsAre("penstock cdi generate --output /var/run/cdi/nvidia.yaml"));
}

TEST(Specifications, NameWhatIsGone) {
  DoctorFacts facts = MachineWith(Gpu());
  facts.missing[kFile] = {"a is not there", "b is not there", "c is not there", "d is not there"};
  EXPECT_THAT(
      BadOf(JudgeSpecifications(facts)),
      ElementsAre(Why("can start: a is not there; b is not there; c is not there and 1 more")));
}

TEST(Specifications, ContradictEachOther) {
  DoctorFacts facts = MachineWith(Gpu());
  facts.files.push_back({"/var/run/cdi/second.yaml", 1, api::cdi::ToYaml(Gpu())});
  EXPECT_THAT(
      BadOf(JudgeSpecifications(facts)),
      Contains(Why("nvidia.yaml and /var/run/cdi/second.yaml both define nvidia.com/gpu=0")));
}

TEST(DriverOf, IsWhatCompatibilityIsReportedOrWhatLibrariesAreCalled) {
  api::cdi::Spec spec = Gpu();
  EXPECT_EQ(DriverOf(spec), "550.54.15");
  spec.edits.hooks = {{"createContainer",
                       "/h",
                       {"h", "enable-cuda-compat", "--host-driver-version=560.1.2"},
                       {},
                       {}}};
  EXPECT_EQ(DriverOf(spec), "560.1.2");
  spec.edits.hooks[0].args = {"h", "enable-cuda-compat", "--host-driver-version", "560.1.3"};
  EXPECT_EQ(DriverOf(spec), "560.1.3");
  spec.edits = {.mounts = {{"/usr/lib/libcuda.so.1", "/usr/lib/libcuda.so.1", {}, ""}}};
  EXPECT_EQ(DriverOf(spec), "");
}

TEST(Engine, IsWellWhereItHasCdiOn) {
  const auto findings =
      JudgeEngine(Containerd("1.7.24", "enable_cdi = true\n"), MachineWith(Gpu()));
  EXPECT_THAT(findings,
              ElementsAre(DoctorFinding{"containerd 1.7.24",
                                        FindingState::kOk,
                                        "gives containers the devices that specifications name",
                                        "",
                                        {},
                                        {}}));
  EXPECT_THAT(BadOf(EngineOf(Engine::kPodman, "5.7.0"), MachineWith(Gpu())), IsEmpty());
  EXPECT_THAT(BadOf(EngineOf(Engine::kDocker, "28.2.2"), MachineWith(Gpu())), IsEmpty());
  EXPECT_THAT(BadOf(EngineOf(Engine::kCrio, "1.30.0"), MachineWith(Gpu())), IsEmpty());
}

TEST(Engine, SaysTheLineWhereCdiIsOff) {
  const auto containerd = BadOf(Containerd("1.7.24", "enable_cdi = false\n"), MachineWith(Gpu()));
  ASSERT_EQ(containerd.size(), 1u);
  EXPECT_THAT(containerd[0].why, HasSubstr("has CDI disabled"));
  EXPECT_EQ(containerd[0].file, "/etc/containerd/config.toml");
  EXPECT_THAT(containerd[0].write, Contains(HasSubstr("enable_cdi = true")));
  EXPECT_THAT(containerd[0].write, Contains(HasSubstr("io.containerd.grpc.v1.cri")));
  EXPECT_THAT(containerd[0].run, ElementsAre("systemctl restart containerd"));

  EngineState docker = EngineOf(Engine::kDocker, "27.0.3");
  docker.facts.main = {"/etc/docker/daemon.json", "{\"log-driver\": \"local\"}"};
  const auto bad = BadOf(docker, MachineWith(Gpu()));
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].file, "/etc/docker/daemon.json");
  EXPECT_THAT(bad[0].write, Contains(HasSubstr("\"cdi\": true")));
}

/// The finding about `--gpus`.
DoctorFinding GpusOf(const EngineState& engine) {
  for (const DoctorFinding& finding : JudgeEngine(engine, MachineWith(Gpu())))
    if (finding.about.ends_with("--gpus")) return finding;
  return {};
}

TEST(Engine, SaysWhatDockersGpusComeTo) {
  EngineState docker = EngineOf(Engine::kDocker, "20.10.24");
  EXPECT_EQ(GpusOf(docker).about, "docker 20.10.24 --gpus");
  EXPECT_EQ(GpusOf(docker).verdict, FindingState::kUnknown);
  EXPECT_THAT(GpusOf(docker).why, HasSubstr("could not select device driver"));
  EXPECT_THAT(GpusOf(docker).run,
              ElementsAre(HasSubstr("penstock runtime configure --runtime docker")));
  docker.cdi_hook = GpusHook{"/usr/local/bin/nvidia-cdi-hook", true};
  EXPECT_THAT(GpusOf(docker).why,
              HasSubstr("requires nvidia-container-runtime-hook, which was not found"));
  docker.runtime_hook = GpusHook{"/usr/local/bin/nvidia-container-runtime-hook", true};
  EXPECT_THAT(GpusOf(docker).why, HasSubstr("fails with an error unless --runtime is given"));
  EXPECT_THAT(GpusOf(docker).run, ElementsAre(HasSubstr("--set-as-default")));
  docker.facts.main = {
      "/etc/docker/daemon.json",
      R"({"default-runtime": "nvidia", "runtimes": {"nvidia": {"path": "/opt/penstock-runtime", "args": []}}})"};
  EXPECT_EQ(GpusOf(docker).verdict, FindingState::kOk);
  EXPECT_THAT(GpusOf(docker).why, HasSubstr("with the default runtime"));
  docker.facts.main.text = std::nullopt;
  docker.runtime_hook->is_penstock = false;
  EXPECT_THAT(GpusOf(docker).why, HasSubstr("uses NVIDIA's own"));

  EngineState newer = EngineOf(Engine::kDocker, "29.2.0");
  newer.cdi_hook = GpusHook{"/usr/local/bin/nvidia-cdi-hook", true};
  EXPECT_EQ(GpusOf(newer).why, "injects the devices with CDI");
  newer.runtime_hook = GpusHook{"/usr/local/bin/nvidia-container-runtime-hook", true};
  EXPECT_THAT(GpusOf(newer).why, HasSubstr("which this release no longer needs"));
}

TEST(Doctor, SaysWhoNeedsNvidiasToolkitStill) {
  DoctorFacts facts = MachineWith(Gpu());
  facts.enroot = EnrootHook{"/etc/enroot/hooks.d/98-nvidia.sh", true};
  EXPECT_THAT(Judge(facts), Contains(AllOf(Field(&DoctorFinding::about, "enroot"),
                                           Field(&DoctorFinding::verdict, FindingState::kOk))));
  facts.enroot->has_cli = false;
  EXPECT_THAT(Judge(facts),
              Contains(AllOf(Field(&DoctorFinding::about, "enroot"),
                             Field(&DoctorFinding::verdict, FindingState::kBad),
                             Field(&DoctorFinding::why, HasSubstr("docs/nvidia-toolkit.md")))));
}

TEST(Engine, IsTooOldForCdi) {
  for (const auto& [engine, version, first] :
       {std::tuple(Engine::kContainerd, "1.6.20", "1.7"),
        std::tuple(Engine::kPodman, "4.0.3", "4.1"), std::tuple(Engine::kDocker, "24.0.9", "25.0"),
        std::tuple(Engine::kCrio, "1.22.0", "1.23")})
    EXPECT_THAT(BadOf(EngineOf(engine, version), MachineWith(Gpu())), ElementsAre(Why(first)))
        << version;
}

// podman 4.9.3 of Ubuntu 24.04 and specifications of nvidia-ctk 1.18 (#1860).
TEST(Engine, SaysWhichVersionItCanReadWhereTheContentAllowsIt) {
  api::cdi::Spec spec = Gpu();
  spec.version = "0.7.0";
  const auto bad = BadOf(EngineOf(Engine::kPodman, "4.9.3"), MachineWith(spec));
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_THAT(bad[0].why,
              AllOf(HasSubstr("has version 0.7.0"), HasSubstr("no version after 0.6.0")));
  EXPECT_EQ(bad[0].file, kFile);
  EXPECT_THAT(bad[0].write, ElementsAre("cdiVersion: \"0.5.0\""));
  EXPECT_THAT(BadOf(EngineOf(Engine::kPodman, "5.1.0"), MachineWith(spec)), IsEmpty());
}

TEST(Engine, SaysWhatMustGoWhereTheContentTakesTheVersion) {
  api::cdi::Spec spec = Gpu();
  spec.devices[0].edits.additional_gids = {44};
  const auto bad = BadOf(EngineOf(Engine::kPodman, "4.9.3"), MachineWith(spec));
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_THAT(bad[0].why, HasSubstr("remove additionalGids from it, or use a newer podman"));
  EXPECT_THAT(bad[0].write, IsEmpty());
}

TEST(Engine, DoesNotJudgeAReleaseThatIsNotKnown) {
  api::cdi::Spec spec = Gpu();
  spec.version = "1.1.0";
  const auto findings = JudgeEngine(EngineOf(Engine::kPodman, "9.0.0"), MachineWith(spec));
  EXPECT_THAT(findings, ElementsAre(AllOf(Field(&DoctorFinding::verdict, FindingState::kUnknown),
                                          Why("it is not known whether"))));
  EXPECT_THAT(BadOf(EngineOf(Engine::kPodman, ""), MachineWith(spec)), IsEmpty());
}

TEST(Engine, LooksElsewhere) {
  const auto bad =
      BadOf(Containerd("1.7.24", "enable_cdi = true\ncdi_spec_dirs = [\"/etc/cdi\"]\n"),
            MachineWith(Gpu()));
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_THAT(bad[0].why, HasSubstr("does not read /var/run/cdi"));
  EXPECT_THAT(bad[0].write, ElementsAre("cdi_spec_dirs = [\"/etc/cdi\", \"/var/run/cdi\"]"));
  EXPECT_THAT(BadOf(Containerd("1.7.24", "enable_cdi = true\ncdi_spec_dirs = [\"/run/cdi\"]\n"),
                    MachineWith(Gpu())),
              IsEmpty())
      << "/var/run is /run";
}

TEST(Engine, DoesNotReadADropIn) {
  EngineState engine = Containerd("1.7.24", "enable_cdi = true\n");
  engine.stray = {{"/etc/containerd/conf.d/99-nvidia.toml", "version = 2\n"}};
  const auto bad = BadOf(engine, MachineWith(Gpu()));
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].file, "/etc/containerd/config.toml");
  EXPECT_THAT(bad[0].write, ElementsAre("imports = [\"/etc/containerd/conf.d/*.toml\"]"));
  engine.facts.imported = engine.stray;
  EXPECT_THAT(BadOf(engine, MachineWith(Gpu())), IsEmpty());
}

constexpr char kNvidiaRuntime[] = R"(enable_cdi = true
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "nvidia"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
SystemdCgroup = true
)";

TEST(Engine, NamesARuntimeThatIsNotThere) {
  DoctorFacts facts = MachineWith(Gpu());
  facts.absent = {"/usr/bin/nvidia-container-runtime"};
  facts.own_programs = {"/usr/bin/nvidia-container-runtime"};
  EXPECT_THAT(
      BadOf(Containerd("1.7.24", kNvidiaRuntime), facts),
      ElementsAre(Why(
          "its runtime \"nvidia\" is /usr/bin/nvidia-container-runtime, which does not exist")));
}

TEST(Engine, GivesAllDevicesToImagesThatAskForThem) {
  DoctorFacts facts = MachineWith(Gpu());
  const EngineState engine = Containerd("1.7.24", kNvidiaRuntime);
  const auto bad = BadOf(engine, facts);
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].file, "/etc/nvidia-container-runtime/config.toml");
  EXPECT_THAT(bad[0].write,
              ElementsAre("accept-nvidia-visible-devices-envvar-when-unprivileged = false"));

  facts.nvidia_config = {"/etc/nvidia-container-runtime/config.toml",
                         "accept-nvidia-visible-devices-envvar-when-unprivileged = false\n"};
  EXPECT_THAT(BadOf(engine, facts), IsEmpty());
  facts.nvidia_config.reset();
  facts.own_programs = {"/usr/bin/nvidia-container-runtime"};
  EXPECT_THAT(BadOf(engine, facts), IsEmpty()) << "ours refuses unless it is told otherwise";
}

TEST(Engine, LosesDevicesAtADaemonReload) {
  EngineState engine = EngineOf(Engine::kPodman, "4.3.1");
  engine.systemd_cgroups = true;
  engine.low_level = "/usr/bin/runc";
  DoctorFacts facts = MachineWith(Gpu());
  facts.low_level = {{"/usr/bin/runc", "runc version 1.1.5+ds1\ncommit: 1.1.5"}};
  EXPECT_THAT(BadOf(engine, facts),
              ElementsAre(Why("runc is 1.1.5 and it uses systemd's control groups")));
  facts.low_level = {{"/usr/bin/runc", "runc version 1.1.7"}};
  EXPECT_THAT(BadOf(engine, facts), IsEmpty());
  facts.low_level = {{"/usr/bin/runc", "runc version 1.0.0"}};
  engine.systemd_cgroups = false;
  EXPECT_THAT(BadOf(engine, facts), IsEmpty());
}

TEST(Engine, WhoseRuntimesAreReadFromItsConfiguration) {
  EngineState engine = Containerd("1.7.24", kNvidiaRuntime);
  TakeContainerdRuntime(engine);
  EXPECT_EQ(engine.low_level, "/usr/bin/nvidia-container-runtime");
  EXPECT_EQ(engine.systemd_cgroups, true);

  EngineState docker = EngineOf(Engine::kDocker, "28.2.2");
  docker.facts.main = {
      "/etc/docker/daemon.json",
      R"({"default-runtime": "n", "runtimes": {"n": {"path": "/n", "args": []}}})"};
  EXPECT_EQ(RuntimesOf(docker.facts).by_default, "n");
  EXPECT_EQ(RuntimesOf(docker.facts).programs.at("n"), "/n");
}

TEST(Doctor, SaysWhereThereIsNoEngine) {
  EXPECT_THAT(Judge(MachineWith(Gpu())), Contains(Field(&DoctorFinding::about, "engines")));
}

TEST(Release, IsFoundInWhatProgramsSay) {
  const struct {
    const char* text;
    const char* release;
  } cases[] = {
      {"containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u1", "1.6.20"},
      {"containerd github.com/containerd/containerd/v2 v2.0.5 abc", "2.0.5"},
      {"podman version 4.3.1\n", "4.3.1"},
      {"podman version 5.7.0-dev", "5.7.0"},
      {"crio version 1.34\nVersion: x", "1.34.0"},
      {"runc version 1.1.5+ds1\nspec: 1.0.2-dev", "1.1.5"},
      {"28.2.2", "28.2.2"}};
  for (const auto& one : cases)
    EXPECT_EQ(ToString(FindRelease(one.text).value()), one.release) << one.text;
  for (const char* none : {"", "podman", "version x.y", "1", "99999999999.1"})
    EXPECT_FALSE(FindRelease(none)) << none;
}

TEST(Formats, GrowWithTheReleases) {
  const auto latest = [](Engine engine, const char* version) {
    return FormatsOf(engine, *FindRelease(version))->latest;
  };
  EXPECT_EQ(latest(Engine::kContainerd, "1.6.20"), "");
  EXPECT_EQ(latest(Engine::kContainerd, "1.7.2"), "0.5.0");
  EXPECT_EQ(latest(Engine::kContainerd, "1.7.24"), "0.7.0");
  EXPECT_EQ(latest(Engine::kPodman, "4.3.1"), "0.5.0");
  EXPECT_EQ(latest(Engine::kPodman, "4.9.3"), "0.6.0");
  EXPECT_EQ(latest(Engine::kDocker, "25.0.0"), "0.6.0");
  EXPECT_FALSE(FormatsOf(Engine::kPodman, {9, 0, 0})->exact);
  EXPECT_FALSE(FormatsOf(Engine::kCrio, {1, 30, 0}));
}

}  // namespace
}  // namespace penstock::analysis
