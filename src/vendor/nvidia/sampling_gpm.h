// GPM: what a GPU's units did between two samples of their counters.
#pragma once

#include <optional>
#include <vector>

#include "base/core/clock.h"
#include "vendor/nvidia/questions.h"

namespace penstock::vendor::nvidia {

struct GpmAnswer {
  std::optional<double> value;
  bool never = false;  ///< this driver does not have this metric of this device
};

/// Of one device. Keeps two of the library's samples, which end with it.
class Gpm {
 public:
  explicit Gpm(const Functions& nvml) : nvml_(nvml) {}
  ~Gpm() { Release(); }
  Gpm(const Gpm&) = delete;
  Gpm& operator=(const Gpm&) = delete;

  /// Whether the device has GPM at all; nothing while that cannot be found out.
  std::optional<bool> Supported(Questions& questions);

  /// One answer for each metric, over the time since a sample before. All without value where there was none or an error broke the window:
  /// a metric without a value is never 0 (DCGM 202, 303).
  std::vector<GpmAnswer> Measure(Questions& questions, const std::vector<unsigned>& metrics, base::TimePoint now);

 private:
  bool Allocate(Questions& questions);
  void Release();
  bool Get(Questions& questions, const unsigned* metrics, std::size_t count, GpmAnswer* answers);

  const Functions& nvml_;
  std::optional<bool> supported_;
  abi::GpmSample before_ = nullptr, now_ = nullptr;
  std::optional<base::TimePoint> since_;  // when `before_` was taken
};

}  // namespace penstock::vendor::nvidia
