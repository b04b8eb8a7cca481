// The fields of DCGM, as its exporter shows them. Pure tables.
#pragma once

#include <span>
#include <string_view>

#include "device/exporter.h"

namespace penstock::vendor::nvidia {

inline constexpr double kMebibyte = 1048576;

/// All, by number.
std::span<const device::ExporterField> DcgmFields();

/// By either name; null where there is none of that name.
const device::ExporterField* FindDcgmField(std::string_view name);

/// What dcgm-exporter shows without being told: its dcp-metrics-included.csv, which its image, its chart and NVIDIA's GPU operator use.
std::span<const device::CounterRow> DcgmDefaultRows();

/// Its text for an XID.
std::string_view DcgmErrorText(std::int64_t xid);

}  // namespace penstock::vendor::nvidia
