// In the order of the spine: samples, then what is made of them.
#include "app/agent/telemetry.h"

namespace penstock::app {

Telemetry::Telemetry(os::Loop& control, base::Executor& io, Spine& spine, const api::NodeConfig& config)
    : sampler(control, spine.inventory, spine.Sources(),
              {.processes_differ = [&spine](const std::string& vendor, const std::string& device) { spine.ReadSoon(vendor, device); }}),
      control_(control),
      io_(io) {
  Configure(config);
}

void Telemetry::Configure(const api::NodeConfig& config) {
  sampler.Configure({.interval = config.telemetry.interval, .processes = config.telemetry.processes});
}

}  // namespace penstock::app
