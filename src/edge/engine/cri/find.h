// Which container engine the kubelet of this machine uses. Reads /proc and a configuration file, and sees who listens; asks nobody.
#pragma once

#include <string>
#include <vector>

namespace penstock::edge::engine::cri {

/// Where the engine may be asked.
struct Sockets {
  std::vector<std::string> paths;  ///< the likeliest first; at each somebody listens whom engine::ListenerOf believes
  std::string problem;             ///< why there are none, or fewer than one would expect: one sentence; empty: nothing to say
  bool kubelet = false;            ///< a kubelet runs here
};

/// The socket of the kubelet whose --root-dir is this one, else of any kubelet (its --container-runtime-endpoint, else
/// containerRuntimeEndpoint in the file that its --config names): that one alone, and none where several kubelets name different ones. A
/// kubelet that names none, and a k3s or MicroK8s that has the kubelet inside, uses one of the well-known paths, which are also what is
/// left without a kubelet. Kubelets are those that engine::Identify believes. Each path is also looked for below /proc/1/root where we are
/// in a container and see other files than the machine's. `root` is put before the well-known paths and is "" but in tests. Blocks for some
/// milliseconds.
Sockets FindSockets(const std::string& proc_root, const std::string& kubelet_dir, const std::string& root = "");

/// The socket that somebody chose, in the same form: nobody but root may be able to listen there.
Sockets ChosenSocket(const std::string& proc_root, const std::string& socket);

/// The value of a flag in a command line, "--flag=value" or "--flag value"; the last one counts. Empty where it is not there.
std::string FlagIn(const std::vector<std::string>& arguments, const std::string& flag);

/// "unix:///run/x.sock" and "/run/x.sock" → "/run/x.sock"; empty for what is no unix socket.
std::string PathOfEndpoint(const std::string& endpoint);

}  // namespace penstock::edge::engine::cri
