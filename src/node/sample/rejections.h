// Answers of drivers that are nonsense: what makes them so, and how many there were. Pure.
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

/// Whether a value is larger than the quantity can be, or than the device's memory where it tells of that; or no number at all.
bool IsTooLarge(const device::Quantity& quantity, const device::Number& number, const device::Facts& device);

/// Takes from processes what cannot be: more than 100 percent, more memory than the device has. What they were is said by its key:
/// "process.memory", "process.compute".
std::vector<std::string_view> TakeOutNonsense(device::ProcessSample& process, const device::Facts& device);

/// Counts since it was made.
class Rejections {
 public:
  /// Logged as well, the first time.
  void Count(const std::string& device, std::string_view key, std::string_view why);

  std::vector<Rejected> List() const;

 private:
  std::map<std::tuple<std::string, std::string, std::string>, std::uint64_t> counts_;  // by device, key, why
};

}  // namespace penstock::node::sample
