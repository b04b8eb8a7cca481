// Fuzzes AMD's binary file gpu_metrics: it is read within its bounds, and values that are not known
// have no value.
#include <cstdint>
#include <string>
#include <string_view>

#include "../oracle.h"
#include "backend/amd/gpu_metrics.h"

namespace amd = penstock::backend::amd;
using penstock::fuzz::Require;

namespace {

constexpr std::size_t kHeader = 4;
constexpr unsigned kSelfDescribing = 9;

/// Fields of 16 bits: all ones are no value.
void CheckWidths(const amd::GpuMetrics& metrics) {
  constexpr std::uint64_t kOnes = 0xffff;
  for (const auto& value :
       {metrics.hotspot, metrics.memory_temperature, metrics.power, metrics.compute_activity,
        metrics.memory_activity, metrics.compute_clock, metrics.memory_clock, metrics.pcie_width,
        metrics.pcie_speed})
    Require(!value || *value < kOnes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = penstock::fuzz::Text(data, size);
  const auto metrics = amd::ParseGpuMetrics(bytes);
  if (!metrics.ok()) {
    Require(metrics.error().message().starts_with("gpu_metrics"));
    return 0;
  }
  Require(size > kHeader && data[2] == 1 && data[3] <= kSelfDescribing);
  // What follows the end that the file names is not part of it.
  const auto longer = amd::ParseGpuMetrics(std::string(bytes) + std::string(64, '\x07'));
  Require(longer.ok() && *longer == *metrics);
  if (data[3] == kSelfDescribing) return 0;
  CheckWidths(*metrics);
  // One byte less than it names is too short.
  const std::size_t named = data[0] + (std::size_t{data[1]} << 8);
  Require(named <= size);
  if (named > 2 * kHeader) Require(!amd::ParseGpuMetrics(bytes.substr(0, named - 1)).ok());
  return 0;
}
