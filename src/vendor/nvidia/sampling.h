// What a GPU measures. Keeps, for each GPU, what a rate needs: the sample before.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/core/result.h"
#include "device/telemetry.h"
#include "vendor/nvidia/nvml.h"

namespace penstock::vendor::nvidia {

/// Of one session with the driver; ends before it. Not thread-safe.
class Sampling {
 public:
  explicit Sampling(const Nvml& nvml);
  ~Sampling();

  /// See Backend::TakeSample. `address` tells whose sample before it was.
  base::Result<device::Sample> Take(abi::Device device, const std::string& address, const device::SampleRequest& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::vendor::nvidia
