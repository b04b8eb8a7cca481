// Defines the usage record of a holder and its line of JSON. Does no I/O.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/clock.h"
#include "base/core/document.h"
#include "base/core/quantity.h"
#include "base/core/result.h"
#include "node/usage/usage.h"

namespace penstock::node::usage {

/// One lease on one device, up to `until`. The fields are documented in
/// docs/reference/usage-records.md.
struct Record {
  bool ended = false;  ///< kind "end"; else "checkpoint": the lease continues
  std::string node;
  std::string lease, allocator;
  std::string namespace_name, pod, pod_uid, container;
  std::string user, command;
  std::map<std::string, std::string> labels;
  std::string device, model, slot;
  int slots = 1;
  std::string sharing = "none";
  int shares = 1;
  base::WallTime since{}, until{};
  double seconds = 0, measured_seconds = 0, busy_seconds = 0, energy_joules = 0;
  base::Bytes memory_peak;
  /// Of the lease: only in the record of its first device, so that sums are right.
  std::optional<double> cpu_seconds;
  std::optional<base::Bytes> host_memory_peak;  ///< only in the record of the first device
  bool operator==(const Record&) const = default;
};

/// The record of a holder at this time.
Record ToRecord(const HolderUsage& usage, base::WallTime now);

/// One line of JSON, with its line feed.
std::string EncodeRecord(const Record& record);

/// Returns kDataLoss if the line is no record. Ignores keys that a newer agent may have added.
base::Result<Record> DecodeRecord(std::string_view line);

}  // namespace penstock::node::usage
