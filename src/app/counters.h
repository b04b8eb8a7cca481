// The fields that a vendor's own exporter has, for those who read its files of counters. Reads nothing.
#pragma once

#include <span>

#include "api/compat/counters.h"

namespace penstock::app {

/// Of all vendors; lives as long as the program. Any thread.
std::span<const api::compat::CounterField> CounterFields();

}  // namespace penstock::app
