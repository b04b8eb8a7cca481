// Ends a test where a result that it needs is an error. For tests only.
#pragma once

#include <stdexcept>
#include <utility>

#include "base/core/result.h"

namespace penstock::base {

/// The value of a result; GoogleTest reports the error as the failure of the test, which ends.
template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().ToString());
  return *std::move(result);
}

}  // namespace penstock::base
