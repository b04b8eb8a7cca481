// `penstock cdi list`, `validate` and `transform root`. They work without an agent.
#pragma once

#include <string>
#include <vector>

#include "app/penstock/common/verbs.h"

namespace penstock::app {

// Each verb returns the program's exit status, writes to standard output and standard error, and
// blocks.

/// Prints qualified names, one per line like `nvidia-ctk cdi list`; -o wide adds the origin of
/// each.
int ListCdi(const Common& common, const std::vector<std::string>& folders);

/// Validates files, "-" for standard input; without files all files of the folders, and conflicts
/// among them. Returns 1 where there is a problem.
int ValidateCdi(const Common& common, const std::vector<std::string>& files,
                const std::vector<std::string>& folders);

struct CdiRootChange {
  std::string from, to;
  std::string relative_to = "host";
  std::string input = "-";
  std::string output;  ///< empty: standard output
};
int TransformCdiRoot(const CdiRootChange& change);

}  // namespace penstock::app
