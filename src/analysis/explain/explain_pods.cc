// Sums up the resources that pods request and lists the pods that wait for them.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "analysis/explain/explain.h"
#include "analysis/objects.h"
#include "base/core/strings.h"

namespace penstock::analysis {

namespace {

using Amounts = std::map<std::string, std::int64_t>;

/// The limits of one container. For extended resources they equal its requests.
Amounts LimitsOf(const Json& container) {
  Amounts amounts;
  for (const auto& [name, quantity] : TextsAt(container, {"resources", "limits"}))
    if (const auto amount = base::ParseInt(quantity)) amounts[name] = *amount;
  return amounts;
}

/// The requests of a pod as the scheduler counts them: the sum over the containers, or the largest
/// init container where that is more.
Amounts RequestsOf(const Json& pod) {
  Amounts sum, largest;
  const Json& containers = At(pod, {"spec", "containers"});
  if (containers.is_array())
    for (const Json& container : containers)
      for (const auto& [name, amount] : LimitsOf(container)) sum[name] += amount;
  const Json& first = At(pod, {"spec", "initContainers"});
  if (first.is_array())
    for (const Json& container : first)
      for (const auto& [name, amount] : LimitsOf(container))
        largest[name] = std::max(largest[name], amount);
  for (const auto& [name, amount] : largest) sum[name] = std::max(sum[name], amount);
  return sum;
}

/// The first sentence of the scheduler's reason for not placing the pod.
std::string WhyWaiting(const Json& pod) {
  const Json& conditions = At(pod, {"status", "conditions"});
  if (!conditions.is_array()) return "";
  for (const Json& condition : conditions)
    if (TextAt(condition, {"type"}) == "PodScheduled" && TextAt(condition, {"status"}) == "False") {
      const std::string message = TextAt(condition, {"message"});
      return message.substr(0, message.find(". "));
    }
  return "";
}

}  // namespace

PodsView ReadPods(const std::vector<Json>& pods, const std::string& node,
                  const std::vector<std::string>& resources) {
  PodsView view;
  for (const Json& pod : pods) {
    const std::string phase = TextAt(pod, {"status", "phase"}),
                      on = TextAt(pod, {"spec", "nodeName"});
    if (phase == "Succeeded" || phase == "Failed") continue;
    for (const auto& [name, amount] : RequestsOf(pod)) {
      if (amount <= 0 || std::ranges::find(resources, name) == resources.end()) continue;
      if (on == node) view.requested[name] += amount;
      if (on.empty())
        view.waiting.push_back({TextAt(pod, {"metadata", "name"}),
                                TextAt(pod, {"metadata", "namespace"}), name, WhyWaiting(pod),
                                amount});
    }
  }
  return view;
}

}  // namespace penstock::analysis
