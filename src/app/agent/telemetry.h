// What devices measure and who used it: from the spine's vendors to the metrics page and the usage records. Construction only.
#pragma once

#include <string>

#include "api/node_config.h"
#include "api/report.h"
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

  /// For somebody who looks: the newest samples, joined with a report of now, as JSON (api/samples.h). Collections come often from now on,
  /// for a few seconds.
  std::string Samples(const api::Report& report);

  node::sample::Sampler sampler;

 private:
  const Spine& spine_;
  os::Loop& control_;
  base::Executor& io_;
};

}  // namespace penstock::app
