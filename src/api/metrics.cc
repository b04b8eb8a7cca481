// Looks up families in the metrics catalogue and renders them.
#include "api/metrics.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/core/strings.h"

namespace penstock::api {
namespace {

std::vector<const MetricFamily*> ByName() {
  std::vector<const MetricFamily*> sorted;
  for (const MetricFamily& family : MetricFamilies()) sorted.push_back(&family);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* one, const auto* other) { return one->name < other->name; });
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

/// Makes the note a sentence of its own in a table cell.
std::string Sentence(std::string_view note) {
  if (note.empty()) return "";
  std::string text = " " + std::string(note) + ".";
  text[1] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[1])));
  return text;
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
  const auto found =
      std::lower_bound(sorted.begin(), sorted.end(), name,
                       [](const auto* one, std::string_view wanted) { return one->name < wanted; });
  return found != sorted.end() && (*found)->name == name ? *found : nullptr;
}

std::string MetricsTable(MetricGroup group) {
  std::string table = "| name | type | unit | labels | meaning |\n|---|---|---|---|---|\n";
  for (const MetricFamily& family : MetricFamilies()) {
    if (family.group != group) continue;
    std::string labels;
    for (const std::string& label : LabelsOf(family))
      labels += (labels.empty() ? "`" : ", `") + label + "`";
    table.append("| `")
        .append(family.name)
        .append("` | ")
        .append(ToString(family.type))
        .append(" | ")
        .append(family.unit);
    table.append(" | ")
        .append(labels)
        .append(" | ")
        .append(family.help)
        .append(Sentence(family.note));
    table.append(family.on_request ? " Only where `telemetry.include` matches it. |\n" : " |\n");
  }
  return table;
}

}  // namespace penstock::api
