#include "node/sample/samples.h"

#include <algorithm>
#include <utility>

namespace penstock::node::sample {
namespace {

/// A collection normally makes a few dozen calls of microseconds each. While a device takes this
/// long, the vendor's other devices wait for it.
constexpr base::Duration kSlow = std::chrono::seconds(1);

}  // namespace

std::string ProblemOf(const DeviceSample& sample) {
  if (!sample.problem.empty()) return "its measurements are missing: " + sample.problem;
  if (sample.took >= kSlow)
    return "its driver answers slowly: a collection of its measurements took more than " +
           base::FormatDuration(kSlow);
  return "";
}

const Latest* DeviceSample::Find(device::QuantityId quantity, int link) const {
  const auto found = std::lower_bound(values.begin(), values.end(), std::pair(quantity, link),
                                      [](const Latest& one, const auto& key) {
                                        return std::pair(one.value.quantity, one.value.link) < key;
                                      });
  return found != values.end() && found->value.quantity == quantity && found->value.link == link
             ? &*found
             : nullptr;
}

std::map<std::string, std::string> ProblemsOf(const Snapshot& samples) {
  std::map<std::string, std::string> problems;
  for (const auto& [id, sample] : samples.devices)
    if (std::string problem = ProblemOf(*sample); !problem.empty())
      problems.emplace(id, std::move(problem));
  return problems;
}

const DeviceSample* Snapshot::Find(std::string_view device) const {
  const auto found = devices.find(device);
  return found == devices.end() ? nullptr : found->second.get();
}

}  // namespace penstock::node::sample
