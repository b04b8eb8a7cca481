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
    /// How long the kubelet may take to read a list that it was sent.
    base::Duration read_within = std::chrono::seconds(5);
  };
  /// On the control loop, after a plugin's state changed.
  using StateChanged =
      std::function<void(const std::string& resource, const protocol::kubelet::PluginState&)>;
  /// `handler` answers for all plugins and must outlive this.
  PluginSet(os::Loop& loop, Options options, protocol::kubelet::PluginHandler& handler,
            StateChanged state_changed);
  ~PluginSet();

  /// Offers exactly these resources with these lists from now on. For a resource that is no longer
  /// offered, the kubelet first gets an empty list: if the plugin just ended, the kubelet would
  /// call its devices unhealthy. The plugin ends once the kubelet has the empty list.
  void Offer(std::map<std::string, std::vector<protocol::kubelet::PluginDevice>> lists);

  /// State of each plugin, by resource, including those that are leaving.
  std::map<std::string, protocol::kubelet::PluginState> states() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The prefix of the socket names of a resource: "penstock-nvidia.com-gpu". Truncated and made
/// unique again where socket paths would be longer than unix allows.
std::string SocketPrefixOf(const std::string& resource);

}  // namespace penstock::adapter::kubelet
