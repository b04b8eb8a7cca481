// Generates the edits that every container with a device of a driver gets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/cdi/spec.h"
#include "node/cdi/find_links.h"
#include "node/cdi/generate.h"

namespace penstock::node::cdi {

struct DriverEdits {
  api::cdi::CdiEdits edits;
  std::optional<api::cdi::CdiEdits>
      narrow;           ///< of the libraries for 32-bit programs; nothing where there are none
  std::string version;  ///< empty where the dialect needs no library
  std::vector<std::string> remarks, folders;  ///< as in Generated
};

enum class ControlFiles {
  kGiven,    ///< they are part of the edits, and the essential ones must exist
  kLeftOut,  ///< the container gets device files in another way
};

/// Blocks for some milliseconds: call it on an I/O thread. Uses only the dialect and the driver of
/// the input. kNotFound: no driver library, or a control device is missing; the message says which
/// and what to do.
base::Result<DriverEdits> EditsOfDriver(const Input& input, const Places& places,
                                        const Options& options,
                                        ControlFiles control_files = ControlFiles::kGiven);

/// Read-only mounts of files, sorted by path; of several for one path the first.
std::vector<api::cdi::Mount> FileMounts(const std::vector<FoundFile>& files);

/// The dialect's environment variables for every container whose libraries are in these
/// folders, sorted.
std::vector<std::string> DriverEnvironment(const device::ContainerDriver& wanted,
                                           const std::vector<std::string>& library_folders);

}  // namespace penstock::node::cdi
