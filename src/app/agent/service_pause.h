// Stops services of the host that hold a device while that is divided, and starts them again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/compat/layout_programs.h"
#include "api/config/node_config.h"
#include "app/stopped_services.h"
#include "base/executor.h"
#include "device/model.h"
#include "os/loop.h"

namespace penstock::app {

/// On the control loop. Of the services that a file lists (LayoutProgram::services: for NVIDIA's
/// devices parts.clientServices), those that have the device open are stopped (PlanServices), each
/// after services.json names it. They are started in the reverse order when no device is being
/// divided any more, by whichever agent runs then, as often as it takes. A service that cannot be
/// stopped does not keep a device from being divided.
class ServicePause {
 public:
  struct Node {
    os::Loop& control;
    base::Executor& io;
    /// Those whose clients are to be stopped now.
    std::function<std::set<std::string>()> devices;
    /// What Await returned may be different now.
    std::function<void()> wake;
    /// An Event of the node.
    std::function<void(bool warning, const std::string& reason, const std::string& message)> note;
    /// The control groups of the machine's processes that have one of the files open; called on
    /// `io`.
    std::function<std::set<std::string>(const std::vector<std::string>& files)> users;
    std::set<std::string> own_groups = {};  ///< of this process
  };
  /// `enter`: as of protocol::systemd::Services. `remembered`: by LoadStoppedServices, from the
  /// same folder, which is written on `io`.
  ServicePause(Node node, std::vector<std::string> enter, const std::string& state_dir,
               StoppedServices remembered);
  ~ServicePause();

  void Configure(const api::NodeConfig& config);

  /// What is still waited for before a device is divided, whose vendor's users have files of this
  /// program; empty: nothing.
  std::string Await(const device::Facts& device, const api::compat::LayoutProgram& program);

  /// All devices were read once. Nothing is started before, or for 5 minutes, since a change that
  /// an earlier agent left may go on.
  void Begin();

  /// Call after each change of Node::devices.
  void Follow();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Node::users, as `proc` shows them.
std::set<std::string> GroupsWith(const std::string& proc, const std::vector<std::string>& files);

}  // namespace penstock::app
