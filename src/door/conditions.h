// The node in five questions, as conditions: all follow from the report. Collects nothing.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/report.h"
#include "base/core/clock.h"

namespace penstock::door {

/// Of a report whose other parts are there; `since` is empty. Pure.
std::vector<api::ConditionReport> ConditionsOf(const api::Report& report);

/// Why a configuration is not in force, and where it came from; what is wrong in a file or a ConfigMap may name it already.
std::string RefusalOf(const api::ConfigurationReport& configuration);

/// Remembers since when each condition has its status. On one thread.
class ConditionTimes {
 public:
  /// Fills `since`: now, where the status was not the same last time.
  void Stamp(std::vector<api::ConditionReport>& conditions, base::WallTime now);

 private:
  std::map<std::string, std::pair<bool, std::string>> known_;
};

}  // namespace penstock::door
