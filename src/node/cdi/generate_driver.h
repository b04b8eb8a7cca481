// What containers get of a driver, whatever device they get.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/cdi/spec.h"
#include "node/cdi/find_links.h"
#include "node/cdi/generate.h"

namespace penstock::node::cdi {

struct DriverEdits {
  api::cdi::Edits edits;
  std::optional<api::cdi::Edits> narrow;      ///< of the libraries for 32-bit programs; nothing where there are none
  std::string version;                        ///< empty where the dialect wants no library
  std::vector<std::string> remarks, folders;  ///< as in Generated
};

enum class ControlFiles {
  kGiven,    ///< they belong to it, and those without which nothing works must be there
  kLeftOut,  ///< whoever gets the driver gets device files otherwise
};

/// Blocks for some milliseconds, for an I/O thread. Of the input only the dialect and the driver count. kNotFound: no driver library, or a
/// control device is missing; the message says which and what to do.
base::Result<DriverEdits> EditsOfDriver(const Input& input, const Places& places, const Options& options,
                                        ControlFiles control_files = ControlFiles::kGiven);

/// Files that containers may read and not change, sorted by path; of several for one path the first.
std::vector<api::cdi::Mount> FileMounts(const std::vector<FoundFile>& files);

/// The dialect's variables of every container whose libraries are in these folders, sorted.
std::vector<std::string> DriverEnvironment(const device::ContainerDriver& wanted, const std::vector<std::string>& library_folders);

}  // namespace penstock::node::cdi
