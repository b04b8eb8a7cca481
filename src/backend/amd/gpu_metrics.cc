// Layouts: Linux, drivers/gpu/drm/amd/include/kgd_pp_interface.h, struct gpu_metrics_v1_<n> and
// amdgpu_xcp_metrics.
#include "backend/amd/gpu_metrics.h"

#include <algorithm>
#include <array>
#include <string>

namespace penstock::backend::amd {
namespace {

using base::Code;
using base::Error;
using Value = GpuMetrics::Value;
using Values = GpuMetrics::Values;

/// Little endian, as all processors with amdgpu that this runs on. All ones: not known.
Value At(std::string_view bytes, std::size_t offset, std::size_t width) {
  if (offset == 0 || offset > bytes.size() || width > bytes.size() - offset) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = width; i > 0; --i)
    value = value << 8 | static_cast<unsigned char>(bytes[offset + i - 1]);
  const std::uint64_t ones = width == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * width) - 1;
  return value == ones ? std::nullopt : Value(value);
}

Values ListAt(std::string_view bytes, std::size_t offset, std::size_t width, std::size_t count) {
  Values values;
  if (offset == 0 || offset + width > bytes.size()) return values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(At(bytes, offset + i * width, width));
  return values;
}

/// Which fields come when. The last three begin alike; kernels differ in what follows the first
/// fields of 1.6, without another number, and its length distinguishes them.
enum Layout { kMi50, kMi200, k1_4, k1_5, kParts, kPartsAndBandwidth, kFrontOnly, kLayouts };
using Offsets = std::array<std::size_t, kLayouts>;  // 0: the version does not have it

struct Scalar {
  Value GpuMetrics::*member;
  std::size_t width;
  Offsets offsets;
};
constexpr std::array kScalars{
    Scalar{&GpuMetrics::edge, 2, {16, 4, 0, 0, 0, 0, 0}},
    Scalar{&GpuMetrics::hotspot, 2, {18, 6, 4, 4, 4, 4, 4}},
    Scalar{&GpuMetrics::memory_temperature, 2, {20, 8, 6, 6, 6, 6, 6}},
    Scalar{&GpuMetrics::power, 2, {34, 22, 10, 10, 10, 10, 10}},
    Scalar{&GpuMetrics::compute_activity, 2, {28, 16, 12, 12, 12, 12, 12}},
    Scalar{&GpuMetrics::memory_activity, 2, {30, 18, 14, 14, 14, 14, 14}},
    Scalar{&GpuMetrics::multimedia_activity, 2, {32, 20, 0, 0, 0, 0, 0}},
    Scalar{&GpuMetrics::energy, 8, {0, 24, 24, 88, 16, 24, 0}},
    Scalar{&GpuMetrics::energy, 4, {36, 0, 0, 0, 0, 0, 0}},
    Scalar{&GpuMetrics::compute_clock, 2, {54, 54, 240, 312, 264, 296, 0}},
    Scalar{&GpuMetrics::memory_clock, 2, {58, 58, 280, 352, 304, 336, 0}},
    Scalar{&GpuMetrics::pcie_width, 2, {0, 74, 48, 112, 60, 68, 0}},
    Scalar{&GpuMetrics::pcie_speed, 2, {0, 76, 50, 114, 62, 70, 0}},
    Scalar{&GpuMetrics::soc_voltage, 2, {0, 104, 0, 0, 0, 0, 0}},
    Scalar{&GpuMetrics::gfx_voltage, 2, {0, 106, 0, 0, 0, 0, 0}},
    Scalar{&GpuMetrics::memory_voltage, 2, {0, 108, 0, 0, 0, 0, 0}},
    Scalar{&GpuMetrics::pcie_bandwidth_total, 8, {0, 0, 64, 128, 80, 88, 0}},
    Scalar{&GpuMetrics::pcie_bandwidth, 8, {0, 0, 72, 136, 88, 96, 0}},
    Scalar{&GpuMetrics::pcie_recoveries, 8, {0, 0, 80, 144, 96, 104, 0}},
    Scalar{&GpuMetrics::pcie_replays, 8, {0, 0, 88, 152, 104, 112, 0}},
    Scalar{&GpuMetrics::pcie_rollovers, 8, {0, 0, 96, 160, 112, 120, 0}},
    Scalar{&GpuMetrics::pcie_naks_sent, 4, {0, 0, 0, 168, 120, 128, 0}},
    Scalar{&GpuMetrics::pcie_naks_received, 4, {0, 0, 0, 172, 124, 132, 0}},
    Scalar{&GpuMetrics::memory_bandwidth, 8, {0, 0, 0, 0, 0, 16, 0}},
    Scalar{&GpuMetrics::intervals, 4, {0, 0, 0, 0, 32, 40, 0}},
    Scalar{&GpuMetrics::hot, 4, {0, 0, 0, 0, 36, 44, 0}},
    Scalar{&GpuMetrics::over_power, 4, {0, 0, 0, 0, 40, 48, 0}},
    Scalar{&GpuMetrics::socket_hot, 4, {0, 0, 0, 0, 44, 52, 0}},
    Scalar{&GpuMetrics::regulators_hot, 4, {0, 0, 0, 0, 48, 56, 0}},
    Scalar{&GpuMetrics::memory_hot, 4, {0, 0, 0, 0, 52, 60, 0}},
};

struct List {
  Values GpuMetrics::*member;
  std::size_t width, count;
  Offsets offsets;
};
constexpr std::array kLists{
    List{&GpuMetrics::hbm, 2, 4, {0, 88, 0, 0, 0, 0, 0}},
    List{&GpuMetrics::video_activity, 2, 4, {0, 0, 16, 16, 0, 0, 0}},
    List{&GpuMetrics::jpeg_activity, 2, 32, {0, 0, 0, 24, 0, 0, 0}},
    List{&GpuMetrics::compute_clocks, 2, 1, {54, 54, 0, 0, 0, 0, 0}},
    List{&GpuMetrics::compute_clocks, 2, 8, {0, 0, 240, 312, 264, 296, 0}},
    List{&GpuMetrics::soc_clocks, 2, 1, {56, 56, 0, 0, 0, 0, 0}},
    List{&GpuMetrics::soc_clocks, 2, 4, {0, 0, 256, 328, 280, 312, 0}},
    List{&GpuMetrics::video_clocks, 2, 4, {0, 0, 264, 336, 288, 320, 0}},
    List{&GpuMetrics::data_clocks, 2, 4, {0, 0, 272, 344, 296, 328, 0}},
    List{&GpuMetrics::xgmi_received, 8, 8, {0, 0, 104, 176, 128, 136, 0}},
    List{&GpuMetrics::xgmi_sent, 8, 8, {0, 0, 168, 240, 192, 200, 0}},
};

constexpr std::size_t kHeader = 4, kMostParts = 8, kChiplets = 8, kVideoEngines = 4;
constexpr std::size_t kSizeOf16WithParts = 1664;

/// What gpu_metrics has of each partition, from `first` on, each of `size` bytes.
struct PartLayout {
  std::size_t first, size, jpegs;
  bool reasons;  ///< with four counts of a low clock for each chiplet
};

PartLayout PartsOf(unsigned content) {
  if (content == 6) return {312, 168, 32, false};
  if (content == 7) return {344, 232, 32, false};
  return {344, 440, 40, true};
}

/// Reads one from `start` on, which is not 0.
GpuMetrics::Part ReadPart(std::string_view bytes, std::size_t start, const PartLayout& layout) {
  const std::size_t jpeg = start + kChiplets * 4, video = jpeg + layout.jpegs * 2,
                    counts = video + kVideoEngines * 2 + kChiplets * 8, list = kChiplets * 8;
  GpuMetrics::Part part{.compute_busy = ListAt(bytes, start, 4, kChiplets),
                        .video_busy = ListAt(bytes, video, 2, kVideoEngines),
                        .jpeg_busy = ListAt(bytes, jpeg, 2, layout.jpegs)};
  if (!layout.reasons) return part;
  part.slow_power = ListAt(bytes, counts, 8, kChiplets);
  part.slow_heat = ListAt(bytes, counts + list, 8, kChiplets);
  part.slow_idle = ListAt(bytes, counts + 2 * list, 8, kChiplets);
  part.slow_total = ListAt(bytes, counts + 3 * list, 8, kChiplets);
  return part;
}

Layout LayoutOf(unsigned content, std::size_t size) {
  switch (content) {
    case 0: return kMi50;
    case 1:
    case 2:
    case 3: return kMi200;
    case 4: return k1_4;
    case 5: return k1_5;
    case 6: return size == kSizeOf16WithParts ? kParts : kFrontOnly;
    default: return kPartsAndBandwidth;
  }
}

GpuMetrics ReadFixed(std::string_view bytes, unsigned content) {
  const Layout layout = LayoutOf(content, bytes.size());
  GpuMetrics metrics{.average_power = layout <= kMi200};
  for (const Scalar& field : kScalars)
    if (const std::size_t offset = field.offsets[layout]; offset != 0)
      metrics.*field.member = At(bytes, offset, field.width);
  for (const List& field : kLists)
    if (const std::size_t offset = field.offsets[layout]; offset != 0)
      metrics.*field.member = ListAt(bytes, offset, field.width, field.count);
  // Two engines, each value at a place of its own.
  if (layout == kMi200) {
    metrics.video_clocks = {At(bytes, 60, 2), At(bytes, 64, 2)};
    metrics.data_clocks = {At(bytes, 62, 2), At(bytes, 66, 2)};
  }
  if (layout != kParts && layout != kPartsAndBandwidth) return metrics;
  const PartLayout parts = PartsOf(content);
  for (std::size_t i = 0; i < kMostParts; ++i)
    if (const std::size_t at = parts.first + i * parts.size; at + parts.size <= bytes.size())
      metrics.parts.push_back(ReadPart(bytes, at, parts));
  return metrics;
}

/// Where an attribute of 1.9 goes (enum amdgpu_metrics_attr_id); the members are null for others.
struct Attribute {
  std::uint64_t id;
  Value GpuMetrics::*value = nullptr;
  Values GpuMetrics::*list = nullptr;
  Values GpuMetrics::Part::*of_part = nullptr;
};
constexpr std::array kAttributes{
    Attribute{0, &GpuMetrics::hotspot},
    Attribute{1, &GpuMetrics::memory_temperature},
    Attribute{3, &GpuMetrics::power},
    Attribute{4, &GpuMetrics::compute_activity},
    Attribute{5, &GpuMetrics::memory_activity},
    Attribute{6, &GpuMetrics::memory_bandwidth},
    Attribute{7, &GpuMetrics::energy},
    Attribute{9, &GpuMetrics::intervals},
    Attribute{10, &GpuMetrics::hot},
    Attribute{11, &GpuMetrics::over_power},
    Attribute{12, &GpuMetrics::socket_hot},
    Attribute{13, &GpuMetrics::regulators_hot},
    Attribute{14, &GpuMetrics::memory_hot},
    Attribute{16, &GpuMetrics::pcie_width},
    Attribute{17, &GpuMetrics::pcie_speed},
    Attribute{22, &GpuMetrics::pcie_bandwidth_total},
    Attribute{23, &GpuMetrics::pcie_bandwidth},
    Attribute{24, &GpuMetrics::pcie_recoveries},
    Attribute{25, &GpuMetrics::pcie_replays},
    Attribute{26, &GpuMetrics::pcie_rollovers},
    Attribute{27, &GpuMetrics::pcie_naks_sent},
    Attribute{28, &GpuMetrics::pcie_naks_received},
    Attribute{29, nullptr, &GpuMetrics::xgmi_received},
    Attribute{30, nullptr, &GpuMetrics::xgmi_sent},
    Attribute{33, &GpuMetrics::compute_clock, &GpuMetrics::compute_clocks},
    Attribute{34, nullptr, &GpuMetrics::soc_clocks},
    Attribute{35, nullptr, &GpuMetrics::video_clocks},
    Attribute{36, nullptr, &GpuMetrics::data_clocks},
    Attribute{37, &GpuMetrics::memory_clock},
    Attribute{40, nullptr, nullptr, &GpuMetrics::Part::compute_busy},
    Attribute{41, nullptr, nullptr, &GpuMetrics::Part::jpeg_busy},
    Attribute{42, nullptr, nullptr, &GpuMetrics::Part::video_busy},
    Attribute{44, nullptr, nullptr, &GpuMetrics::Part::slow_power},
    Attribute{45, nullptr, nullptr, &GpuMetrics::Part::slow_heat},
    Attribute{46, nullptr, nullptr, &GpuMetrics::Part::slow_idle},
    Attribute{47, nullptr, nullptr, &GpuMetrics::Part::slow_total},
    Attribute{48, nullptr, &GpuMetrics::hbm},
};

/// More instances than any chip has are not kept.
constexpr std::size_t kMostInstances = 64;

void TakeAttribute(std::string_view bytes, std::uint64_t id, std::size_t width, std::size_t count,
                   GpuMetrics& metrics) {
  const auto known = std::ranges::find(kAttributes, id, &Attribute::id);
  if (known == kAttributes.end() || count == 0) return;
  const Values values = ListAt(bytes, kHeader, width, std::min(count, kMostInstances));
  if (values.empty()) return;
  if (known->value != nullptr) metrics.*known->value = values.front();
  if (known->list != nullptr) metrics.*known->list = values;
  if (known->of_part == nullptr) return;
  if (metrics.parts.empty()) metrics.parts.emplace_back();
  metrics.parts.front().*known->of_part = values;
}

/// A count, then for each attribute 64 bits unit << 24 | type << 20 | id << 10 | how many, and the
/// values, packed. Only values of the whole GPU: those of partitions are in files of their own.
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
    TakeAttribute(bytes.substr(offset - kHeader), code >> 10 & 0x3ff, kWidths[type], count,
                  metrics);
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
  constexpr unsigned kDescribed = 9;
  if (format != 1 || content > kDescribed)
    return Error(Code::kUnimplemented,
                 "gpu_metrics " + version + " is not known to this version of Penstock");
  if (content == kDescribed) return ReadAttributes(bytes);
  if (size > bytes.size())
    return Error(Code::kDataLoss, "gpu_metrics " + version + " is shorter than it says");
  return ReadFixed(bytes.substr(0, size), content);
}

}  // namespace penstock::backend::amd
