// One sample while it is taken, and the state that is kept of a GPU between samples. Only for the
// files of sampling.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "backend/nvidia/dialect/quantities.h"
#include "backend/nvidia/nvml_device.h"
#include "backend/nvidia/sampling/sampling_gpm.h"
#include "backend/nvidia/sampling/sampling_rates.h"
#include "device/telemetry.h"

namespace penstock::backend::nvidia {

inline constexpr double kMebibyte = 1048576;

/// Which of two places of a driver has counters of PCIe bytes.
enum class PcieCounters { kFields, kGpm, kNowhere };

/// Which fields of a driver have traffic counters of single links.
enum class LinkCounters { kKibibytes, kBytes, kNowhere };

/// The fields of three reasons for reduced clocks; drivers do not all use the same numbers for
/// them.
inline constexpr unsigned kFirstReasonField = 269, kLastReasonField = 271;
constexpr bool IsReasonField(unsigned field) {
  return field >= kFirstReasonField && field <= kLastReasonField;
}

struct SampledGpu {
  explicit SampledGpu(const Functions& nvml) : missing(TheQuantities().size()), gpm(nvml) {}

  std::vector<bool> missing;  ///< by quantity: this device never has it
  std::set<device::QuantityId>
      calls;  ///< quantities whose field is refused and that an older call returns
  std::optional<std::vector<unsigned>> links;
  std::optional<unsigned long long> known_reasons;  ///< the bits that this driver sets for this
                                                    ///< device
  unsigned first_reason_field = kFirstReasonField;  ///< in this driver's numbering
  PcieCounters pcie_counters = PcieCounters::kFields;
  bool pcie_rate_by_gpm = true;
  bool link_rate_by_gpm = true;
  bool sum_of_links = false;  ///< the driver does not sum the counters of links
  LinkCounters link_counters = LinkCounters::kKibibytes;
  Rate pcie_rates[2], link_rates[3];
  std::map<unsigned, Rate> single_link_rates[3];  ///< by link
  Gpm gpm;
  unsigned long long last_process_sample = 0;  ///< by the driver's clock
};

struct Wanted {
  device::QuantityId id = 0;
  NvmlQuery query;
};

/// The requested quantities that are not known to be missing, and the answers.
class SampleBuilder {
 public:
  SampleBuilder(NvmlDevice& a_device, SampledGpu& a_gpu, const device::SampleRequest& request,
                base::TimePoint a_now);

  std::span<const Wanted> Of(NvmlCall call) const;

  void Give(device::QuantityId id, device::Number number, int link = -1) {
    sample.values.push_back({id, link, number});
  }
  void Missing(device::QuantityId id);
  void Missing(std::span<const Wanted> wanted);

  /// Returns `answered`; if these quantities will never be answered, marks them as missing.
  bool Answered(bool answered, std::span<const Wanted> wanted);

  /// The device's NVLinks. Nothing while they cannot be determined.
  const std::vector<unsigned>* Links();

  NvmlDevice& nvml_device;
  SampledGpu& gpu;
  const base::TimePoint now;
  device::Sample sample;

 private:
  std::vector<Wanted> wanted_;  // by call
};

}  // namespace penstock::backend::nvidia
