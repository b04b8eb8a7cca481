// Finds the pods, and objects that create pods, that use the vendors' programs: by resources that
// they request, nodes that they select, or devices that they take without a request.
#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "analysis/migrate/nvidia/migrate.h"

namespace penstock::analysis {

namespace {

constexpr char kVisibleDevices[] = "NVIDIA_VISIBLE_DEVICES";

bool IsOfAVendor(const std::string& name) {
  return name.starts_with(kNvidiaDomain) || name.starts_with(kAmdDomain) ||
         name.starts_with(kOldAmdDomain);
}

const Json& PodOf(const Json& object, const std::string& kind) {
  if (kind == "Pod") return At(object, {"spec"});
  if (kind == "CronJob") return At(object, {"spec", "jobTemplate", "spec", "template", "spec"});
  return At(object, {"spec", "template", "spec"});
}

void AddContainer(const Json& container, GpuConsumer& consumer) {
  if (const Json& limits = At(container, {"resources", "limits"}); limits.is_object())
    for (const auto& [name, amount] : limits.items())
      if (IsOfAVendor(name) && amount != "0" && amount != 0) consumer.resources.insert(name);
  const Json& environment = At(container, {"env"});
  if (!environment.is_array()) return;
  for (const Json& one : environment)
    if (TextAt(one, {"name"}) == kVisibleDevices) consumer.visible_devices = TextAt(one, {"value"});
}

}  // namespace

bool IsConsumerKind(const std::string& kind) {
  static constexpr std::array<std::string_view, 7> kKinds = {
      "Pod", "Deployment", "StatefulSet", "ReplicaSet", "Job", "CronJob", "DaemonSet"};
  return std::ranges::find(kKinds, kind) != kKinds.end();
}

void TakeConsumer(const Json& object, Found& found) {
  const std::string kind = TextAt(object, {"kind"}),
                    space = TextAt(object, {"metadata", "namespace"});
  const Json& pod = PodOf(object, kind);
  GpuConsumer consumer{.name = kind + " " + (space.empty() ? "" : space + "/") +
                               TextAt(object, {"metadata", "name"}),
                       .node = TextAt(pod, {"nodeName"}),
                       .runtime_class = TextAt(pod, {"runtimeClassName"})};
  for (const char* list : {"initContainers", "containers"})
    if (const Json& containers = At(pod, {list}); containers.is_array())
      for (const Json& container : containers) AddContainer(container, consumer);
  for (const auto& [key, value] : TextsAt(pod, {"nodeSelector"}))
    if (IsOfAVendor(key)) consumer.selects[key] = value;
  const bool uses = !consumer.resources.empty() || !consumer.selects.empty() ||
                    !consumer.visible_devices.empty() ||
                    consumer.runtime_class.starts_with("nvidia");
  if (uses) found.consumers.push_back(std::move(consumer));
}

}  // namespace penstock::analysis
