// Every family of metrics that a page can have, by every name that it can have there. Pure: no agent is asked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/dialect.h"

namespace penstock::app {

/// How a vendor's devices tell a family.
struct MetricSource {
  std::string vendor;
  std::string key;     ///< of the quantity: "clock.sm"
  std::string labels;  ///< that tell it from others of the family
  std::string source;  ///< the driver's call
  std::string has;     ///< which devices have it; empty: all
};

struct MetricName {
  std::string name;
  std::string names;  ///< the set of names that it belongs to, as telemetry.names calls it: "accelerator", "dcgm"; "penstock": always shown
  std::string group;  ///< "telemetry"
  std::string type;   ///< "gauge", "counter", "info", "label"; empty: no page has it
  std::string unit;   ///< base unit; empty: none, or one of the exporter's own
  std::vector<std::string> labels;
  std::string meaning;  ///< a sentence
  std::string note;     ///< what else there is to know
  bool by_default = true;
  std::string not_to_be_had;  ///< why no page has it; empty: pages can have it
  std::vector<MetricSource> sources;
  std::vector<std::string> also;  ///< the same value under other names
};

/// Ours in the catalogue's order, then the exporters' in theirs.
std::vector<MetricName> AllMetricNames(const std::vector<const device::Dialect*>& dialects);

/// Null where there is none; letters compare without case.
const MetricName* FindMetricName(const std::vector<MetricName>& all, std::string_view name);

}  // namespace penstock::app
