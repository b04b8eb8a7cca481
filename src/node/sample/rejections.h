// Detects and counts values from drivers that cannot be true. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "device/model.h"
#include "device/telemetry.h"
#include "node/sample/samples.h"

namespace penstock::node::sample {

inline constexpr std::string_view kTooLarge = "too-large", kWentBack = "went-back";

/// Whether a value is not a finite number, or exceeds the quantity's maximum or the device's
/// memory, where that is known.
bool IsTooLarge(const device::Quantity& quantity, const device::Number& number,
                const device::Facts& device);

/// Clears values of a process that are impossible: more than 100 percent, more memory than the
/// device has. Returns the keys of the cleared values: "process.memory", "process.compute".
std::vector<std::string_view> RemoveImplausible(device::ProcessSample& process,
                                                const device::Facts& device);

/// Counts rejected values since construction.
class Rejections {
 public:
  /// Also logs the first one.
  void Count(const std::string& device, std::string_view key, std::string_view why);

  std::vector<Rejected> List() const;

 private:
  // By device, key, why.
  std::map<std::tuple<std::string, std::string, std::string>, std::uint64_t> counts_;
};

}  // namespace penstock::node::sample
