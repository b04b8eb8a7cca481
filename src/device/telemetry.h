// What devices measure: a vendor's quantities, and samples of them. Vendor-neutral; the dialects
// hold the tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/core/clock.h"
#include "base/core/quantity.h"

namespace penstock::device {

/// The unit in which a driver reports a value. The shown value is the driver's times a factor, so
/// that no precision is lost on the way.
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

/// A unit's base unit as metrics name it ("hertz", "ratio", "bytes_per_second"; empty for kNone),
/// and how many base units one unit is.
struct BaseUnit {
  std::string_view name;
  double factor = 1;
};
BaseUnit BaseOf(Unit unit);

/// How fast a quantity changes, which decides how often it is sampled.
enum class Pace {
  kFast,  ///< at every collection
  kSlow,  ///< about every 30 seconds: counters of rare events, limits
  kOnce,  ///< constant while the driver runs: a clock's maximum
};

/// Something that a vendor's devices can measure. Its index in Dialect::Quantities() is its id, the
/// same in agent and worker, which come from one build.
struct Quantity {
  std::string_view key;  ///< "clock.sm": unique within its vendor, stable
  Unit unit = Unit::kNone;
  bool counter = false;  ///< only increases, until the device or its driver is reset
  Pace pace = Pace::kFast;
  bool per_link = false;  ///< has a value for each of a device's links, or of other numbered parts
                          ///< of it, besides or instead of one for the device
  double most = 0;  ///< the largest possible value, in `unit`; the driver's answer is invalid above
                    ///< it. 0: any
  /// Its family on the vendor-neutral metrics page (api/metrics.h) and the labels, as written
  /// between the braces, that distinguish it within that family: "accelerator_clock_hertz",
  /// R"(clock="sm")". Empty: not on that page.
  std::string_view family, labels;
  std::string_view source;  ///< for people: "nvmlDeviceGetClockInfo(NVML_CLOCK_SM)"
  std::string_view has;  ///< for people: the devices that have it, "Hopper and newer"; empty: all
};
using QuantityId = std::uint16_t;

/// Integers stay exact beyond 2^53.
using Number = std::variant<std::uint64_t, double>;
double ToDouble(const Number& number);

struct SampleValue {
  QuantityId quantity = 0;
  int link = -1;  ///< number of the link that was measured; -1: the device
  Number number;
  bool operator==(const SampleValue&) const = default;
};

/// A process's use of a device as the driver reports it. A value that it does not report is
/// nothing.
struct ProcessSample {
  std::int32_t pid = 0;
  std::optional<base::Bytes> memory;
  std::optional<double> compute, memory_copy, encoder,
      decoder;  ///< percent of the time since the last sample
  bool operator==(const ProcessSample&) const = default;
};

/// What to measure on a device.
struct SampleRequest {
  std::vector<QuantityId> quantities;
  bool processes = false;
  std::vector<SampleRequest> parts;  ///< of the device, which a driver may measure with it
  std::string address;               ///< within `parts`; else empty
  bool operator==(const SampleRequest&) const = default;
};

/// What was measured. Quantities without a value now (the first of two readings, a clock that
/// sleeps) are in neither list.
struct Sample {
  std::vector<SampleValue> values;
  std::vector<ProcessSample> processes;
  std::vector<QuantityId>
      unsupported;            ///< those requested that this device with this driver never has
  std::vector<Sample> parts;  ///< those requested that were measured with it
  std::string address;        ///< within `parts`; else empty
  bool operator==(const Sample&) const = default;
};

}  // namespace penstock::device
