// What is wrong with a specification, by the place in it. Private to api/cdi: Check says it without a file, Parse with line and column.
#pragma once

#include <string>
#include <vector>

#include "api/cdi/spec.h"

namespace penstock::api::cdi::internal {

struct Finding {
  std::string path;  ///< as keys are written: "devices[0].containerEdits.env[1]"; "" for the whole
  std::string message;
};

/// All of it, in no order that matters. A specification without version is one that is being made, and has that of its content.
std::vector<Finding> Inspect(const Spec& spec);

}  // namespace penstock::api::cdi::internal
