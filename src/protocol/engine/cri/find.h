// Finds the container engine that this machine's kubelet uses. Reads /proc and a configuration
// file, and identifies the listeners of sockets; sends no request.
#pragma once

#include <string>
#include <vector>

namespace penstock::protocol::engine::cri {

/// The sockets at which the engine may be asked.
struct Sockets {
  std::vector<std::string>
      paths;  ///< the likeliest first; each has a listener that engine::ListenerOf trusts
  std::string
      problem;  ///< why there are none, or fewer than expected: one sentence; empty: no problem
  bool kubelet = false;  ///< a kubelet runs here
};

/// Returns the socket of the kubelet whose --root-dir is `kubelet_dir`, else of any kubelet (its
/// --container-runtime-endpoint, else containerRuntimeEndpoint in the file that its --config
/// names): only that one, and none if several kubelets name different ones. The well-known paths
/// are used for a kubelet that names no socket, for k3s and MicroK8s, which contain the kubelet,
/// and if there is no kubelet. Only kubelets that engine::Identify trusts count. Each path is also
/// looked for below /proc/1/root if we are in a container and see other files than the machine's.
/// `root` is put before the well-known paths and is "" except in tests. Blocks for some
/// milliseconds.
Sockets FindSockets(const std::string& proc_root, const std::string& kubelet_dir,
                    const std::string& root = "");

/// Returns the explicitly configured socket in the same form: as we see it, else, if we are in a
/// container, as the machine sees it. Only root may be able to listen there.
Sockets ChosenSocket(const std::string& proc_root, const std::string& socket);

/// Returns the value of a flag in a command line, "--flag=value" or "--flag value"; the last one
/// counts. Empty if the flag is absent.
std::string FlagIn(const std::vector<std::string>& arguments, const std::string& flag);

/// "unix:///run/x.sock" and "/run/x.sock" → "/run/x.sock"; empty for anything else.
std::string PathOfEndpoint(const std::string& endpoint);

}  // namespace penstock::protocol::engine::cri
