// The catalogue of our own families of metrics: the one place that says how each is called and what it means. The page, `penstock metrics`
// and docs/reference/metrics.md are made from it. Names of vendors' own exporters are their dialects' (device/exporter.h).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::api {

enum class MetricType {
  kGauge,
  kCounter,
  kInfo,  ///< facts as labels, to be joined; the value is always 1. Only OpenMetrics knows this type: elsewhere it is a gauge
};
std::string_view ToString(MetricType type);  ///< "gauge", "counter", "info"

/// What a family is about. The catalogue is in this order.
enum class MetricGroup {
  kDevices,     ///< facts and state
  kTelemetry,   ///< what is measured: device::Quantity::family
  kHealth,      ///< what was heard, and what became of it
  kSharing,     ///< shares and their servers
  kHolders,     ///< who holds what and uses how much
  kProcesses,   ///< the same, by process
  kCollection,  ///< how the collecting of all this does
  kAgent,       ///< Penstock itself
};
inline constexpr MetricGroup kLastMetricGroup = MetricGroup::kAgent;
std::string_view ToString(MetricGroup group);  ///< one word: "devices"

/// What a family's series are of, which says the labels that all such series begin with.
enum class MetricOf {
  kNothing,
  kDeviceAlone,  ///< device: counts that outlive what else is known of it
  kDevice,       ///< device index model
  kHolder,       ///< device index lease kind namespace pod container user
  kLease,        ///< the same without the device
  kProcess,      ///< device index pid user command lease namespace pod container
};

/// Names and labels are stable: a new meaning gets a new name.
struct MetricFamily {
  std::string_view name;
  MetricType type = MetricType::kGauge;
  MetricGroup group = MetricGroup::kDevices;
  std::string_view unit;  ///< base unit, with which the name ends (before "_total"): "bytes"; empty: none
  MetricOf of = MetricOf::kNothing;
  std::string_view labels;  ///< those that follow, in their order, a blank between two; "label_*" stands for any number of them
  std::string_view help;    ///< one sentence, as on the page
  std::string_view note;    ///< what else there is to know, for people, without a period; Markdown; may be empty
  bool on_request = false;  ///< many series that few look at: shown only where `telemetry.include` matches
};

/// Names of all labels of its series, in their order.
std::vector<std::string> LabelsOf(const MetricFamily& family);

/// All of them, by group and, within one, as the page has them.
std::span<const MetricFamily> MetricFamilies();

/// Null where there is none of this name.
const MetricFamily* FindMetricFamily(std::string_view name);

/// The families of a group as a table in Markdown: what docs/reference/metrics.md has between "<!-- families: GROUP -->" and "<!-- end
/// -->".
std::string MetricsTable(MetricGroup group);

}  // namespace penstock::api
