// Makes os/core's temporary folder available to tests of os; it is in os/core so that the static
// hook's tests can use it, too. For tests only.
#pragma once

#include "os/core/testing/temporary_folder.h"  // IWYU pragma: export
