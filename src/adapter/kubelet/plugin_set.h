// Runs the device plugins for the kubelet, one per resource: creates a plugin with its first list
// and ends it when it is no longer needed. Decides nothing about devices.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "os/loop.h"
#include "protocol/kubelet/device_plugin.h"

namespace penstock::adapter::kubelet {

/// Use on the control loop.
class PluginSet {
 public:
  struct Options {
    std::string kubelet_dir;
    std::string proc_root;
  };
  struct Callbacks {
    /// On the control loop, after a plugin's state changed.
    std::function<void(const std::string& resource, const protocol::kubelet::PluginState&)> state;
    /// Whether anything allocated under this name is still held.
    std::function<bool(const std::string& resource)> held;
  };
  /// `handler` answers for all plugins and must outlive this.
  PluginSet(os::Loop& loop, Options options, protocol::kubelet::PluginHandler& handler,
            Callbacks callbacks);
  ~PluginSet();

  /// Offers exactly these resources with these lists from now on. For a resource that is no longer
  /// offered, the kubelet first gets an empty list: if the plugin just ended, the kubelet would
  /// call its devices unhealthy. The plugin ends once nothing of it is held and the kubelet has the
  /// empty list.
  void Offer(std::map<std::string, std::vector<protocol::kubelet::PluginDevice>> lists);

  /// Devices were released: a plugin that waited for that may end soon.
  void CheckLeaving();

  /// State of each plugin, by resource, including those that are leaving.
  struct Standing {
    protocol::kubelet::PluginState state;
    bool leaving = false;
  };
  std::map<std::string, Standing> standings() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The prefix of the socket names of a resource: "penstock-nvidia.com-gpu". Truncated and made
/// unique again where socket paths would be longer than unix allows.
std::string SocketPrefixOf(const std::string& resource);

}  // namespace penstock::adapter::kubelet
