#include "device/model.h"

#include <array>
#include <cstdio>
#include <limits>
#include <type_traits>

#include "base/core/strings.h"
#include "device/dialect.h"

namespace penstock::device {

std::string ToString(const PciAddress& address) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%04x:%02x:%02x.%x", address.domain, address.bus,
                address.device, address.function);
  return buffer.data();
}

std::optional<PciAddress> ParsePciAddress(std::string_view text) {
  const auto parts = base::Split(text, ':');
  if (parts.size() != 3) return std::nullopt;
  const auto tail = base::Split(parts[2], '.');
  if (tail.size() > 2) return std::nullopt;
  const auto domain = base::ParseUint(parts[0], 16), bus = base::ParseUint(parts[1], 16),
             slot = base::ParseUint(tail[0], 16);
  const auto function = tail.size() == 2 ? base::ParseUint(tail[1], 16) : 0;
  if (!domain || !bus || !slot || !function || *domain > 0xffffffff || *bus > 0xff ||
      *slot > 0x1f || *function > 7)
    return std::nullopt;
  return PciAddress{static_cast<std::uint32_t>(*domain), static_cast<std::uint32_t>(*bus),
                    static_cast<std::uint32_t>(*slot), static_cast<std::uint32_t>(*function)};
}

bool ModelMatches(std::string_view glob, std::string_view model) {
  if (base::GlobMatch(glob, model)) return true;
  const auto blank = model.find(' ');
  return blank != std::string_view::npos && base::GlobMatch(glob, model.substr(blank + 1));
}

Capacity& Capacity::operator+=(const Capacity& more) {
  const auto add = [](auto& sum, auto another) {
    if (__builtin_add_overflow(sum, another, &sum))
      sum = std::numeric_limits<std::remove_reference_t<decltype(sum)>>::max();
  };
  add(memory.count, more.memory.count);
  add(compute_units, more.compute_units);
  return *this;
}

bool Exceeds(const Capacity& part, const Capacity& whole) {
  return (whole.memory.count > 0 && part.memory > whole.memory) ||
         (whole.compute_units > 0 && part.compute_units > whole.compute_units);
}

Capacity CapacityOf(const Facts& device) { return {device.memory, device.compute_units}; }

std::string NumberOf(const Facts& device) {
  if (!device.number.empty()) return device.number;
  return device.index < 0 ? "" : std::to_string(device.index);
}

bool IsNamed(const Facts& device, std::string_view wanted) {
  if (wanted == device.id) return true;
  return device.number.empty() ? device.index >= 0 && base::ParseInt(wanted) == device.index
                               : wanted == device.number;
}

std::string_view ToString(DeviceKind kind) {
  return kind == DeviceKind::kGpu ? "GPU" : "accelerator";
}

std::string_view ToString(HealthState state) {
  switch (state) {
    case HealthState::kHealthy: return "healthy";
    case HealthState::kUnhealthy: return "unhealthy";
    case HealthState::kUnknown: return "unknown";
    case HealthState::kGone: return "gone";
  }
  return "unknown";
}

std::string_view ToString(Severity severity) {
  switch (severity) {
    case Severity::kIgnore: return "ignore";
    case Severity::kWarn: return "warn";
    case Severity::kDrain: return "drain";
    case Severity::kReset: return "reset";
    case Severity::kGone: return "gone";
  }
  return "warn";
}

}  // namespace penstock::device
