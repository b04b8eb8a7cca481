// The words of AMD's Device Config Manager (DCM), which sets the modes of GPUs.
#pragma once

#include "device/dialect.h"

namespace penstock::backend::amd {

const device::PartTerms& TheModeTerms();

}  // namespace penstock::backend::amd
