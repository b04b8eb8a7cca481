// The device plugins of the kubelet's door, one for each resource: they come with a list, and go when nobody needs them any more. Decides
// nothing about devices.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "edge/kubelet/device_plugin.h"
#include "os/loop.h"

namespace penstock::door {

/// On the control loop.
class KubeletPlugins {
 public:
  struct Options {
    std::string kubelet_dir;
    std::string proc_root;
  };
  /// Those of DevicePlugin, with the resource they are about.
  struct Callbacks {
    /// On gRPC's threads.
    std::function<void(const std::string& resource, edge::kubelet::AllocateRequest,
                       edge::kubelet::Reply<std::vector<edge::kubelet::ContainerEdits>>)>
        allocate;
    /// On gRPC's threads.
    std::function<void(const std::string& resource, const edge::kubelet::PreferRequest&,
                       const edge::kubelet::Reply<std::vector<std::vector<std::string>>>&)>
        prefer;
    std::function<void(const std::string& resource, const edge::kubelet::PluginState&)> state;
    /// Whether somebody holds anything that was given out under this name.
    std::function<bool(const std::string& resource)> held;
  };
  KubeletPlugins(os::Loop& loop, Options options, Callbacks callbacks);
  ~KubeletPlugins();

  /// From now on exactly these resources, with these lists. The kubelet is given an empty list of one that is not among them any more: it
  /// would call its devices unhealthy if its plugin just went. The plugin ends once nothing of it is held and the kubelet has taken that.
  void Offer(std::map<std::string, std::vector<edge::kubelet::PluginDevice>> lists);

  /// Something was given back: a plugin that waited for that may end, soon.
  void LookAtLeaving();

  /// Where the plugins stand, by resource; those that are leaving included.
  struct Standing {
    edge::kubelet::PluginState state;
    bool leaving = false;
  };
  std::map<std::string, Standing> standings() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// "penstock-nvidia.com-gpu": what the names of a resource's sockets begin with. Cut, and made unique again, where the paths of sockets
/// would become longer than unix allows.
std::string SocketPrefixOf(const std::string& resource);

}  // namespace penstock::door
