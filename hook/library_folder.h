// Finds the shared libraries in a folder of a container, as ldconfig does (glibc, elf/ldconfig.c,
// search_dir).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "hook/work.h"
#include "os/core/confined_tree.h"

namespace penstock::hook {

struct SharedLibrary {
  std::string soname;      ///< the name that programs load; for a link, its own name
  std::string file;        ///< file name in the folder
  std::int32_t flags = 0;  ///< as in ld.so.cache
  bool link = false;
};

/// The libraries among the entries of a folder, one per SONAME: files are preferred to links, then
/// the higher version by name. Files for which `passed_over` returns true are not read. Files that
/// are not libraries for this kind of machine are left out. kResourceExhausted: it would need more
/// than `work` has left.
base::Result<std::vector<SharedLibrary>> FindLibraries(
    const os::ConfinedTree& root, const std::string& folder,
    const std::vector<os::TreeEntry>& entries,
    const std::function<bool(const std::string& file)>& passed_over, Work& work);

/// Creates the link that a library's SONAME needs, beside the library: "libcuda.so.1" →
/// "libcuda.so.550.54.15". Does nothing if that name exists already, whatever it is. Returns
/// whether it created a link.
base::Result<bool> LinkSoname(const os::ConfinedTree& root, const std::string& folder,
                              const SharedLibrary& library);

}  // namespace penstock::hook
