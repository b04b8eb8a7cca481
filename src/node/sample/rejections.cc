#include "node/sample/rejections.h"

#include <cmath>
#include <optional>

#include "base/log.h"

namespace penstock::node::sample {
namespace {

constexpr double kMaxPercent = 100;

/// "accelerator_memory_used_bytes", "..._free_bytes", "..._reserved_bytes": parts of the device's
/// memory.
bool IsOfMemory(const device::Quantity& quantity) {
  return quantity.family.starts_with("accelerator_memory_") &&
         quantity.family.ends_with("_bytes") && !quantity.counter;
}

}  // namespace

bool IsTooLarge(const device::Quantity& quantity, const device::Number& number,
                const device::Facts& device) {
  const double value = device::ToDouble(number);
  if (!std::isfinite(value)) return true;
  if (quantity.most > 0 && value > quantity.most) return true;
  return IsOfMemory(quantity) && device.memory.count > 0 &&
         value * device::BaseOf(quantity.unit).factor > static_cast<double>(device.memory.count);
}

std::vector<std::string_view> RemoveImplausible(device::ProcessSample& process,
                                                const device::Facts& device) {
  std::vector<std::string_view> nonsense;
  if (process.memory && device.memory.count > 0 && *process.memory > device.memory) {
    process.memory.reset();
    nonsense.push_back("process.memory");
  }
  const auto check = [&nonsense](std::optional<double>& share, std::string_view key) {
    if (!share || (*share >= 0 && *share <= kMaxPercent)) return;
    share.reset();
    nonsense.push_back(key);
  };
  check(process.compute, "process.compute");
  check(process.memory_copy, "process.memory-copy");
  check(process.encoder, "process.encoder");
  check(process.decoder, "process.decoder");
  return nonsense;
}

void Rejections::Count(const std::string& device, std::string_view key, std::string_view why) {
  std::uint64_t& count = counts_[{device, std::string(key), std::string(why)}];
  if (++count == 1)
    base::Log(base::kWarn, "implausible value from the driver discarded",
              {{"device", device}, {"quantity", key}, {"why", why}});
}

std::vector<Rejected> Rejections::List() const {
  std::vector<Rejected> list;
  list.reserve(counts_.size());
  for (const auto& [key, count] : counts_)
    list.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), count});
  return list;
}

}  // namespace penstock::node::sample
