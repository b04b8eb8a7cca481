// The table of fields of AMD's Device Metrics Exporter. Private to the dialect.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/exporter.h"

namespace penstock::backend::amd {

struct ExportedField {
  device::ExporterField field;
  std::string_view help;
  std::string_view index;  ///< the label with the number of a part of the chip; empty: none
};

/// In the exporter's order. Static lifetime.
const std::vector<ExportedField>& ExportedFields();

/// What the clock with this number is: "system", "memory", "video", "data", "soc". The numbers are
/// those of AMD's GPU agent (smi_api.cc, smi_fill_clock_status_): eight of the compute units, one
/// of the memory, and four of each other kind.
std::string_view ClockType(int index);

/// Where the clocks of each kind begin in that numbering.
inline constexpr int kMemoryClockIndex = 8, kVideoClockIndex = 9, kDataClockIndex = 13,
                     kSocClockIndex = 17, kClockIndices = 21;

}  // namespace penstock::backend::amd
