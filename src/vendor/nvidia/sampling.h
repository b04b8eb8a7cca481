// What a GPU measures. Keeps, for each GPU, what a rate needs (the sample before) and what its driver has said that it never answers.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "device/telemetry.h"
#include "vendor/nvidia/nvml.h"

namespace penstock::vendor::nvidia {

/// Of one session with the driver; ends before it, and lets go of what it has of the library. Not thread-safe.
class Sampling {
 public:
  Sampling(const Functions& nvml, const base::Clock& clock);
  ~Sampling();

  /// See Backend::TakeSample. `address` tells whose sample before it was. What a device was found never to answer is not asked again.
  /// kDataLoss: it is lost; kUnavailable: the driver went away.
  base::Result<device::Sample> Take(abi::Device device, const std::string& address, const device::SampleRequest& request);

  /// Forgets what was found of a device, which may have been reset or switched to another mode.
  void Forget(const std::string& address);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::vendor::nvidia
