// By process name, command line and configuration file.
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
  auto& sockets = ours ? candidates.ours : candidates.others;
  sockets.push_back(socket);
  sockets.push_back(process + "/root" + socket);  // where we are in a container and the kubelet is not
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
  for (const pid_t pid : os::ListProcesses(proc_root)) LookAt(Folder(proc_root, pid), kubelet_dir, candidates);
  std::vector<std::string> sockets;
  for (const std::string& path : candidates.ours) AddNew(sockets, path);
  for (const std::string& path : candidates.others) AddNew(sockets, path);
  for (const char* path : kWellKnown) AddNew(sockets, root + path);
  return sockets;
}

}  // namespace penstock::edge::engine::cri
