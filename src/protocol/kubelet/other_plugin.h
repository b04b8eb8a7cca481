// Finds other programs that serve device plugins to this kubelet. Only looks; the caller decides to
// step back.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/executor.h"

namespace penstock::protocol::kubelet {

/// A socket in a kubelet's device-plugins folder.
struct PluginSocket {
  std::string name;    ///< "nvidia-gpu.sock" is that of NVIDIA's own plugin for nvidia.com/gpu,
                       ///< "amd.com_gpu" that of AMD's for amd.com/gpu
  bool alive = false;  ///< a process listens, or that could not be determined
  pid_t pid = 0;  ///< of the listener; 0 if it is not visible from here (another pid namespace)
  std::string process;  ///< its name (comm), empty if unknown
  /// The listener is root's, or of the user who owns the folder. Any other put its socket into a
  /// folder that it should not be able to write.
  bool trusted = false;
};

/// Connects to a socket and disconnects at once, to learn which process listens; never waits.
PluginSocket ProbeSocket(const std::string& folder, const std::string& name,
                         const std::string& proc_root);

/// Probes all sockets in the folder except the kubelet's own; returns them by name.
std::vector<PluginSocket> ListPluginSockets(const std::string& folder,
                                            const std::string& proc_root);

/// A plugin that serves the resource that we would serve.
struct OtherPlugin {
  /// The plugin's socket, or several if the kubelet does not show which one it is.
  std::vector<PluginSocket> suspects;
  std::vector<std::string> ids;  ///< its devices that the kubelet has
  bool named = false;            ///< the suspect's socket is named after the resource

  /// "nvidia-gpu.sock (nvidia-device-p, pid 4711)".
  std::string Describe() const;
};

/// Of processes that answer as device plugins, that which serves `resource`: the one with a trusted
/// socket named after it, else possibly each. Sorts them by name.
OtherPlugin NameOther(std::vector<PluginSocket> suspects, std::vector<std::string> ids,
                      const std::string& resource);

/// Finds out whether another plugin serves a resource while we have no stream: the kubelet counts
/// devices of it, and a socket that is not one of ours answers as a device plugin does. The kubelet
/// does not say which socket serves which resource: one named after the resource is trusted, else
/// all that answer are named.
class OtherPlugins {
 public:
  struct Options {
    std::string kubelet_dir, resource;
    std::string own_prefix;  ///< sockets with this prefix are ours, or a predecessor's
    std::string proc_root = "/proc";
    /// For a socket; one that does not answer is no plugin.
    base::Duration answer_within = std::chrono::seconds(1);
    base::Duration kubelet_within = std::chrono::seconds(5);  ///< for the kubelet
  };
  /// Use on the executor's thread. Calls back on the executor, never after the destructor.
  OtherPlugins(base::Executor& executor, Options options);
  ~OtherPlugins();

  /// If no other plugin has a socket, asks nothing and calls `done` before this returns. Otherwise
  /// takes up to both times of the options. If the kubelet cannot be asked, reports no other
  /// plugin.
  void Detect(std::function<void(std::optional<OtherPlugin>)> done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::protocol::kubelet
