// The catalogue of Penstock's own metric families: the single source of their names and meanings,
// from which the metrics page, `penstock metrics` and docs/reference/metrics.md are generated. The
// names that vendors' exporters use are in their dialects (device/exporter.h).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::api {

enum class MetricType {
  kGauge,
  kCounter,
  kInfo,  ///< facts as labels, for joins; the value is always 1. Only OpenMetrics has this type; in
          ///< other formats it is a gauge
};
std::string_view ToString(MetricType type);  ///< "gauge", "counter", "info"

/// The subject of a family. The catalogue is in this order.
enum class MetricGroup {
  kDevices,     ///< facts and state
  kTelemetry,   ///< measured values: device::Quantity::family
  kHealth,      ///< health evidence, and its effects
  kSharing,     ///< shares and their servers
  kHolders,     ///< which holders have devices, and how much they use
  kProcesses,   ///< the same per process
  kCollection,  ///< how telemetry collection performs
  kAgent,       ///< Penstock itself
};
std::string_view ToString(MetricGroup group);  ///< one word: "devices"

/// What one series of a family describes. It determines the first labels of every such series.
enum class MetricOf {
  kNothing,
  kDeviceAlone,  ///< device: for counts that outlive the other facts about a device
  kDevice,       ///< device index model
  kHolder,       ///< device index lease kind namespace pod container user
  kLease,        ///< kHolder's labels without the device
  kProcess,      ///< device index pid user command lease namespace pod container
};

// Rows are written in the order of the members.
/// Names and labels are stable: a new meaning gets a new name.
struct MetricFamily {  // NOLINT(clang-analyzer-optin.performance.Padding)
  std::string_view name;
  MetricType type = MetricType::kGauge;
  MetricGroup group = MetricGroup::kDevices;
  std::string_view
      unit;  ///< base unit, with which the name ends (before "_total"): "bytes"; empty: none
  MetricOf of = MetricOf::kNothing;
  std::string_view labels;  ///< the further labels, in their order, separated by blanks; "label_*"
                            ///< stands for any number of labels
  std::string_view help;    ///< one sentence, as on the metrics page
  std::string_view note;    ///< additional explanation for readers, in Markdown, without a final
                            ///< period; may be empty
  bool on_request =
      false;  ///< a large family that few users read: shown only where `telemetry.include` matches
};

/// Returns the names of all labels of the family's series, in their order.
std::vector<std::string> LabelsOf(const MetricFamily& family);

/// Returns all families, ordered by group, and within a group in the order of the metrics page.
std::span<const MetricFamily> MetricFamilies();

/// Returns null if no family has this name.
const MetricFamily* FindMetricFamily(std::string_view name);

}  // namespace penstock::api
