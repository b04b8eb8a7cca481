// One sample while it is taken, and what is kept of a GPU from one to the next. For the files of sampling alone.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "device/telemetry.h"
#include "vendor/nvidia/dialect/quantities.h"
#include "vendor/nvidia/questions.h"
#include "vendor/nvidia/sampling_gpm.h"
#include "vendor/nvidia/sampling_rates.h"

namespace penstock::vendor::nvidia {

/// Which of its two places a driver has counters of PCIe bytes in.
enum class PcieCounters { kFields, kGpm, kNowhere };

/// In which fields a driver has counters of what went over single links.
enum class LinkCounters { kKibibytes, kBytes, kNowhere };

/// Fields of three reasons for which clocks are held down, which not all drivers know by the same numbers.
inline constexpr unsigned kFirstReasonField = 269, kLastReasonField = 271;
constexpr bool IsReasonField(unsigned field) { return field >= kFirstReasonField && field <= kLastReasonField; }

struct SampledGpu {
  explicit SampledGpu(const Functions& nvml) : missing(TheQuantities().size()), gpm(nvml) {}

  std::vector<bool> missing;           ///< by quantity: never answered
  std::set<device::QuantityId> calls;  ///< quantities whose field is refused and that an older call gives
  std::optional<std::vector<unsigned>> links;
  std::optional<unsigned long long> known_reasons;  ///< bits that this driver sets for this device
  unsigned first_reason_field = kFirstReasonField;  ///< as this driver numbers it
  PcieCounters pcie_counters = PcieCounters::kFields;
  bool pcie_rate_by_gpm = true;
  bool link_rate_by_gpm = true;
  bool sum_of_links = false;  ///< the driver does not sum counters of links up
  LinkCounters link_counters = LinkCounters::kKibibytes;
  Rate pcie_rates[2], link_rates[3];
  std::map<unsigned, Rate> single_link_rates[3];  ///< by link
  Gpm gpm;
  unsigned long long last_process_sample = 0;  ///< in the driver's time
};

struct Wanted {
  device::QuantityId id = 0;
  Way way;
};

/// What is asked for and not known to be missing; what was answered.
class Taking {
 public:
  Taking(Questions& a_questions, SampledGpu& a_gpu, const device::SampleRequest& request, base::TimePoint a_now);

  std::span<const Wanted> Of(Call call) const;

  void Give(device::QuantityId id, device::Number number, int link = -1) { sample.values.push_back({id, link, number}); }
  void Missing(device::QuantityId id);
  void Missing(std::span<const Wanted> wanted);

  /// Passes on whether it was answered; where it never will be, these are missing.
  bool Answered(bool answered, std::span<const Wanted> wanted);

  /// The device's NVLinks. Nothing while that cannot be found out.
  const std::vector<unsigned>* Links();

  Questions& questions;
  SampledGpu& gpu;
  const base::TimePoint now;
  device::Sample sample;

 private:
  std::vector<Wanted> wanted_;  // by call
};

}  // namespace penstock::vendor::nvidia
