// Fuzzes the files of AMD's driver; the first byte says which.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "backend/amd/gpu_metrics.h"
#include "backend/amd/kfd.h"
#include "backend/amd/ras.h"

namespace amd = penstock::backend::amd;

namespace {

/// What was read is read again from what one would write of it.
void Properties(std::string_view text) {
  const auto properties = amd::ParseProperties(text);
  std::string again;
  for (const auto& [name, value] : properties) again += name + " " + std::to_string(value) + "\n";
  if (amd::ParseProperties(again) != properties) std::abort();
}

void Counts(std::string_view text) {
  if (const auto counts = amd::ParseRasCounts(text)) {
    const std::string again = "ue: " + std::to_string(counts->uncorrectable) +
                              "\nce: " + std::to_string(counts->correctable) +
                              "\nde: " + std::to_string(counts->deferred) + "\n";
    if (amd::ParseRasCounts(again) != counts) std::abort();
  }
  const auto pages = amd::ParseBadPages(text);
  if (pages.retired < 0 || pages.pending < 0 || pages.failed < 0) std::abort();
}

/// All ones of a field's width are no value.
void Metrics(std::string_view bytes) {
  const auto metrics = amd::ParseGpuMetrics(bytes);
  if (!metrics.ok()) {
    if (!metrics.error().message().starts_with("gpu_metrics")) std::abort();
    return;
  }
  constexpr unsigned kSelfDescribing = 9;
  if (static_cast<unsigned char>(bytes[3]) == kSelfDescribing) return;
  constexpr std::uint64_t kOnes = 0xffff;
  for (const auto& value : {metrics->hotspot, metrics->power, metrics->compute_activity,
                            metrics->compute_clock, metrics->pcie_width})
    if (value && *value >= kOnes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'p': Properties(text); break;
    case 'r': Counts(text); break;
    default: Metrics(text);
  }
  return 0;
}
