// GPM: the activity of a GPU's units between two samples of their counters.
#pragma once

#include <optional>
#include <vector>

#include "backend/nvidia/nvml_device.h"
#include "base/core/clock.h"

namespace penstock::backend::nvidia {

struct GpmAnswer {
  std::optional<double> value;
  bool never = false;  ///< this driver does not have this metric for this device
};

/// GPM of one device, or of one GPU instance. Keeps two samples of the library and releases them in
/// the destructor.
class Gpm {
 public:
  explicit Gpm(const Functions& nvml) : nvml_(nvml) {}
  ~Gpm() { Release(); }
  Gpm(const Gpm&) = delete;
  Gpm& operator=(const Gpm&) = delete;

  /// From now on, measures this GPU instance of `gpu`. The calls count as those of the device whose
  /// calls are noted.
  void SetInstance(abi::Device gpu, unsigned gpu_instance) { instance_ = {gpu, gpu_instance}; }

  /// Whether the device has GPM at all; nothing while that cannot be determined.
  std::optional<bool> Supported(NvmlDevice& nvml_device);

  /// One answer per metric, over the time since the previous sample. No answer has a value if there
  /// was no previous sample or an error broke the window: a missing value is never 0 (DCGM 202,
  /// 303).
  std::vector<GpmAnswer> Measure(NvmlDevice& nvml_device, const std::vector<unsigned>& metrics,
                                 base::TimePoint now);

 private:
  bool Allocate(NvmlDevice& nvml_device);
  bool TakeSample(NvmlDevice& nvml_device);
  void Release();
  bool Get(NvmlDevice& nvml_device, const unsigned* metrics, std::size_t count, GpmAnswer* answers);

  struct Instance {
    abi::Device gpu = nullptr;
    unsigned id = 0;
  };

  const Functions& nvml_;
  std::optional<Instance> instance_;
  std::optional<bool> supported_;
  abi::GpmSample before_ = nullptr, now_ = nullptr;
  std::optional<base::TimePoint> since_;  // when `before_` was taken
};

}  // namespace penstock::backend::nvidia
