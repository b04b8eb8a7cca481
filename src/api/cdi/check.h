// Checks a specification and reports each problem with its place. Private to api/cdi: Check reports
// problems without a file, Parse with line and column.
#pragma once

#include <string>
#include <vector>

#include "api/cdi/spec.h"

namespace penstock::api::cdi::internal {

struct SpecProblem {
  std::string path;  ///< in the spelling of keys: "devices[0].containerEdits.env[1]"; "" for the
                     ///< whole
  std::string message;
};

/// Returns all problems, in no particular order. A specification without a version is under
/// construction; the version that its content requires applies.
std::vector<SpecProblem> Inspect(const Spec& spec);

}  // namespace penstock::api::cdi::internal
