// The fields of DCGM, as its exporter shows them. Pure tables.
#pragma once

#include <span>
#include <string_view>

#include "device/exporter.h"

namespace penstock::backend::nvidia {

inline constexpr double kMebibyte = 1048576;

/// All fields, by number.
std::span<const device::ExporterField> DcgmFields();

/// Finds a field by either name; null if there is none.
const device::ExporterField* FindDcgmField(std::string_view name);

/// The rows that dcgm-exporter shows by default: its dcp-metrics-included.csv, which its image, its
/// chart and NVIDIA's GPU operator use.
std::span<const device::CounterRow> DcgmDefaultRows();

/// The exporter's text for an XID.
std::string_view DcgmErrorText(std::int64_t xid);

}  // namespace penstock::backend::nvidia
