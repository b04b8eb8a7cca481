// Derives the node's conditions from the report.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/report.h"
#include "base/core/clock.h"

namespace penstock::view {

/// Takes a report whose other parts are complete; `since` is left empty. Pure.
std::vector<api::ConditionReport> ConditionsOf(const api::Report& report);

/// The layout and why it is not applied, as in the condition; at most 1000 bytes, printable.
std::string DescribeLayout(const api::LayoutReport& layout);

/// Says why a configuration was refused and where it came from, unless the problem already names
/// the file or ConfigMap.
std::string RefusalOf(const api::ConfigurationReport& configuration);

/// Remembers since when each condition has had its status. Used on one thread.
class ConditionTimes {
 public:
  /// Fills in `since`: now, where the status differs from last time.
  void Stamp(std::vector<api::ConditionReport>& conditions, base::WallTime now);

 private:
  std::map<std::string, std::pair<bool, std::string>> known_;
};

}  // namespace penstock::view
