// The NVIDIA dialect: names for the vendor-neutral model. Pure tables: no I/O, no library.
#pragma once

#include "device/dialect.h"

namespace penstock::backend::nvidia {

/// The only instance, with static lifetime.
const device::Dialect& TheDialect();

}  // namespace penstock::backend::nvidia
