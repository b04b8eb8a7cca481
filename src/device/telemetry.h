// What devices measure: a vendor's quantities, and samples of them. No vendor's name is in here; the tables are its dialect's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/core/clock.h"
#include "base/core/quantity.h"

namespace penstock::device {

/// In what a driver tells a value. What is shown is made from it by a factor, so that nothing is lost on the way.
enum class Unit {
  kNone,  ///< a count, a code, a set of bits
  kPercent,
  kRatio,
  kMegahertz,
  kCelsius,
  kMilliwatts,
  kMillijoules,
  kBytes,
  kKibibytes,
  kMebibytes,
  kBytesPerSecond,
  kNanoseconds,
};

/// A unit's base unit as metrics name it ("hertz", "ratio", "bytes_per_second"; empty for kNone), and how many of it one is.
struct BaseUnit {
  std::string_view name;
  double factor = 1;
};
BaseUnit BaseOf(Unit unit);

/// How soon a quantity changes, which says how often it is asked for.
enum class Pace {
  kFast,  ///< at every collection
  kSlow,  ///< about every half minute: counters of rare events, limits
  kOnce,  ///< stays as it is while the driver runs: the most that a clock can be
};

/// Something that a vendor's devices can be asked for. Its place in Dialect::Quantities() is its id, the same in agent and worker, which
/// are of one build.
struct Quantity {
  std::string_view key;  ///< "clock.sm": unique with its vendor, stable
  Unit unit = Unit::kNone;
  bool counter = false;  ///< only grows, until the device or its driver is reset
  Pace pace = Pace::kFast;
  bool per_link = false;  ///< has a value for each of a device's links, besides or instead of one for all
  double most = 0;        ///< the largest value that can be, in `unit`; beyond it the driver's answer is nonsense. 0: any
  /// Its family on the vendor-neutral page (api/metrics.h) and the labels there that tell it from the others of it, as they are written
  /// between the braces: "accelerator_clock_hertz", R"(clock="sm")". Empty: it is not there.
  std::string_view family, labels;
  std::string_view source;  ///< for people: "nvmlDeviceGetClockInfo(NVML_CLOCK_SM)"
  std::string_view has;     ///< likewise, which devices have it: "Hopper and newer"; empty: all
};
using QuantityId = std::uint16_t;

/// Whole numbers stay exact beyond 2^53.
using Number = std::variant<std::uint64_t, double>;
double ToDouble(const Number& number);

struct Value {
  QuantityId quantity = 0;
  int link = -1;  ///< number of the link that it is of; -1: of the device
  Number number;
  bool operator==(const Value&) const = default;
};

/// What a driver says of a process's use of a device. What it does not say is nothing.
struct ProcessSample {
  std::int32_t pid = 0;
  std::optional<base::Bytes> memory;
  std::optional<double> compute, memory_copy, encoder, decoder;  ///< percent of the time since the last sample
  bool operator==(const ProcessSample&) const = default;
};

/// What is asked of a device.
struct SampleRequest {
  std::vector<QuantityId> quantities;
  bool processes = false;
  bool operator==(const SampleRequest&) const = default;
};

/// What was answered. Quantities without a value now (a first look at what needs two, a clock that sleeps) are in neither list.
struct Sample {
  std::vector<Value> values;
  std::vector<ProcessSample> processes;
  std::vector<QuantityId> unsupported;  ///< of those asked for: this device with this driver never has them
  bool operator==(const Sample&) const = default;
};

}  // namespace penstock::device
