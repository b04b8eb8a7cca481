// Samples what a GPU measures. Keeps for each GPU the previous readings that rates need, and which
// quantities its driver never answers.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/nvidia/nvml.h"
#include "backend/nvidia/running_processes.h"
#include "base/core/clock.h"
#include "base/core/result.h"
#include "device/telemetry.h"

namespace penstock::backend::nvidia {

/// A MIG device, or a GPU instance with devices that share it.
struct SampledInstance {
  abi::Device device = nullptr;  ///< the MIG device, or one of those on the instance, which all
                                 ///< have its memory
  abi::Device gpu = nullptr;
  std::optional<unsigned>
      gpu_instance;           ///< the one that is measured; nothing: the device shares one
  bool has_processes = true;  ///< false: they are those of the devices on it
};

/// Sampling within one session with the driver. It must end before the session, and then releases
/// what it holds of the library. Not thread-safe.
class Sampling {
 public:
  Sampling(const Functions& nvml, const base::Clock& clock);
  ~Sampling();

  /// See Backend::TakeSample. `address` identifies the device whose previous sample is used.
  /// Quantities that the device never answers are not requested again. `processes`: which ones a
  /// GPU reports. kDataLoss: the device is lost; kUnavailable: the driver went away.
  base::Result<device::Sample> Take(abi::Device device, const std::string& address,
                                    const device::SampleRequest& request,
                                    ProcessesOf processes = ProcessesOf::kDevice);

  /// The same of an instance. kNotFound: it was removed.
  base::Result<device::Sample> Take(const SampledInstance& instance, const std::string& address,
                                    const device::SampleRequest& request);

  /// Discards what is known of a device, which may have been reset or switched to another mode.
  void Forget(const std::string& address);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::backend::nvidia
