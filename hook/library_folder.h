// The shared libraries of a folder of a container, as ldconfig sees them (glibc, elf/ldconfig.c, search_dir).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "hook/work.h"
#include "os/core/confined_tree.h"

namespace penstock::hook {

struct Library {
  std::string soname;      ///< what programs ask for; of a link, its own name
  std::string file;        ///< file name in the folder
  std::int32_t flags = 0;  ///< of ld.so.cache
  bool link = false;
};

/// The libraries among the entries of a folder, one for each SONAME: files before links, then the newer one by name. Files that
/// `passed_over` says yes to are not read. What is no library for this kind of machine is left out. kResourceExhausted: more than `work`
/// has left.
base::Result<std::vector<Library>> FindLibraries(const os::ConfinedTree& root, const std::string& folder,
                                                 const std::vector<os::TreeEntry>& entries,
                                                 const std::function<bool(const std::string& file)>& passed_over, Work& work);

/// Makes the link that a library's SONAME needs, beside it: "libcuda.so.1" → "libcuda.so.550.54.15". Nothing is done where something by
/// that name is there already, whatever it is. Whether one was made.
base::Result<bool> LinkSoname(const os::ConfinedTree& root, const std::string& folder, const Library& library);

}  // namespace penstock::hook
