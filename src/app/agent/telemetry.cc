// In the order of the spine: samples, then what is made of them.
#include "app/agent/telemetry.h"

namespace penstock::app {

Telemetry::Telemetry(os::Loop& control, base::Executor& io, Spine& spine, const api::NodeConfig& config)
    : sampler(control, spine.inventory, spine.Sources()), control_(control), io_(io) {
  Configure(config);
}

void Telemetry::Configure(const api::NodeConfig& config) {
  sampler.Configure({.interval = config.telemetry.interval, .processes = config.telemetry.processes});
}

}  // namespace penstock::app
