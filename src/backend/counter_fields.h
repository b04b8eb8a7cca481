// The fields of the vendors' own exporters, for parsing their counters files. Does no I/O.
#pragma once

#include <span>

#include "api/compat/nvidia/counters.h"

namespace penstock::backend {

/// The fields of all vendors, with static lifetime. Any thread.
std::span<const api::compat::CounterField> CounterFields();

/// Those of the exporters that have a file of settings (device::Exporter::has_settings).
std::span<const api::compat::CounterField> SettingsFields();

}  // namespace penstock::backend
