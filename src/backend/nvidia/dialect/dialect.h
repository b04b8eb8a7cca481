// The NVIDIA dialect: names for the vendor-neutral model. Pure tables: no I/O, no library.
#pragma once

#include <string>

#include "device/dialect.h"

namespace penstock::backend::nvidia {

/// The only instance, with static lifetime.
const device::Dialect& TheDialect();

/// Says that there is no driver library, and what to do.
std::string NoLibrary(const device::Paths& paths);

}  // namespace penstock::backend::nvidia
