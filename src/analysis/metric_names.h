// Lists every metric family that a metrics page can have, under every name that it can have there.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/dialect.h"

namespace penstock::analysis {

/// How the devices of one vendor provide a family.
struct MetricSource {
  std::string vendor;
  std::string key;     ///< the quantity, "clock.sm"
  std::string labels;  ///< labels that distinguish it from other quantities of the family
  std::string source;  ///< the driver's call
  std::string has;     ///< the devices that provide it; empty: all
};

struct MetricName {
  std::string name;
  std::string names;  ///< the set of names that it belongs to, as in telemetry.names:
                      ///< "accelerator", "dcgm"; "penstock": always shown
  std::string group;  ///< "telemetry"
  std::string type;   ///< "gauge", "counter", "info", "label"; empty: on no page
  std::string unit;   ///< base unit; empty: none, or a unit of the exporter
  std::vector<std::string> labels;
  std::string meaning;  ///< one sentence
  std::string note;     ///< further remarks
  bool by_default = true;
  std::string unavailable;  ///< why no page has it; empty: pages can have it
  std::vector<MetricSource> sources;
  std::vector<std::string> also;  ///< other names of the same value
};

/// Returns Penstock's metrics in the catalogue's order, then the exporters' in theirs.
std::vector<MetricName> AllMetricNames(const std::vector<const device::Dialect*>& dialects);

/// Returns null where there is no such name. Compares case-insensitively.
const MetricName* FindMetricName(const std::vector<MetricName>& all, std::string_view name);

}  // namespace penstock::analysis
