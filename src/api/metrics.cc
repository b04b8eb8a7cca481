// Looks up families in the metrics catalogue.
#include "api/metrics.h"

#include <algorithm>
#include <array>

#include "base/core/strings.h"

namespace penstock::api {
namespace {

std::vector<const MetricFamily*> ByName() {
  std::vector<const MetricFamily*> sorted;
  for (const MetricFamily& family : MetricFamilies()) sorted.push_back(&family);
  std::ranges::sort(sorted, {}, &MetricFamily::name);
  return sorted;
}

std::string_view FirstLabels(MetricOf of) {
  constexpr std::array<std::string_view, 6> kLabels = {
      "",
      "device",
      "device index model",
      "device index lease kind namespace pod container user",
      "lease kind namespace pod container user",
      "device index pid user command lease namespace pod container"};
  return kLabels[static_cast<std::size_t>(of)];
}

}  // namespace

std::string_view ToString(MetricType type) {
  constexpr std::array<std::string_view, 3> kNames = {"gauge", "counter", "info"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string_view ToString(MetricGroup group) {
  constexpr std::array<std::string_view, 8> kNames = {
      "devices", "telemetry", "health", "sharing", "holders", "processes", "collection", "agent"};
  return kNames[static_cast<std::size_t>(group)];
}

std::vector<std::string> LabelsOf(const MetricFamily& family) {
  std::vector<std::string> labels;
  for (const std::string_view part : {FirstLabels(family.of), family.labels})
    for (const std::string& label : base::Split(part, ' '))
      if (!label.empty()) labels.push_back(label);
  return labels;
}

const MetricFamily* FindMetricFamily(std::string_view name) {
  static const std::vector<const MetricFamily*> sorted = ByName();
  const auto found = std::ranges::lower_bound(sorted, name, {}, &MetricFamily::name);
  return found != sorted.end() && (*found)->name == name ? *found : nullptr;
}

}  // namespace penstock::api
