// The line that is written of a holder: what it had, from when to when, and what it used. Reads and writes no file.
#pragma once

#include <cstdint>
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

/// One lease on one device, up to `until`. The fields are documented in docs/reference/usage-records.md.
struct Record {
  bool ended = false;  ///< kind "end"; else "checkpoint": it goes on
  std::string node;
  std::string lease, door;
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
  std::optional<double> cpu_seconds;            ///< of the lease: in the record of its first device, so that sums are right
  std::optional<base::Bytes> host_memory_peak;  ///< likewise
  bool operator==(const Record&) const = default;
};

/// What there is to write of a holder now.
Record ToRecord(const HolderUsage& usage, base::WallTime now);

/// One line of JSON, with its line feed.
std::string EncodeRecord(const Record& record);

/// kDataLoss where it is no such line. Keys that a newer agent adds are passed over.
base::Result<Record> DecodeRecord(std::string_view line);

}  // namespace penstock::node::usage
