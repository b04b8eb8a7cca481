// Fuzzes Tegra's lists of host files, as written by packages and users.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "node/cdi/modes_list.h"

namespace cdi = penstock::node::cdi;
using penstock::device::HostFile;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::map<std::string, HostFile> kWords{{"dev", HostFile::kDevice},
                                                      {"dir", HostFile::kFolder},
                                                      {"lib", HostFile::kFile},
                                                      {"sym", HostFile::kLink}};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto files = cdi::ParseFileList(text, "l4t.csv", kWords);
  if (!files.ok()) {
    if (!files.error().message().starts_with("l4t.csv:")) std::abort();
    return 0;
  }
  std::string again;
  for (const cdi::ListedFile& file : *files) {
    // No path leaves its folder or changes its meaning when it is written into a specification.
    if (!file.path.starts_with('/') || file.path.ends_with('/') ||
        (file.path + "/").find("/../") != std::string::npos)
      std::abort();
    if (file.path.find_first_of(std::string_view("\n\r\0", 3)) != std::string::npos ||
        file.path.find("::") != std::string::npos)
      std::abort();
    for (const auto& [word, kind] : kWords)
      if (kind == file.kind) again += word + ", " + file.path + "\n";
  }
  const auto second = cdi::ParseFileList(again, "l4t.csv", kWords);
  if (!second.ok() || *second != *files) std::abort();
  return 0;
}
