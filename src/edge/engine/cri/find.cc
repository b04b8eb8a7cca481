// By process name, command line and configuration file, among the machine's own processes: those in containers may be anything, and the
// kubelets of other nodes that are containers on this machine have engines of their own.
#include "edge/engine/cri/find.h"

#include <algorithm>
#include <iterator>

#include "base/core/strings.h"
#include "base/yaml.h"
#include "os/core/file.h"
#include "os/core/root.h"
#include "os/process.h"

namespace penstock::edge::engine::cri {
namespace {

constexpr const char* kK3s = "/run/k3s/containerd/containerd.sock";  // RKE2's too
constexpr const char* kMicroK8s = "/var/snap/microk8s/common/run/containerd.sock";
constexpr const char* kWellKnown[] = {"/run/containerd/containerd.sock", kK3s,      "/run/crio/crio.sock",
                                      "/run/k0s/containerd.sock",        kMicroK8s, "/run/cri-dockerd.sock"};
constexpr const char* kUsualRootDir = "/var/lib/kubelet";
constexpr std::size_t kMostText = 1u << 20;

std::string Folder(const std::string& proc_root, pid_t pid) { return proc_root + "/" + std::to_string(pid); }

std::vector<std::string> ArgumentsOf(const std::string& process) {
  const auto text = os::ReadFile(process + "/cmdline", kMostText);
  return text.ok() ? base::Split(*text, '\0') : std::vector<std::string>{};
}

/// What the kubelet's configuration file says, as the kubelet itself sees the file.
std::string EndpointInFile(const std::string& process, const std::string& file) {
  if (file.empty()) return "";
  const auto root = os::Root::Open(process + "/root");
  const auto text = root.ok() ? root->Read(file, kMostText) : os::ReadFile(file, kMostText);
  if (!text.ok()) return "";
  const auto document = base::ParseYaml(*text, file);
  const base::Value* endpoint = document.ok() ? document->Find("containerRuntimeEndpoint") : nullptr;
  return endpoint != nullptr ? PathOfEndpoint(endpoint->text) : "";
}

struct Candidates {
  std::vector<std::string> ours, others;
};

void LookAt(const std::string& process, const std::string& kubelet_dir, Candidates& candidates) {
  const auto comm = os::ReadFile(process + "/comm", kMostText);
  if (!comm.ok()) return;
  const std::string name(base::Trim(*comm));
  if (name.starts_with("k3s-")) return candidates.others.emplace_back(kK3s), void();
  if (name == "kubelite") return candidates.others.emplace_back(kMicroK8s), void();
  if (name != "kubelet") return;
  const auto arguments = ArgumentsOf(process);
  std::string socket = PathOfEndpoint(FlagIn(arguments, "--container-runtime-endpoint"));
  if (socket.empty()) socket = EndpointInFile(process, FlagIn(arguments, "--config"));
  if (socket.empty()) return;
  const std::string root_dir = FlagIn(arguments, "--root-dir");
  const bool ours = (root_dir.empty() ? kUsualRootDir : root_dir) == kubelet_dir;
  (ours ? candidates.ours : candidates.others).push_back(socket);
}

/// Where the machine's files are: nothing where we see them as they are, "/proc/1/root" where we are in a container.
std::string MachineFiles(const std::string& proc_root) {
  const auto ours = os::ReadLink(proc_root + "/self/ns/mnt"), machine = os::ReadLink(proc_root + "/1/ns/mnt");
  return ours.ok() && machine.ok() && *ours == *machine ? "" : proc_root + "/1/root";
}

void AddNew(std::vector<std::string>& to, const std::string& path) {
  if (std::find(to.begin(), to.end(), path) == to.end()) to.push_back(path);
}

}  // namespace

std::string FlagIn(const std::vector<std::string>& arguments, const std::string& flag) {
  std::string value;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with(flag + "=")) value = arguments[i].substr(flag.size() + 1);
    if (arguments[i] == flag && i + 1 < arguments.size()) value = arguments[i + 1];
  }
  return value;
}

std::string PathOfEndpoint(const std::string& endpoint) {
  constexpr std::string_view kScheme = "unix://";
  const std::string path = endpoint.starts_with(kScheme) ? endpoint.substr(kScheme.size()) : endpoint;
  return path.starts_with('/') ? path : "";
}

std::vector<std::string> FindSockets(const std::string& proc_root, const std::string& kubelet_dir, const std::string& root) {
  Candidates candidates;
  for (const pid_t pid : os::ListProcesses(proc_root))
    if (os::IsOfTheMachine(proc_root, pid)) LookAt(Folder(proc_root, pid), kubelet_dir, candidates);
  const std::string files = MachineFiles(proc_root);
  std::vector<std::string> sockets;
  const auto add = [&](const std::string& path, const std::string& seen_as) {
    AddNew(sockets, seen_as);
    AddNew(sockets, files.empty() ? seen_as : files + path);
  };
  for (const std::string& path : candidates.ours) add(path, path);
  for (const std::string& path : candidates.others) add(path, path);
  for (const char* path : kWellKnown) add(path, root + path);
  return sockets;
}

}  // namespace penstock::edge::engine::cri
