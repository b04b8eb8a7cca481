// Parses the lists of host files that a container needs, as a system provides them (Tegra's *.csv).
// Does no I/O.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "device/container.h"

namespace penstock::node::cdi {

struct ListedFile {
  device::HostFile kind = device::HostFile::kFile;
  std::string path;  ///< absolute, without "." and ".."
  bool operator==(const ListedFile&) const = default;
};

/// Parses lines "WORD, PATH". Blanks around either, empty lines and lines that start with # are
/// ignored; lines may end with CRLF. If any line is invalid: kInvalidArgument, with file and line
/// of every invalid one.
base::Result<std::vector<ListedFile>> ParseFileList(
    std::string_view text, std::string_view file,
    const std::map<std::string, device::HostFile>& words);

}  // namespace penstock::node::cdi
