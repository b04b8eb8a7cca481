// NVIDIA's names for the model. Pure tables: no I/O, no library.
#pragma once

#include "device/dialect.h"

namespace penstock::vendor::nvidia {

/// The one dialect; lives as long as the program.
const device::Dialect& TheDialect();

}  // namespace penstock::vendor::nvidia
