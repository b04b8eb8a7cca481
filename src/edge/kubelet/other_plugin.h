// Who else serves plugins to this kubelet. Looks only; it is the reader who steps back.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/executor.h"

namespace penstock::edge::kubelet {

/// A socket in a kubelet's device-plugins folder.
struct PluginSocket {
  std::string name;     ///< "nvidia-gpu.sock" is NVIDIA's own plugin for nvidia.com/gpu
  bool alive = false;   ///< some process listens, or that could not be found out
  pid_t pid = 0;        ///< who listens; 0 where it is not to be seen from here (another pid namespace)
  std::string process;  ///< its name (comm), empty where unknown
};

/// Connects to a socket and hangs up at once, to learn who listens; never waits.
PluginSocket ProbeSocket(const std::string& folder, const std::string& name, const std::string& proc_root);

/// All sockets in the folder but the kubelet's own, by name, each probed.
std::vector<PluginSocket> ListPluginSockets(const std::string& folder, const std::string& proc_root);

/// A plugin that serves the resource we would serve.
struct OtherPlugin {
  std::vector<PluginSocket> suspects;  ///< the one, or several where the kubelet does not let us tell which
  std::vector<std::string> ids;        ///< what the kubelet has from it
  bool named = false;                  ///< the suspect's socket is named after the resource

  /// "nvidia-gpu.sock (nvidia-device-p, pid 4711)".
  std::string Describe() const;
};

/// Asks whether somebody else serves a resource while we have no stream: the kubelet counts devices of it, and a socket that is not one of
/// ours answers as a device plugin does. The kubelet does not say which socket serves which resource: one named after the resource is
/// believed, else all that answer are named.
class OtherPlugins {
 public:
  struct Options {
    std::string kubelet_dir, resource;
    std::string own_prefix;  ///< sockets whose names begin so are ours, or a predecessor's
    std::string proc_root = "/proc";
    base::Duration answer_within = std::chrono::seconds(1);   ///< a socket; who does not answer is no plugin
    base::Duration kubelet_within = std::chrono::seconds(5);  ///< the kubelet
  };
  /// Calls back on the executor, never after the destructor. On the executor's thread.
  OtherPlugins(base::Executor& executor, Options options);
  ~OtherPlugins();

  /// Where there is no other plugin's socket, nothing is asked and the answer comes before this returns. Up to both times of the options
  /// otherwise. When the kubelet cannot be asked, no other plugin is reported.
  void Detect(std::function<void(std::optional<OtherPlugin>)> done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::edge::kubelet
