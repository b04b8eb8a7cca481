// Lists of the files that a container needs of its host, as a system brings them (Tegra's *.csv). Text only.
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

/// Lines "WORD, PATH"; blanks around either, empty lines and lines that begin with # say nothing, and lines may end as Windows' do. Every
/// line that is none of this at once: kInvalidArgument, with file and line.
base::Result<std::vector<ListedFile>> ParseFileList(std::string_view text, std::string_view file,
                                                    const std::map<std::string, device::HostFile>& words);

}  // namespace penstock::node::cdi
