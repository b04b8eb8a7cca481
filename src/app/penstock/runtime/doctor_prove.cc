// Proves that devices work: starts a container with them, in which penstock-probe opens what the
// specifications promise.
#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <sys/resource.h>
#include <unistd.h>

#include "app/penstock/common/programs.h"
#include "app/penstock/runtime/doctor_verb.h"
#include "base/core/strings.h"
#include "node/validate/container_files.h"
#include "os/core/file.h"
#include "protocol/engine/cri/probe_container.h"
#include "protocol/engine/engine_commands.h"

namespace penstock::app {

namespace {

using node::validate::PromisedFiles;

constexpr base::Duration kPodPatience = std::chrono::seconds(60);  // for pods on a busy machine
constexpr rlim_t kLimit = 1024;  // of files and processes: more than the probe needs
constexpr char kProbe[] = "penstock-probe";
constexpr char kInside[] = "/penstock-probe";

/// A folder that is removed with its owner, whatever was mounted over its files meanwhile.
class Root {
 public:
  static base::Result<Root> Make() {
    std::string path = (std::filesystem::temp_directory_path() / "penstock-proof-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr)
      return base::ErrnoError(errno, "create a folder for the container's root");
    return Root(std::move(path));
  }
  Root(Root&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  Root& operator=(Root&&) = delete;
  ~Root() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit Root(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// All devices of the first kind: the device that stands for all, else each device.
std::vector<std::string> AllOfFirstKind(const api::cdi::Registry& registry) {
  std::vector<std::string> names;
  for (const auto& device : registry.devices()) {
    const auto name = api::cdi::ParseName(device.name);
    if (!names.empty() && api::cdi::ParseName(names.front())->kind != name->kind) break;
    if (name->device == "all") return {device.name};
    names.push_back(device.name);
  }
  return names;
}

/// A limit that any user may set. Without it podman sets a limit that requires CAP_SYS_RESOURCE.
std::string LimitOf(const std::string& name, __rlimit_resource resource) {
  rlimit own{kLimit, kLimit};
  (void)::getrlimit(resource, &own);
  const std::string limit = std::to_string(std::min(own.rlim_max, kLimit));
  return name + "=" + limit + ":" + limit;
}

/// The command by which podman starts the container; the container's first program is the probe.
std::vector<std::string> PodmanCommand(const Proof& proof, const std::string& root,
                                       const std::string& probe) {
  std::vector<std::string> command = {"podman",       "run",  "--rm",   "--network", "none",
                                      "--log-driver", "none", "--pull", "never"};
  for (const std::string& limit :
       {LimitOf("nofile", RLIMIT_NOFILE), LimitOf("nproc", RLIMIT_NPROC)})
    command.insert(command.end(), {"--ulimit", limit});
  for (const std::string& device : proof.devices)
    command.insert(command.end(), {"--device", device});
  if (proof.image.empty()) {
    command.insert(command.end(), {"--rootfs", root, kInside});
  } else {
    command.insert(command.end(), {"--volume", probe + ":" + kInside + ":ro", "--entrypoint",
                                   kInside, proof.image});
  }
  return command;
}

std::vector<analysis::DoctorFinding> FindingsOf(const std::string& about,
                                                const PromisedFiles& promised,
                                                const std::string& output) {
  const auto finding = [&about](analysis::FindingState verdict, const std::string& why) {
    return analysis::DoctorFinding{about, verdict, why, "", {}, {}};
  };
  std::vector<analysis::DoctorFinding> findings;
  const auto opened = node::validate::WhatOpened(promised, output);
  if (!opened.ok()) return {finding(analysis::FindingState::kUnknown, opened.error().message())};
  for (const std::string& why : opened->why_not)
    findings.push_back(finding(analysis::FindingState::kBad, why));
  const std::size_t devices = promised.devices(), unserved = opened->unserved.size();
  if (findings.empty())
    findings.push_back(finding(
        analysis::FindingState::kOk,
        "in a container " + std::to_string(devices - unserved) + " device files and " +
            std::to_string(promised.files.size() - devices) + " mounted files could be opened" +
            (unserved == 0 ? ""
                           : "; " + std::to_string(unserved) +
                                 " device files are there that no driver serves")));
  return findings;
}

base::Result<std::string> RunByPodman(const Proof& proof, const PromisedFiles& promised,
                                      const std::string& probe) {
  ASSIGN(const Root root, Root::Make());
  std::error_code error;
  std::filesystem::copy_file(probe, root.path() + kInside, error);
  if (error) return base::ErrnoError(error.value(), "copy " + probe + " to " + root.path());
  std::vector<std::string> command = PodmanCommand(proof, root.path(), probe);
  for (std::string& file : promised.paths()) command.push_back(std::move(file));
  ASSIGN(const auto outcome, RunFor(command, kPodPatience));
  if (outcome.status == 0) return outcome.output;
  return base::Error(base::Code::kUnknown, protocol::engine::LastLine(outcome.errors));
}

/// Starts the container as the kubelet does: with the kubelet's calls to the engine.
base::Result<std::string> RunLikeKubelet(const analysis::EngineState& engine, const Proof& proof,
                                         const PromisedFiles& promised, const std::string& probe) {
  ASSIGN(const Root logs, Root::Make());
  return protocol::engine::cri::RunContainer({.socket = engine.socket,
                                              .image = proof.image,
                                              .program = probe,
                                              .log_folder = logs.path(),
                                              .files = promised.paths(),
                                              .cdi_devices = proof.devices},
                                             kPodPatience);
}

/// The requested engine, or the first that can start a container without further help.
const analysis::EngineState* ChooseEngine(const Proof& proof, const analysis::DoctorFacts& facts) {
  for (const auto candidate :
       {protocol::engine::Engine::kPodman, protocol::engine::Engine::kContainerd,
        protocol::engine::Engine::kCrio})
    for (const analysis::EngineState& engine : facts.engines)
      if (engine.facts.engine == candidate &&
          (proof.engine.empty() || proof.engine == protocol::engine::Name(candidate)))
        return &engine;
  return nullptr;
}

}  // namespace

std::vector<analysis::DoctorFinding> Prove(const Proof& given, const analysis::DoctorFacts& facts) {
  const api::cdi::Registry registry(facts.files);
  Proof proof = given;
  if (proof.devices.empty()) proof.devices = AllOfFirstKind(registry);
  std::string about = "proof";
  const auto only = [&about](analysis::FindingState verdict, const std::string& why) {
    return std::vector<analysis::DoctorFinding>{{about, verdict, why, "", {}, {}}};
  };
  const analysis::EngineState* engine = ChooseEngine(proof, facts);
  if (engine == nullptr)
    return only(analysis::FindingState::kUnknown,
                "there is no " +
                    (proof.engine.empty() ? "podman, containerd or CRI-O" : proof.engine) +
                    " to start a container with");
  about += " by " + engine->facts.name;
  const bool by_podman = engine->facts.engine == protocol::engine::Engine::kPodman;
  if (!by_podman && proof.image.empty())
    return only(analysis::FindingState::kUnknown,
                "its containers need an image; pass one from its store with --image");
  if (proof.devices.empty())
    return only(analysis::FindingState::kBad, "there is no CDI device to inject");
  const auto edits = registry.Inject(proof.devices);
  if (!edits.ok()) return only(analysis::FindingState::kBad, edits.error().message());
  const auto probe = FindProgram(kProbe);
  if (!probe.ok()) return only(analysis::FindingState::kUnknown, probe.error().message());
  const PromisedFiles promised = node::validate::PromiseOf(*edits);
  const auto output = by_podman ? RunByPodman(proof, promised, *probe)
                                : RunLikeKubelet(*engine, proof, promised, *probe);
  if (!output.ok())
    return only(analysis::FindingState::kBad, "no container with " +
                                                  base::Join(proof.devices, ", ") +
                                                  " starts: " + output.error().message());
  return FindingsOf(about, promised, *output);
}

}  // namespace penstock::app
