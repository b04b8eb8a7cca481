// The proof: a container is started with the devices, and a program of ours in it opens what the specifications promise.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <sys/resource.h>
#include <unistd.h>

#include "app/penstock/doctor.h"
#include "app/penstock/programs.h"
#include "base/core/strings.h"
#include "edge/engine/asking.h"
#include "edge/engine/cri/errand.h"
#include "os/core/file.h"

namespace penstock::app {

namespace {

constexpr base::Duration kPatience = std::chrono::seconds(60);  // pods of a busy machine
constexpr rlim_t kLimit = 1024;                                 // of files and processes: more than the probe needs
constexpr char kProbe[] = "penstock-probe";
constexpr char kInside[] = "/penstock-probe";

/// A folder that is gone with its owner, whatever was mounted over its files meanwhile.
class Root {
 public:
  static base::Result<Root> Make() {
    std::string path = (std::filesystem::temp_directory_path() / "penstock-proof-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) return base::ErrnoError(errno, "make a folder for the container's root");
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

/// What must be in the container: files that are opened there, and whether each is a device.
struct Promise {
  std::map<std::string, bool> files;
};

Promise PromiseOf(const api::cdi::Edits& edits) {
  Promise promise;
  for (const auto& mount : edits.mounts)
    if (mount.host_path.starts_with('/')) promise.files[mount.container_path] = false;
  for (const auto& node : edits.nodes) promise.files[node.path] = true;
  return promise;
}

/// All devices of the first kind: the one that stands for all, else each.
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

/// A limit that any caller may set. Left to itself podman sets one that takes CAP_SYS_RESOURCE.
std::string LimitOf(const std::string& name, __rlimit_resource resource) {
  rlimit own{kLimit, kLimit};
  (void)::getrlimit(resource, &own);
  const std::string limit = std::to_string(std::min(own.rlim_max, kLimit));
  return name + "=" + limit + ":" + limit;
}

/// podman starts the container by its own program; the probe is the first word that it executes.
std::vector<std::string> PodmanCommand(const Proof& proof, const std::string& root, const std::string& probe) {
  std::vector<std::string> command = {"podman", "run", "--rm", "--network", "none", "--log-driver", "none", "--pull", "never"};
  for (const std::string& limit : {LimitOf("nofile", RLIMIT_NOFILE), LimitOf("nproc", RLIMIT_NPROC)})
    command.insert(command.end(), {"--ulimit", limit});
  for (const std::string& device : proof.devices) command.insert(command.end(), {"--device", device});
  if (proof.image.empty()) {
    command.insert(command.end(), {"--rootfs", root, kInside});
  } else {
    command.insert(command.end(), {"--volume", probe + ":" + kInside + ":ro", "--entrypoint", kInside, proof.image});
  }
  return command;
}

/// What stands in the way of opening a file, in words that say which link of the chain is broken.
std::string WhyNot(const std::string& file, bool device, int error) {
  if (error == ENOENT) return file + " is not in the container: it was not injected";
  if (error == EPERM && device) return file + " is there and may not be opened: the container's control group does not admit it";
  return file + " cannot be opened: " + std::strerror(error);
}

/// Whether the answer of open(2) shows that the file is there and admitted. A device file without hardware behind it answers ENXIO or
/// ENODEV, one that somebody else holds EBUSY; a socket or a folder that is mounted is not opened like a file.
bool IsOpen(int error) { return error == 0 || error == ENXIO || error == ENODEV || error == EBUSY; }

/// The probe's lines: "ERRNO FILE".
std::map<std::string, int> ReadAnswers(const std::string& output) {
  std::map<std::string, int> answers;
  for (const std::string& line : base::Split(output, '\n')) {
    const auto blank = line.find(' ');
    if (blank == std::string::npos) continue;
    if (const auto error = base::ParseInt(line.substr(0, blank))) answers[line.substr(blank + 1)] = static_cast<int>(*error);
  }
  return answers;
}

std::vector<DoctorFinding> JudgeAnswers(const std::string& about, const Promise& promise, const std::map<std::string, int>& answers) {
  std::vector<DoctorFinding> findings;
  std::size_t devices = 0;
  for (const auto& [file, device] : promise.files) {
    devices += device ? 1 : 0;
    const auto answer = answers.find(file);
    const int error = answer == answers.end() ? EIO : answer->second;
    if (!IsOpen(error)) findings.push_back({about, Verdict::kBad, WhyNot(file, device, error), "", {}, {}});
  }
  if (findings.empty())
    findings.push_back({about,
                        Verdict::kOk,
                        "in a container " + std::to_string(devices) + " device files and " +
                            std::to_string(promise.files.size() - devices) + " mounted files could be opened",
                        "",
                        {},
                        {}});
  return findings;
}

base::Result<std::string> RunByPodman(const Proof& proof, const Promise& promise, const std::string& probe) {
  ASSIGN(const Root root, Root::Make());
  std::error_code error;
  std::filesystem::copy_file(probe, root.path() + kInside, error);
  if (error) return base::ErrnoError(error.value(), "copy " + probe + " to " + root.path());
  std::vector<std::string> command = PodmanCommand(proof, root.path(), probe);
  for (const auto& [file, device] : promise.files) command.push_back(file);
  ASSIGN(const auto outcome, RunFor(command, kPatience));
  if (outcome.status == 0) return outcome.output;
  return base::Error(base::Code::kUnknown, edge::engine::LastLine(outcome.errors));
}

/// The way of a pod: what the kubelet asks of the engine is asked of it.
base::Result<std::string> RunByKubeletsWay(const EngineState& engine, const Proof& proof, const Promise& promise,
                                           const std::string& probe) {
  edge::engine::cri::Errand errand{
      .socket = engine.socket, .image = proof.image, .command = {kInside}, .program = probe, .cdi_devices = proof.devices};
  for (const auto& [file, device] : promise.files) errand.command.push_back(file);
  return edge::engine::cri::RunErrand(errand, kPatience);
}

/// The engine that is asked for, or the first that can start a container by itself.
const EngineState* ChooseEngine(const Proof& proof, const DoctorFacts& facts) {
  for (const auto candidate : {edge::engine::Engine::kPodman, edge::engine::Engine::kContainerd, edge::engine::Engine::kCrio})
    for (const EngineState& engine : facts.engines)
      if (engine.facts.engine == candidate && (proof.engine.empty() || proof.engine == edge::engine::Name(candidate))) return &engine;
  return nullptr;
}

}  // namespace

std::vector<DoctorFinding> Prove(const Proof& asked, const DoctorFacts& facts) {
  const api::cdi::Registry registry(facts.files);
  Proof proof = asked;
  if (proof.devices.empty()) proof.devices = AllOfFirstKind(registry);
  std::string about = "proof";
  const auto only = [&about](Verdict verdict, const std::string& why) {
    return std::vector<DoctorFinding>{{about, verdict, why, "", {}, {}}};
  };
  const EngineState* engine = ChooseEngine(proof, facts);
  if (engine == nullptr)
    return only(Verdict::kUnknown,
                "there is no " + (proof.engine.empty() ? "podman, containerd or CRI-O" : proof.engine) + " to start a container with");
  about += " by " + engine->facts.name;
  const bool by_podman = engine->facts.engine == edge::engine::Engine::kPodman;
  if (!by_podman && proof.image.empty()) return only(Verdict::kUnknown, "its containers need an image: say one of its store with --image");
  if (proof.devices.empty()) return only(Verdict::kBad, "there is no CDI device to give to a container");
  const auto edits = registry.Inject(proof.devices);
  if (!edits.ok()) return only(Verdict::kBad, edits.error().message());
  const auto probe = FindProgram(kProbe);
  if (!probe.ok()) return only(Verdict::kUnknown, probe.error().message());
  const Promise promise = PromiseOf(*edits);
  const auto output = by_podman ? RunByPodman(proof, promise, *probe) : RunByKubeletsWay(*engine, proof, promise, *probe);
  if (!output.ok())
    return only(Verdict::kBad, "no container with " + base::Join(proof.devices, ", ") + " starts: " + output.error().message());
  return JudgeAnswers(about, promise, ReadAnswers(*output));
}

}  // namespace penstock::app
