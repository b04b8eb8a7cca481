// Factors are powers of ten and of two, or their inverses. Multiplying with an inverse would not be
// exact, so the code divides by the power instead.
#include "node/metrics/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace penstock::node::metrics {
namespace {

using device::Number;

constexpr base::Duration kMaxLag = std::chrono::minutes(5);
constexpr double kMaxWhole = 9e18;  // fits into an integer of 64 bits

/// The number times a factor.
Number Times(const Number& number, double factor) {
  const auto* whole = std::get_if<std::uint64_t>(&number);
  if (factor < 1) return device::ToDouble(number) / std::round(1 / factor);
  const auto by = static_cast<std::uint64_t>(factor);
  if (whole != nullptr && static_cast<double>(by) == factor &&
      *whole <= std::numeric_limits<std::uint64_t>::max() / by)
    return *whole * by;
  return device::ToDouble(number) * factor;
}

/// Divides and truncates. Empty if the result does not fit into an integer.
std::string Whole(const Number& number, double divisor) {
  const auto* whole = std::get_if<std::uint64_t>(&number);
  if (whole != nullptr && divisor >= 1)
    return std::to_string(*whole / static_cast<std::uint64_t>(divisor));
  const Number divided = Times(number, 1 / divisor);
  if (const auto* exact = std::get_if<std::uint64_t>(&divided)) return std::to_string(*exact);
  const double value = std::get<double>(divided);
  return std::isfinite(value) && std::abs(value) < kMaxWhole
             ? std::to_string(static_cast<std::int64_t>(value))
             : "";
}

}  // namespace

std::span<const sample::Latest> ValuesOf(const sample::DeviceSample& sample,
                                         device::QuantityId quantity) {
  const auto begin = std::partition_point(
      sample.values.begin(), sample.values.end(),
      [quantity](const sample::Latest& one) { return one.value.quantity < quantity; });
  const auto end = std::find_if(begin, sample.values.end(), [quantity](const sample::Latest& one) {
    return one.value.quantity != quantity;
  });
  return {begin, end};
}

bool IsOfNow(const sample::Latest& latest, const sample::DeviceSample& sample,
             const device::Quantity& quantity) {
  return quantity.pace == device::Pace::kOnce || sample.at - latest.at <= kMaxLag;
}

Number InBaseUnit(const Number& number, device::Unit unit) {
  const double factor = device::BaseOf(unit).factor;
  return factor == 1 ? number : Times(number, factor);
}

std::string AsExporter(const Number& number, const device::ExporterField& field, bool new_naming) {
  const double divisor = new_naming ? field.new_divisor : field.divisor;
  if (!(new_naming ? field.new_real : field.real)) return Whole(number, divisor);
  const double value = divisor < 1 ? device::ToDouble(number) * std::round(1 / divisor)
                                   : device::ToDouble(number) / divisor;
  std::array<char, 400> buffer;  // "%f" of the largest number has 316 characters
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                     std::chars_format::fixed, 6);
  return std::isfinite(value) ? std::string(buffer.data(), written.ptr) : "";
}

}  // namespace penstock::node::metrics
