// Sets up the kubelet's container engine as containers need it, if the configuration asks for it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "os/loop.h"
#include "protocol/engine/cri/engine_watcher.h"

namespace penstock::adapter::kubelet {

/// Use on the control loop. Acts when an engine is known and is not set up as desired; one change
/// at a time. After a failure it tries again only when another setup is desired, also since the
/// attempt began, or the agent restarts: an engine that does not come up with our configuration
/// must not be stopped again and again.
class EngineReconciler {
 public:
  struct Options {
    /// Changes are recorded there, so that they can be undone.
    std::string state_dir = "/var/lib/penstock";
    std::string proc_root = "/proc";
    std::string runtime;                   ///< penstock-runtime, as a path that the engine sees
    std::function<void()> failed = [] {};  ///< the engine could not be set up: see `problem`
  };
  /// `engine` must outlive this object.
  EngineReconciler(os::Loop& control, protocol::engine::cri::EngineWatcher& engine,
                   Options options);
  ~EngineReconciler();

  /// `handlers`: the names under which the engine is to know the runtime, if that is wanted.
  void Configure(api::EngineSetup wanted, std::vector<std::string> handlers);

  /// The engine has changed.
  void EngineChanged();

  /// Why the engine is not set up as desired; empty if it is, or if nothing is desired.
  const std::string& problem() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::adapter::kubelet
