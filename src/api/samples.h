// Samples: what a node's devices do now and which processes use them, as `penstock top` shows and
// `penstock top -o json` prints. Documented in docs/reference/broker-protocol.md; stable. The
// metrics page has every measured value; this report has the ones that users look at first.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::api {

/// A device and its newest values. A value is absent if it is unknown or if the device does not
/// report it.
struct SampledDevice {
  std::string id, vendor, model;
  int index = -1;
  std::string number;   ///< of a part: "0:1"
  std::string profile;  ///< of a part: "1g.5gb"
  std::uint64_t memory_bytes = 0;
  std::string health_state;  ///< "healthy", "unhealthy", "unknown", "gone"
  std::string health_reason;
  std::string sharing;                ///< "none", "time-slicing", "mps"
  int shares = 1;                     ///< slots that are offered
  int free = 0;                       ///< slots that are free
  std::string allocator;              ///< the allocator that offers it; empty: none
  std::string collected;              ///< RFC 3339, its last answer; empty: never
  std::string problem;                ///< why the last collection failed; empty: it succeeded
  std::optional<double> utilization;  ///< 0 to 1
  std::optional<double> memory_used;  ///< bytes
  std::optional<double> temperature;  ///< celsius
  std::optional<double> power, power_limit;  ///< watts
  std::optional<double> clock;               ///< hertz
  /// "utilization", "memoryUsed", "temperature", "power" over the last collections, oldest first,
  /// in the units above.
  std::map<std::string, std::vector<std::optional<double>>> history;
};

/// A process on a device, or a holder that has no process there now.
struct SampledProcess {
  std::string device;    ///< id
  int index = -1;        ///< the device's
  std::string number;    ///< the device's, if that is a part
  std::int64_t pid = 0;  ///< 0: no process now
  std::string user, command;
  std::string kind;   ///< "run", "pod", "outside", "graphics"; empty: not known yet
  std::string lease;  ///< empty for outside and graphics processes
  std::string pod, namespace_name, container;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<double> compute, memory_copy, encoder, decoder;  ///< 0 to 1
};

struct Samples {
  std::string node;
  std::string time;                    ///< time of the answer, RFC 3339
  double interval_seconds = 0;         ///< between two collections, currently
  std::vector<SampledDevice> devices;  ///< ordered by vendor and index
  std::vector<SampledProcess> processes;
};

/// Returns one line.
std::string ToJson(const Samples& samples);

/// Returns kDataLoss if the text is not such an answer.
base::Result<Samples> ParseSamples(std::string_view json);

}  // namespace penstock::api
