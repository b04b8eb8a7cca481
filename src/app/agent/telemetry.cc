// In the order of the spine: samples, then what is made of them.
#include "app/agent/telemetry.h"

#include "api/samples.h"
#include "door/samples.h"
#include "node/metrics/left_out.h"
#include "vendor/all.h"

namespace penstock::app {

Telemetry::Telemetry(os::Loop& control, base::Executor& io, Spine& spine, const api::NodeConfig& config, const std::string& node)
    : sampler(control, spine.inventory, spine.Sources(),
              {.processes_differ = [&spine](const std::string& vendor, const std::string& device) { spine.ReadSoon(vendor, device); }}),
      meter({.control = control,
             .io = io,
             .inventory = spine.inventory,
             .ledger = spine.ledger,
             .samples = sampler.published(),
             .dialect_of = vendor::FindDialect,
             .hurry = [this] { sampler.Hurry(); },
             .at_once = [this] { sampler.AtOnce(); },
             .proc_root = config.paths.proc_root,
             .name = node},
            config),
      spine_(spine),
      control_(control),
      io_(io) {
  Configure(config);
}

void Telemetry::Configure(const api::NodeConfig& config) {
  node::sample::Sampler::Options options{.interval = config.telemetry.interval, .processes = config.telemetry.processes};
  for (const device::Dialect* dialect : vendor::Dialects())
    options.left_out.emplace(dialect->vendor(), node::metrics::LeftOut(*dialect, config.telemetry));
  sampler.Configure(std::move(options));
  meter.Configure(config);
}

api::Samples Telemetry::Samples(const api::Report& report) {
  sampler.Hurry();
  return door::MakeSamples(report, *spine_.ledger.Get(), *sampler.published().Get(), vendor::FindDialect, control_.clock().Wall());
}

void Telemetry::Usage(const edge::broker::UsageRequest& request, const api::Viewer& viewer,
                      std::function<void(base::Result<std::string>)> done) {
  if (request.idle) {
    auto idle = meter.Idle();
    api::HideCommands(viewer, idle);
    return done(api::ToJson(idle));
  }
  const api::UsageQuery query{
      .by = request.by, .since = request.since.value_or(base::WallTime{}), .until = request.until.value_or(control_.clock().Wall())};
  meter.Sum(query, [done = std::move(done)](const base::Result<api::UsageReport>& report) {
    done(report.ok() ? base::Result<std::string>(api::ToJson(*report)) : report.error());
  });
}

}  // namespace penstock::app
