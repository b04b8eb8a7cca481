// What `penstock usage` asks and is told: sums of who used what, and who holds what unused. JSON in the contract users see.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::api {

/// By what sums are told apart, in this order. "label:KEY" besides.
const std::vector<std::string>& UsageKeys();

/// kInvalidArgument says which keys there are.
base::Status CheckUsageKeys(const std::vector<std::string>& by);

struct UsageQuery {
  std::vector<std::string> by;      ///< of UsageKeys, or "label:KEY"; empty: one sum for all
  base::WallTime since{}, until{};  ///< what was used in this time
  bool operator==(const UsageQuery&) const = default;
};

/// What some holders used. A share of a device that is cut into four counts as a quarter of it.
struct UsageSum {
  std::uint64_t holders = 0;    ///< leases
  double device_seconds = 0;    ///< devices times the time that they were held
  double busy_seconds = 0;      ///< integral of utilization
  double measured_seconds = 0;  ///< time of holders and devices that the utilization is known of
  double energy_joules = 0;
  double cpu_seconds = 0;
  bool operator==(const UsageSum&) const = default;
};

struct UsageRow {
  std::vector<std::string> by;  ///< a value for each key of the query; empty where a holder has none
  UsageSum sum;
  bool operator==(const UsageRow&) const = default;
};

struct UsageReport {
  UsageQuery query;
  std::vector<UsageRow> rows;  ///< in order of their values
  UsageSum total;
  std::uint64_t damaged = 0;  ///< lines of records that could not be read
  std::string problem;        ///< why records are not written at the moment; empty: they are
  bool operator==(const UsageReport&) const = default;
};

/// Somebody who holds a device and does not use it.
struct IdleHolder {
  std::string lease, namespace_name, pod, container, user, command;
  std::string device;  ///< id
  int index = -1;
  std::string model, slot;
  base::WallTime since{}, last_busy{};
  double idle_seconds = 0;
  std::uint64_t memory_bytes = 0;  ///< of the device, that it has in use all the same
  bool operator==(const IdleHolder&) const = default;
};

std::string ToJson(const UsageReport& report);
std::string ToJson(const std::vector<IdleHolder>& idle);

/// kDataLoss for what is neither. Keys that a newer agent adds are passed over.
base::Result<UsageReport> ParseUsageReport(std::string_view text);
base::Result<std::vector<IdleHolder>> ParseIdleHolders(std::string_view text);

}  // namespace penstock::api
