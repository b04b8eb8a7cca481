// The folder of a test; it lies in os/core, so that the static hook's tests have it too. For tests only.
#pragma once

#include "os/core/temporary_folder.h"  // IWYU pragma: export
