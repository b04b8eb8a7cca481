// What devices measure and who used it: from the spine's vendors to the metrics page and the usage records. Construction only.
#pragma once

#include <memory>

#include "api/node_config.h"
#include "app/agent/spine.h"
#include "node/sample/sampler.h"
#include "os/loop.h"

namespace penstock::app {

/// On the control loop. Outlives nothing of the spine.
class Telemetry {
 public:
  Telemetry(os::Loop& control, base::Executor& io, Spine& spine, const api::NodeConfig& config);

  /// What a running agent can change follows this configuration from now on.
  void Configure(const api::NodeConfig& config);

  node::sample::Sampler sampler;

 private:
  os::Loop& control_;
  base::Executor& io_;
};

}  // namespace penstock::app
