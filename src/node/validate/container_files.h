// What a program in a container with CDI devices must be able to open, and why it cannot. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/cdi/spec.h"
#include "base/core/result.h"

namespace penstock::node::validate {

/// The files that specifications promise to a container, by their paths in it.
struct PromisedFiles {
  std::map<std::string, bool> files;  ///< whether each is a device file

  std::vector<std::string> paths() const;
  std::size_t devices() const;
};

PromisedFiles PromiseOf(const api::cdi::CdiEdits& edits);

/// Why files of the container cannot be opened, one clause for each, the device files first; empty:
/// all can. `output` is penstock-probe's: a line "ERRNO FILE" for each file. kUnavailable where one
/// has no line; a line of another file is passed over. A device file without hardware (ENXIO,
/// ENODEV) and a device in exclusive use (EBUSY) are there, and access is allowed.
base::Result<std::vector<std::string>> WhyNotOpen(const PromisedFiles& promised,
                                                  std::string_view output);

}  // namespace penstock::node::validate
