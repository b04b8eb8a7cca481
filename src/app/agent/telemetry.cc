#include "app/agent/telemetry.h"

#include "api/samples.h"
#include "backend/all.h"
#include "node/metrics/unused_quantities.h"
#include "view/samples.h"

namespace penstock::app {

Telemetry::Telemetry(os::Loop& control, os::Loop& io, DevicePipeline& pipeline,
                     const api::NodeConfig& config, const std::string& node)
    : sampler(control, pipeline.inventory, pipeline.Sources(),
              {.processes_differ =
                   [&pipeline](const std::string& vendor, const std::string& device) {
                     pipeline.ReadSoon(vendor, device);
                   }}),
      meter({.control = control,
             .io = io,
             .inventory = pipeline.inventory,
             .ledger = pipeline.ledger,
             .samples = sampler.published(),
             .dialect_of = backend::FindDialect,
             .sample_soon = [this] { sampler.RequestSoon(); },
             .sample_now = [this] { sampler.RequestNow(); },
             .proc_root = config.paths.proc_root,
             .name = node},
            config),
      jobs(control, io),
      pipeline_(pipeline),
      control_(control),
      io_(io) {
  Configure(config);
}

void Telemetry::Configure(const api::NodeConfig& config) {
  node::sample::Sampler::Options options{.interval = config.telemetry.interval,
                                         .processes = config.telemetry.processes};
  for (const device::Dialect* dialect : backend::Dialects())
    options.left_out.emplace(dialect->vendor(),
                             node::metrics::UnusedQuantities(*dialect, config.telemetry));
  sampler.Configure(std::move(options));
  meter.Configure(config);
  jobs.Configure(config.telemetry.job_directory);
}

api::Samples Telemetry::Samples(const api::Report& report) {
  sampler.RequestSoon();
  return view::MakeSamples(report, *pipeline_.ledger.Get(), *sampler.published().Get(),
                           backend::FindDialect, control_.clock().Wall());
}

void Telemetry::Usage(const protocol::broker::UsageRequest& request, const api::Viewer& viewer,
                      std::function<void(base::Result<std::string>)> done) {
  if (request.idle) {
    auto idle = meter.Idle();
    api::HideCommands(viewer, idle);
    return done(api::ToJson(idle));
  }
  const api::UsageQuery query{.by = request.by,
                              .since = request.since.value_or(base::WallTime{}),
                              .until = request.until.value_or(control_.clock().Wall())};
  meter.Sum(query, [done = std::move(done)](const base::Result<api::UsageReport>& report) {
    done(report.ok() ? base::Result<std::string>(api::ToJson(*report)) : report.error());
  });
}

}  // namespace penstock::app
