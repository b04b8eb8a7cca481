// Layouts: Linux, drivers/gpu/drm/amd/include/kgd_pp_interface.h, struct gpu_metrics_v1_<n>.
#include "backend/amd/gpu_metrics.h"

#include <array>
#include <string>

namespace penstock::backend::amd {
namespace {

using base::Code;
using base::Error;
using Value = std::optional<std::uint64_t>;

/// Little endian, as all processors with amdgpu that this runs on. All ones: not known.
Value At(std::string_view bytes, std::size_t offset, std::size_t width) {
  if (offset == 0 || offset > bytes.size() || width > bytes.size() - offset) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = width; i > 0; --i)
    value = value << 8 | static_cast<unsigned char>(bytes[offset + i - 1]);
  const std::uint64_t ones = width == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * width) - 1;
  return value == ones ? std::nullopt : Value(value);
}

/// Offsets of fields; 0: the version does not have it. All but the energy are 16 bits wide.
struct Layout {
  std::size_t hotspot, memory_temperature, power, compute, memory, energy, compute_clock,
      memory_clock, width, speed;
  std::size_t energy_width = 8;
};

constexpr Layout kOldest{.hotspot = 18,
                         .memory_temperature = 20,
                         .power = 34,
                         .compute = 28,
                         .memory = 30,
                         .energy = 36,
                         .compute_clock = 54,
                         .memory_clock = 58,
                         .width = 0,
                         .speed = 0,
                         .energy_width = 4};
constexpr Layout kMi200{.hotspot = 6,
                        .memory_temperature = 8,
                        .power = 22,
                        .compute = 16,
                        .memory = 18,
                        .energy = 24,
                        .compute_clock = 54,
                        .memory_clock = 58,
                        .width = 74,
                        .speed = 76};
constexpr Layout kMi300{.hotspot = 4,
                        .memory_temperature = 6,
                        .power = 10,
                        .compute = 12,
                        .memory = 14,
                        .energy = 24,
                        .compute_clock = 240,
                        .memory_clock = 280,
                        .width = 48,
                        .speed = 50};
constexpr Layout kMi300Engines{.hotspot = 4,
                               .memory_temperature = 6,
                               .power = 10,
                               .compute = 12,
                               .memory = 14,
                               .energy = 88,
                               .compute_clock = 312,
                               .memory_clock = 352,
                               .width = 112,
                               .speed = 114};
// Kernels differ in what follows the first fields of 1.6, without another number.
constexpr Layout kFrontOnly{.hotspot = 4,
                            .memory_temperature = 6,
                            .power = 10,
                            .compute = 12,
                            .memory = 14,
                            .energy = 0,
                            .compute_clock = 0,
                            .memory_clock = 0,
                            .width = 0,
                            .speed = 0};
constexpr Layout kWithBandwidth{.hotspot = 4,
                                .memory_temperature = 6,
                                .power = 10,
                                .compute = 12,
                                .memory = 14,
                                .energy = 24,
                                .compute_clock = 296,
                                .memory_clock = 336,
                                .width = 68,
                                .speed = 70};
constexpr std::array kLayouts{kOldest,       kMi200,     kMi200,         kMi200,        kMi300,
                              kMi300Engines, kFrontOnly, kWithBandwidth, kWithBandwidth};
constexpr std::size_t kHeader = 4;

GpuMetrics ReadFixed(std::string_view bytes, const Layout& layout) {
  const auto at = [&](std::size_t offset) { return At(bytes, offset, 2); };
  return {.hotspot = at(layout.hotspot),
          .memory_temperature = at(layout.memory_temperature),
          .power = at(layout.power),
          .compute_activity = at(layout.compute),
          .memory_activity = at(layout.memory),
          .energy = At(bytes, layout.energy, layout.energy_width),
          .compute_clock = at(layout.compute_clock),
          .memory_clock = at(layout.memory_clock),
          .pcie_width = at(layout.width),
          .pcie_speed = at(layout.speed)};
}

/// The field that an attribute of 1.9 fills (enum amdgpu_metrics_attr_id); null for others.
Value* FieldOf(GpuMetrics& metrics, std::uint64_t id) {
  switch (id) {
    case 0: return &metrics.hotspot;
    case 1: return &metrics.memory_temperature;
    case 3: return &metrics.power;
    case 4: return &metrics.compute_activity;
    case 5: return &metrics.memory_activity;
    case 7: return &metrics.energy;
    case 16: return &metrics.pcie_width;
    case 17: return &metrics.pcie_speed;
    default: return nullptr;
  }
}

/// A count, then for each attribute 64 bits unit << 24 | type << 20 | id << 10 | how many, and the
/// values, packed.
base::Result<GpuMetrics> ReadAttributes(std::string_view bytes) {
  constexpr std::array<std::size_t, 8> kWidths{1, 1, 2, 2, 4, 4, 8, 8};
  const auto little = [&](std::size_t offset, std::size_t width) {
    return At(bytes, offset, width).value_or(0);
  };
  GpuMetrics metrics;
  std::size_t offset = 2 * kHeader;
  for (std::uint64_t left = little(kHeader, 4); left > 0; --left) {
    if (offset + 8 > bytes.size())
      return Error(Code::kDataLoss, "gpu_metrics 1.9 has fewer attributes than it says");
    const std::uint64_t code = little(offset, 8);
    offset += 8;
    const std::uint64_t type = code >> 20 & 0xf, count = code & 0x3ff;
    if (type >= kWidths.size() || kWidths[type] * count > bytes.size() - offset)
      return Error(Code::kDataLoss, "gpu_metrics 1.9 has an attribute that cannot be read");
    // Signed values (temperatures) are not negative in a running device.
    if (Value* field = FieldOf(metrics, code >> 10 & 0x3ff); field != nullptr && count > 0)
      *field = At(bytes, offset, kWidths[type]);
    offset += kWidths[type] * count;
  }
  return metrics;
}

}  // namespace

base::Result<GpuMetrics> ParseGpuMetrics(std::string_view bytes) {
  if (bytes.size() < 2 * kHeader) return Error(Code::kDataLoss, "gpu_metrics is too short");
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const std::size_t size = byte(0) | static_cast<std::size_t>(byte(1)) << 8;
  const unsigned format = byte(2), content = byte(3);
  const std::string version = std::to_string(format) + "." + std::to_string(content);
  constexpr unsigned kAttributes = 9;
  if (format != 1 || content > kAttributes)
    return Error(Code::kUnimplemented,
                 "gpu_metrics " + version + " is not known to this version of Penstock");
  if (content == kAttributes) return ReadAttributes(bytes);
  if (size > bytes.size())
    return Error(Code::kDataLoss, "gpu_metrics " + version + " is shorter than it says");
  return ReadFixed(bytes.substr(0, size), kLayouts[content]);
}

}  // namespace penstock::backend::amd
