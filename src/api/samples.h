// What a node's devices do now and who uses them, for people who look: what `penstock top` shows and `penstock top -o json` says.
// Documented in docs/reference/broker-protocol.md; stable. The metrics page has everything that is measured; here is what is looked at
// first.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::api {

/// A device and its newest values. What is not known, or not told by this device, is nothing.
struct SampledDevice {
  std::string id, vendor, model;
  int index = -1;
  std::uint64_t memory_bytes = 0;
  std::string health_state;  ///< "healthy", "unhealthy", "unknown", "gone"
  std::string health_reason;
  std::string sharing;                       ///< "none", "time-slicing", "mps"
  int shares = 1;                            ///< slots that are offered
  int free = 0;                              ///< of these
  std::string door;                          ///< at which it is offered; empty: none
  std::string collected;                     ///< RFC 3339, when it answered last; empty: never
  std::string problem;                       ///< why it did not answer the last time; empty: it did
  std::optional<double> utilization;         ///< 0 to 1
  std::optional<double> memory_used;         ///< bytes
  std::optional<double> temperature;         ///< celsius
  std::optional<double> power, power_limit;  ///< watts
  std::optional<double> clock;               ///< hertz
  /// "utilization", "memoryUsed", "temperature", "power" over the last collections, oldest first, in the same units.
  std::map<std::string, std::vector<std::optional<double>>> history;
};

/// A process on a device, or a holder that has none there now.
struct SampledProcess {
  std::string device;    ///< id
  int index = -1;        ///< the device's
  std::int64_t pid = 0;  ///< 0: none now
  std::string user, command;
  std::string kind;   ///< "run", "pod", "outside", "graphics"; empty: nobody knows yet
  std::string lease;  ///< empty for outside and graphics
  std::string pod, namespace_name, container;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<double> compute, memory_copy, encoder, decoder;  ///< 0 to 1
};

struct Samples {
  std::string node;
  std::string time;                    ///< RFC 3339, of the answer
  double interval_seconds = 0;         ///< between two collections, as it is now
  std::vector<SampledDevice> devices;  ///< by vendor and index
  std::vector<SampledProcess> processes;
};

/// One line.
std::string ToJson(const Samples& samples);

/// kDataLoss for what is no such answer.
base::Result<Samples> ParseSamples(std::string_view json);

}  // namespace penstock::api
