// Connects sampling, usage metering and the jobs of devices to the device pipeline; their results
// go to the metrics page and the usage records.
#pragma once

#include <functional>
#include <string>

#include "api/commands.h"
#include "api/config/node_config.h"
#include "api/report.h"
#include "app/agent/device_pipeline.h"
#include "node/attribute/job_follower.h"
#include "node/sample/sampler.h"
#include "node/usage/meter.h"
#include "os/loop.h"
#include "protocol/broker/protocol.h"

namespace penstock::app {

/// On the control loop. The pipeline must outlive it.
class Telemetry {
 public:
  /// `node` is this node's name.
  Telemetry(os::Loop& control, os::Loop& io, DevicePipeline& pipeline,
            const api::NodeConfig& config, const std::string& node);

  /// Applies the settings that can change at run time.
  void Configure(const api::NodeConfig& config);

  /// For an interactive client: returns the newest samples, combined with `report`. Collections
  /// become frequent for a few seconds.
  api::Samples Samples(const api::Report& report);

  /// Returns usage, or idle holders, as JSON (api/usage.h), as far as `viewer` may see it. `done`
  /// runs on the control loop.
  void Usage(const protocol::broker::UsageRequest& request, const api::Viewer& viewer,
             std::function<void(base::Result<std::string>)> done);

  /// Call when this agent serves the node, before any lease is restored: see usage::Meter::Serve.
  void Serve(const std::string& boot_id) { meter.Serve(boot_id); }

  node::sample::Sampler sampler;
  node::usage::Meter meter;
  node::attribute::JobFollower jobs;

 private:
  const DevicePipeline& pipeline_;
  os::Loop& control_;
  base::Executor& io_;
};

}  // namespace penstock::app
