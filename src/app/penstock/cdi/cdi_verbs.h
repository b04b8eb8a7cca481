// `penstock cdi list`, `validate` and `transform root`. They work without an agent.
#pragma once

#include <string>
#include <vector>

#include "app/penstock/common/verbs.h"

namespace penstock::app {

// All of them block.

/// The qualified names, one per line like `nvidia-ctk cdi list`; -o wide adds the origin of each.
/// Prints files that engines cannot read on standard error.
base::Result<command::Shown> ListCdi(const Common& common, const std::vector<std::string>& folders);

/// Validates files, "-" for standard input; without files all files of the folders, and conflicts
/// among them. Prints problems on standard error. The status is 1 where there is a problem.
base::Result<command::Shown> ValidateCdi(const Common& common,
                                         const std::vector<std::string>& files,
                                         const std::vector<std::string>& folders);

struct CdiRootChange {
  std::string from, to;
  std::string relative_to = "host";
  std::string input = "-";
  std::string output;  ///< empty: standard output
};
/// The changed specification, or nothing where it was written to a file.
base::Result<command::Shown> TransformCdiRoot(const CdiRootChange& change);

/// --spec-dir.
command::Option SpecFolders(std::vector<std::string>& folders);

command::Verb CdiGenerateVerb(const Common& common);

}  // namespace penstock::app
