#include "protocol/engine/cri/find.h"

#include <algorithm>

#include "base/core/strings.h"
#include "base/yaml.h"
#include "os/core/file.h"
#include "os/core/root.h"
#include "protocol/engine/machine_process.h"

namespace penstock::protocol::engine::cri {
namespace {

constexpr const char* kK3s = "/run/k3s/containerd/containerd.sock";  // RKE2's too
constexpr const char* kMicroK8s = "/var/snap/microk8s/common/run/containerd.sock";
constexpr const char* kWellKnown[] = {
    "/run/containerd/containerd.sock", kK3s,      "/run/crio/crio.sock",
    "/run/k0s/containerd.sock",        kMicroK8s, "/run/cri-dockerd.sock"};
constexpr const char* kUsualRootDir = "/var/lib/kubelet";
constexpr std::size_t kMaxText = 1u << 20;

/// Returns the endpoint in the kubelet's configuration file, as the kubelet itself sees the file.
std::string EndpointInFile(const std::string& process, const std::string& file) {
  if (file.empty()) return "";
  const auto root = os::Root::Open(process + "/root");
  if (!root.ok()) return "";
  const auto text = root->Read(file, kMaxText);
  if (!text.ok()) return "";
  const auto document = base::ParseYaml(*text, file);
  const base::Value* endpoint =
      document.ok() ? document->Find("containerRuntimeEndpoint") : nullptr;
  return endpoint != nullptr ? PathOfEndpoint(endpoint->text) : "";
}

/// A kubelet and the socket of the engine that it names.
struct Kubelet {
  pid_t pid = 0;
  bool own = false;
  std::string socket;  ///< empty: it names none
};

/// The machine's kubelets.
struct Kubelets {
  std::vector<Kubelet> all;
  std::string hint;     ///< the well-known path of a program that contains the kubelet
  std::string refused;  ///< why a process that would be the kubelet is not trusted
};

Kubelets FindKubelets(const std::string& proc_root, const std::string& kubelet_dir) {
  Kubelets found;
  Named named = ProcessesNamed(proc_root, {"kubelet", "kubelite", "k3s"});
  found.refused = std::move(named.refused);
  for (const MachineProcess& process : named.processes) {
    const bool inside = process.name == "kubelite" || process.name.starts_with("k3s");
    if (inside) found.hint = process.name == "kubelite" ? kMicroK8s : kK3s;
    if (!inside && process.name != "kubelet") continue;  // k3s under another name
    std::string socket = PathOfEndpoint(FlagIn(process.arguments, "--container-runtime-endpoint"));
    if (socket.empty())
      socket = EndpointInFile(proc_root + "/" + std::to_string(process.pid),
                              FlagIn(process.arguments, "--config"));
    const std::string root_dir = FlagIn(process.arguments, "--root-dir");
    found.all.push_back({process.pid, (root_dir.empty() ? kUsualRootDir : root_dir) == kubelet_dir,
                         std::move(socket)});
  }
  if (std::ranges::any_of(found.all, [](const Kubelet& one) { return one.own; }))
    std::erase_if(found.all, [](const Kubelet& one) { return !one.own; });
  return found;
}

/// Collects the paths, as we see them and as the machine does, that have a trusted listener; keeps
/// the first reason against a path.
class Collector {
 public:
  Collector(std::string proc_root, Sockets& sockets)
      : proc_root_(std::move(proc_root)), files_(MachineFiles(proc_root_)), sockets_(sockets) {}

  void Add(const std::string& path, const std::string& seen_as, bool expected) {
    AddOne(seen_as, expected && files_.empty());
    if (!files_.empty()) AddOne(files_ + path, expected);
  }

  /// `expected`: a missing socket is a problem to report.
  void AddOne(const std::string& path, bool expected) {
    if (std::ranges::find(sockets_.paths, path) != sockets_.paths.end()) return;
    const auto listener = ListenerOf(proc_root_, path);
    if (listener.ok()) return sockets_.paths.push_back(path);
    if (!sockets_.problem.empty()) return;
    const base::Error& error = listener.error();
    if (error.code() == base::Code::kPermissionDenied) {
      sockets_.problem = error.message();
    } else if (expected) {
      sockets_.problem = "the container engine at " + path + " does not answer: " + error.message();
    }
  }

 private:
  const std::string proc_root_, files_;
  Sockets& sockets_;
};

/// Returns "process 5 uses /run/a.sock, process 9 uses /run/b.sock".
std::string Describe(const std::vector<Kubelet>& kubelets) {
  std::vector<std::string> words;
  for (const Kubelet& one : kubelets)
    words.push_back("process " + std::to_string(one.pid) + " uses " +
                    (one.socket.empty() ? "one that it does not report" : one.socket));
  return base::Join(words, ", ");
}

/// Why this process cannot look for sockets among the machine's files; empty: it can.
std::string WhyUnseen(const std::string& proc_root) {
  const std::string files = MachineFiles(proc_root);
  if (files.empty()) return "";
  const auto opened = os::Root::Open(files);
  if (opened.ok() || opened.error().code() != base::Code::kPermissionDenied) return "";
  return "the container engine cannot be queried: its socket is reached through " + files +
         ", which requires a privileged container";
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
  const std::string path =
      endpoint.starts_with(kScheme) ? endpoint.substr(kScheme.size()) : endpoint;
  return path.starts_with('/') ? path : "";
}

Sockets FindSockets(const std::string& proc_root, const std::string& kubelet_dir,
                    const std::string& root) {
  Sockets sockets;
  const Kubelets kubelets = FindKubelets(proc_root, kubelet_dir);
  sockets.kubelet = !kubelets.all.empty();
  const auto differs = [&](const Kubelet& one) {
    return one.socket != kubelets.all.front().socket;
  };
  if (std::ranges::any_of(kubelets.all, differs)) {
    sockets.problem = "several kubelets run on this machine (" + Describe(kubelets.all) +
                      "): set the engine with containers.engineSocket";
    return sockets;
  }
  Collector collector(proc_root, sockets);
  if (sockets.kubelet && !kubelets.all.front().socket.empty()) {
    collector.Add(kubelets.all.front().socket, kubelets.all.front().socket, true);
    return sockets;
  }
  if (!kubelets.hint.empty()) collector.Add(kubelets.hint, root + kubelets.hint, false);
  for (const char* path : kWellKnown) collector.Add(path, root + path, false);
  if (sockets.problem.empty()) sockets.problem = kubelets.refused;
  if (const std::string why = WhyUnseen(proc_root); sockets.paths.empty() && !why.empty())
    sockets.problem = why;
  return sockets;
}

Sockets ChosenSocket(const std::string& proc_root, const std::string& socket) {
  Sockets sockets;
  Collector(proc_root, sockets).AddOne(socket, true);
  const std::string files = MachineFiles(proc_root);
  if (!sockets.paths.empty() || files.empty()) return sockets;
  // The path is usually meant as the machine has it: a container need not mount the socket.
  Sockets of_machine;
  Collector(proc_root, of_machine).AddOne(files + socket, false);
  return of_machine.paths.empty() ? sockets : of_machine;
}

}  // namespace penstock::protocol::engine::cri
