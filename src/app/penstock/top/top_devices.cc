// Formats one device: name and facts at the left, bars with their histories below them, state at
// the right.
#include "app/penstock/top/top_devices.h"

#include <algorithm>
#include <cmath>

#include "app/penstock/local/show.h"

namespace penstock::app {
namespace {

using api::SampledDevice;

constexpr Color kUtilizationColor = Color::kGreen, kMemoryColor = Color::kCyan;
constexpr std::size_t kPercentColumns = 5;  // " 100%"
constexpr std::size_t kMemoryColumns = 12;  // " 41.2G/80.0G"

/// Widths of the columns, which are separated by one blank.
struct Layout {
  std::size_t left = 25, utilization = 0, memory = 0, facts = 0, state = 0;
};

std::size_t Part(std::size_t whole, std::size_t percent, std::size_t least, std::size_t most) {
  return std::clamp(whole * percent / 100, least, most);
}

/// Divides the width that the other columns leave between the two bars; memory gets somewhat more,
/// because its text is longer.
void ShareTheRest(std::size_t columns, std::size_t gaps, Layout& layout) {
  const std::size_t fixed = layout.left + layout.facts + layout.state + gaps;
  const std::size_t rest = columns > fixed ? columns - fixed : 0;
  layout.memory = (rest + kMemoryColumns - kPercentColumns) / 2;
  layout.utilization = rest - std::min(rest, layout.memory);
}

Layout TwoLines(std::size_t columns) {
  Layout layout{.left = Part(columns, 25, 25, 36), .state = Part(columns, 15, 12, 40)};
  ShareTheRest(columns, 3, layout);
  return layout;
}

Layout OneLine(std::size_t columns) {
  Layout layout{.left = Part(columns, 22, 17, 30),
                .facts = columns >= 100 ? 23u : 10u,
                .state = Part(columns, 12, 9, 30)};
  ShareTheRest(columns, 4, layout);
  return layout;
}

std::string Whole(std::optional<double> value) {
  return value ? std::to_string(std::lround(*value)) : "-";
}

std::string Temperature(const SampledDevice& device) {
  return Whole(device.temperature) + (device.temperature ? "C" : "");
}

std::string Power(const SampledDevice& device, bool with_limit) {
  const std::string limit = with_limit && device.power_limit ? "/" + Whole(device.power_limit) : "";
  return device.power || !limit.empty() ? Whole(device.power) + limit + "W" : "-";
}

std::string Clock(const SampledDevice& device) {
  return device.clock ? Whole(*device.clock / 1e6) + "MHz" : "-";
}

std::string Facts(const SampledDevice& device) {
  return Fit(Temperature(device), 4, true) + " " + Fit(Power(device, true), 10, true) + " " +
         Fit(Clock(device), 7, true);
}

std::optional<double> MemoryRatio(const SampledDevice& device, std::optional<double> used) {
  if (!used || device.memory_bytes == 0) return std::nullopt;
  return *used / static_cast<double>(device.memory_bytes);
}

std::string MemoryText(const SampledDevice& device) {
  const std::optional<double> all = device.memory_bytes > 0
                                        ? std::optional(static_cast<double>(device.memory_bytes))
                                        : std::nullopt;
  return ShortBytes(device.memory_used) + "/" + ShortBytes(all);
}

struct State {
  std::string word, more;
  Color color = Color::kNone;
};

State StateOf(const SampledDevice& device) {
  if (device.health_state != "healthy") {
    const Color color = device.health_state == "unhealthy" ? Color::kRed : Color::kYellow;
    return {device.health_state, device.health_reason, color};
  }
  if (!device.problem.empty()) return {"no answer", device.problem, Color::kYellow};
  const bool shared = !device.sharing.empty() && device.sharing != "none";
  if (shared)
    return {std::to_string(device.free) + "/" + std::to_string(device.shares) + " free",
            device.sharing};
  if (device.allocator.empty()) return {"not offered", "", Color::kDim};
  return device.free > 0 ? State{"free", device.allocator, Color::kDim}
                         : State{"held", device.allocator};
}

std::string UtilizationCell(const SampledDevice& device, std::size_t columns, const Pen& pen) {
  return Bar(device.utilization, columns - std::min(columns, kPercentColumns), kUtilizationColor,
             pen) +
         Fit(Percent(device.utilization), std::min(columns, kPercentColumns), true);
}

std::string MemoryCell(const SampledDevice& device, std::size_t columns, const Pen& pen) {
  return Bar(MemoryRatio(device, device.memory_used), columns - std::min(columns, kMemoryColumns),
             kMemoryColor, pen) +
         Fit(MemoryText(device), std::min(columns, kMemoryColumns), true);
}

/// A part by its number and profile: its model is that of its device, which is shown above it.
std::string Name(const SampledDevice& device, std::size_t columns) {
  const std::string number = device.number.empty()
                                 ? (device.index < 0 ? "-" : std::to_string(device.index))
                                 : Printable(device.number);
  const std::size_t width = std::max<std::size_t>(Columns(number), 2);
  const std::string name =
      device.profile.empty() ? ModelOf(device.vendor, device.model) : device.profile;
  return Fit(Fit(number, width, true) + " " + Printable(name), columns);
}

std::vector<std::optional<double>> HistoryOf(const SampledDevice& device, const std::string& name) {
  const auto found = device.history.find(name);
  return found == device.history.end() ? std::vector<std::optional<double>>{} : found->second;
}

std::string UtilizationHistory(const SampledDevice& device, std::size_t columns, const Pen& pen) {
  return Sparkline(HistoryOf(device, "utilization"), columns, kUtilizationColor, pen);
}

std::string MemoryHistory(const SampledDevice& device, std::size_t columns, const Pen& pen) {
  auto values = HistoryOf(device, "memoryUsed");
  for (auto& value : values) value = MemoryRatio(device, value);
  return Sparkline(values, columns, kMemoryColor, pen);
}

std::string InOneLine(const SampledDevice& device, std::size_t columns, const Pen& pen) {
  const Layout layout = OneLine(columns);
  const State state = StateOf(device);
  const std::string facts = layout.facts > 20 ? Facts(device)
                                              : Fit(Temperature(device), 4, true) + " " +
                                                    Fit(Power(device, false), 5, true);
  return Name(device, layout.left) + " " + UtilizationCell(device, layout.utilization, pen) + " " +
         MemoryCell(device, layout.memory, pen) + " " + Fit(facts, layout.facts) + " " +
         Paint(Fit(state.word, layout.state), state.color, pen.style);
}

std::vector<std::string> InTwoLines(const SampledDevice& device, std::size_t columns,
                                    const Pen& pen) {
  const Layout layout = TwoLines(columns);
  const State state = StateOf(device);
  const std::string first = Name(device, layout.left) + " " +
                            UtilizationCell(device, layout.utilization, pen) + " " +
                            MemoryCell(device, layout.memory, pen) + " " +
                            Paint(Fit(state.word, layout.state), state.color, pen.style);
  const std::string second =
      Fit(" " + Facts(device), layout.left) + " " +
      UtilizationHistory(device, layout.utilization - std::min(layout.utilization, kPercentColumns),
                         pen) +
      std::string(std::min(layout.utilization, kPercentColumns), ' ') + " " +
      MemoryHistory(device, layout.memory - std::min(layout.memory, kMemoryColumns), pen) +
      std::string(std::min(layout.memory, kMemoryColumns), ' ') + " " +
      Paint(Fit(state.more, layout.state), Color::kDim, pen.style);
  return {first, second};
}

bool IsPart(const SampledDevice& device) {
  return !device.number.empty() || !device.profile.empty();
}

/// A sum or a mean over the devices that report the value, without their parts, of which they are
/// the sum; nothing where none does.
template <typename Value>
std::optional<double> Sum(const std::vector<SampledDevice>& devices, Value value,
                          bool mean = false) {
  double sum = 0;
  int count = 0;
  for (const SampledDevice& device : devices) {
    const std::optional<double> one = IsPart(device) ? std::nullopt : value(device);
    if (!one) continue;
    sum += *one;
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional(mean ? sum / count : sum);
}

}  // namespace

std::vector<std::string> DeviceLines(const SampledDevice& device, std::size_t lines_each,
                                     std::size_t columns, const Pen& pen) {
  if (lines_each > 1) return InTwoLines(device, columns, pen);
  return {InOneLine(device, columns, pen)};
}

std::string DevicesTogether(const std::vector<SampledDevice>& devices) {
  const auto parts = std::ranges::count_if(devices, IsPart);
  const auto whole = static_cast<std::ptrdiff_t>(devices.size()) - parts;
  std::string text = std::to_string(whole) + (whole == 1 ? " device" : " devices");
  if (parts > 0) text += ", " + std::to_string(parts) + (parts == 1 ? " part" : " parts");
  const auto busy = Sum(
      devices, [](const auto& device) { return device.utilization; }, true);
  const auto used = Sum(devices, [](const auto& device) { return device.memory_used; });
  const auto memory = Sum(devices, [](const auto& device) {
    return std::optional(static_cast<double>(device.memory_bytes));
  });
  const auto power = Sum(devices, [](const auto& device) { return device.power; });
  const auto limit = Sum(devices, [](const auto& device) { return device.power_limit; });
  if (busy) text += "  busy " + Percent(busy);
  if (used) text += "  memory " + ShortBytes(used) + "/" + ShortBytes(memory);
  if (power) text += "  power " + Whole(power) + (limit ? "/" + Whole(limit) : "") + "W";
  return text;
}

}  // namespace penstock::app
