// Which container engine the kubelet of this machine uses. Reads /proc and a configuration file; asks nobody.
#pragma once

#include <string>
#include <vector>

namespace penstock::edge::engine::cri {

/// Paths of sockets where the engine may be asked, the likeliest first: that of each kubelet among the machine's own processes
/// (os::IsOfTheMachine; its --container-runtime-endpoint, else containerRuntimeEndpoint in the file that its --config names; those whose
/// --root-dir is this one before others), that of a k3s or MicroK8s that has the kubelet inside, then the well-known ones; each also below
/// /proc/1/root where we are in a container and see other files than the machine's. `root` is put before the well-known paths and is "" but
/// in tests. They need not exist. Blocks for some milliseconds.
std::vector<std::string> FindSockets(const std::string& proc_root, const std::string& kubelet_dir, const std::string& root = "");

/// The value of a flag in a command line, "--flag=value" or "--flag value"; the last one counts. Empty where it is not there.
std::string FlagIn(const std::vector<std::string>& arguments, const std::string& flag);

/// "unix:///run/x.sock" and "/run/x.sock" → "/run/x.sock"; empty for what is no unix socket.
std::string PathOfEndpoint(const std::string& endpoint);

}  // namespace penstock::edge::engine::cri
