// In the order of the spine: samples, then what is made of them.
#include "app/agent/telemetry.h"

#include "api/samples.h"
#include "door/samples.h"
#include "vendor/all.h"

namespace penstock::app {

Telemetry::Telemetry(os::Loop& control, base::Executor& io, Spine& spine, const api::NodeConfig& config)
    : sampler(control, spine.inventory, spine.Sources(),
              {.processes_differ = [&spine](const std::string& vendor, const std::string& device) { spine.ReadSoon(vendor, device); }}),
      spine_(spine),
      control_(control),
      io_(io) {
  Configure(config);
}

void Telemetry::Configure(const api::NodeConfig& config) {
  sampler.Configure({.interval = config.telemetry.interval, .processes = config.telemetry.processes});
}

std::string Telemetry::Samples(const api::Report& report) {
  sampler.Hurry();
  return api::ToJson(
      door::MakeSamples(report, *spine_.ledger.Get(), *sampler.published().Get(), vendor::FindDialect, control_.clock().Wall()));
}

}  // namespace penstock::app
