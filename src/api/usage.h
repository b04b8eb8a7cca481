// The query and the answer of `penstock usage`: sums of usage by holder, and holders that leave
// their devices idle. The JSON is part of the contract with users.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::api {

/// Returns the keys that sums can be grouped by, in this order. "label:KEY" is valid, too.
const std::vector<std::string>& UsageKeys();

/// Returns kInvalidArgument with the valid keys.
base::Status CheckUsageKeys(const std::vector<std::string>& by);

struct UsageQuery {
  std::vector<std::string> by;      ///< keys of UsageKeys(), or "label:KEY"; empty: one sum for all
  base::WallTime since{}, until{};  ///< counts usage within this time
  bool operator==(const UsageQuery&) const = default;
};

/// The usage of some holders. A share of a device that is divided into four counts as a quarter of
/// it.
struct UsageSum {
  std::uint64_t holders = 0;    ///< leases
  double device_seconds = 0;    ///< devices times the time for which they were held
  double busy_seconds = 0;      ///< integral of utilization
  double measured_seconds = 0;  ///< device time for which the utilization is known
  double energy_joules = 0;
  double cpu_seconds = 0;
  bool operator==(const UsageSum&) const = default;
};

struct UsageRow {
  std::vector<std::string> by;  ///< a value for each key of the query; empty if a holder has none
  UsageSum sum;
  bool operator==(const UsageRow&) const = default;
};

struct UsageReport {
  UsageQuery query;
  std::vector<UsageRow> rows;  ///< ordered by their values
  UsageSum total;
  std::uint64_t damaged = 0;  ///< lines of usage records that could not be read
  std::string problem;        ///< why records are currently not written; empty: they are
  bool operator==(const UsageReport&) const = default;
};

/// A holder that does not use its device.
struct IdleHolder {
  std::string lease, namespace_name, pod, container, user, command;
  std::string device;  ///< id
  int index = -1;
  std::string number;  ///< of a part: "0:1"
  std::string model, slot;
  base::WallTime since{}, last_busy{};
  double idle_seconds = 0;
  std::uint64_t memory_bytes = 0;  ///< memory of the device that it occupies nevertheless
  bool operator==(const IdleHolder&) const = default;
};

std::string ToJson(const UsageReport& report);
std::string ToJson(const std::vector<IdleHolder>& idle);

/// Returns kDataLoss if the text is neither. Ignores keys that a newer agent adds.
base::Result<UsageReport> ParseUsageReport(std::string_view text);
base::Result<std::vector<IdleHolder>> ParseIdleHolders(std::string_view text);

}  // namespace penstock::api
