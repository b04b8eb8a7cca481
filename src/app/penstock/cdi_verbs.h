// `penstock cdi list`, `validate` and `transform root`. They need no agent.
#pragma once

#include <string>
#include <vector>

#include "app/penstock/verbs.h"

namespace penstock::app {

// Each returns the program's exit status and writes to standard output and error. All block.

/// Qualified names, one a line as `nvidia-ctk cdi list` prints them; -o wide also where each comes from.
int ListCdi(const Common& common, const std::vector<std::string>& folders);

/// Files, "-" for standard input; or all of the folders, and what is wrong with them together. 1 where there is a problem.
int ValidateCdi(const Common& common, const std::vector<std::string>& files, const std::vector<std::string>& folders);

struct CdiRootChange {
  std::string from, to;
  std::string relative_to = "host";
  std::string input = "-";
  std::string output;  ///< empty: standard output
};
int TransformCdiRoot(const CdiRootChange& change);

}  // namespace penstock::app
