// What devices measure and who used it: from the spine's vendors to the metrics page and the usage records. Construction only.
#pragma once

#include <functional>
#include <string>

#include "api/commands.h"
#include "api/node_config.h"
#include "api/report.h"
#include "app/agent/spine.h"
#include "edge/broker/protocol.h"
#include "node/sample/sampler.h"
#include "node/usage/meter.h"
#include "os/loop.h"

namespace penstock::app {

/// On the control loop. Outlives nothing of the spine.
class Telemetry {
 public:
  /// `node` is this node's name.
  Telemetry(os::Loop& control, base::Executor& io, Spine& spine, const api::NodeConfig& config, const std::string& node);

  /// What a running agent can change follows this configuration from now on.
  void Configure(const api::NodeConfig& config);

  /// For somebody who looks: the newest samples, joined with a report of now. Collections come often from now on,
  /// for a few seconds.
  api::Samples Samples(const api::Report& report);

  /// Who used what, or who holds what unused, as JSON (api/usage.h), for `viewer`. `done` runs on the control loop.
  void Usage(const edge::broker::UsageRequest& request, const api::Viewer& viewer, std::function<void(base::Result<std::string>)> done);

  /// This agent serves the node: see usage::Meter::Serve. Before any lease is taken over.
  void Serve(const std::string& boot_id) { meter.Serve(boot_id); }

  node::sample::Sampler sampler;
  node::usage::Meter meter;

 private:
  const Spine& spine_;
  os::Loop& control_;
  base::Executor& io_;
};

}  // namespace penstock::app
