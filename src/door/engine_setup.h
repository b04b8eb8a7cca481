// Has the kubelet's engine do what containers need, where the configuration says that it shall be made to.
#pragma once

#include <memory>
#include <string>

#include "api/node_config.h"
#include "edge/engine/cri/inquiry.h"
#include "os/loop.h"

namespace penstock::door {

/// On the control loop. Acts when an engine is known and does not do what is wanted of it; one change at a time. What failed is not tried
/// again until something else is wanted or another agent begins: an engine that does not come back with our lines must not be ended again
/// and again.
class EngineSetup {
 public:
  struct Options {
    std::string state_dir = "/var/lib/penstock";  ///< what was changed is remembered there, so that it can be undone
    std::string proc_root = "/proc";
    std::string runtime;  ///< penstock-runtime, as the engine calls it
  };
  /// `engine` outlives it.
  EngineSetup(os::Loop& control, edge::engine::cri::Inquiry& engine, Options options);
  ~EngineSetup();

  void Configure(api::EngineSetup wanted);

  /// Why the engine is not as it is wanted; empty where it is, or nothing is wanted.
  const std::string& problem() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::door
