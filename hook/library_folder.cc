// Finds the libraries of one folder by reading their ELF files.
#include "hook/library_folder.h"

#include <algorithm>
#include <unordered_map>

#include <dirent.h>

#include "os/core/elf.h"
#include "os/core/ld_cache.h"

namespace penstock::hook {
namespace {

// As glibc, sysdeps/generic/dl-cache.h, _dl_is_dso; dynamic linkers count as libraries, too.
bool IsLibraryName(std::string_view name) {
  const bool begins = name.starts_with("lib") || name.starts_with("ld-") ||
                      name.starts_with("ld.") || name.starts_with("ld64.");
  return begins && name.find(".so") != std::string_view::npos;
}

// A link is listed under its own name if that is the SONAME, or the SONAME up to ".so" (for
// compilers); any other link counts as another name of the file.
bool IsProperLink(const std::string& name, const std::string& soname) {
  return name == soname || (name.ends_with(".so") && soname.starts_with(name));
}

bool IsLink(const os::ConfinedTree& root, const std::string& path, const os::TreeEntry& entry) {
  return entry.type == DT_UNKNOWN ? root.ReadLink(path).ok() : entry.type == DT_LNK;
}

base::Result<SharedLibrary> ReadLibrary(const os::ConfinedTree& root, const std::string& folder,
                                        const os::TreeEntry& entry) {
  const std::string path = folder + "/" + entry.name;
  ASSIGN(const os::UniqueFd file, root.OpenRegular(path));
  ASSIGN(const os::ElfFacts facts, os::ReadElf(file.get(), path));
  const auto flags = os::LdCacheFlags(facts);
  if (!flags)
    return base::Error(base::Code::kUnimplemented, path + " is built for another architecture");
  SharedLibrary library{.soname = facts.soname.empty() ? entry.name : facts.soname,
                        .file = entry.name,
                        .flags = *flags};
  library.link = IsProperLink(entry.name, library.soname) && IsLink(root, path, entry);
  if (library.link) library.soname = entry.name;
  if (library.soname.find('/') != std::string::npos || library.soname == "." ||
      library.soname == "..")
    return base::Error(base::Code::kInvalidArgument,
                       path + " has a SONAME that is not a file name");
  return library;
}

bool IsBetter(const SharedLibrary& candidate, const SharedLibrary& known) {
  if (candidate.link != known.link) return known.link;
  return os::CompareLibraryNames(candidate.file, known.file) > 0;
}

}  // namespace

base::Result<std::vector<SharedLibrary>> FindLibraries(
    const os::ConfinedTree& root, const std::string& folder,
    const std::vector<os::TreeEntry>& entries,
    const std::function<bool(const std::string& file)>& passed_over, Work& work) {
  TRY(work.Spend(entries.size() * Work::kOfEntry));
  std::vector<SharedLibrary> libraries;
  std::unordered_map<std::string, std::size_t> places;  // by SONAME
  for (const os::TreeEntry& entry : entries) {
    if (!IsLibraryName(entry.name) || entry.type == DT_DIR || passed_over(entry.name)) continue;
    TRY(work.Spend(Work::kOfLibrary));
    auto library = ReadLibrary(root, folder, entry);
    if (!library.ok()) continue;
    const auto [place, is_new] = places.emplace(library->soname, libraries.size());
    if (is_new) {
      libraries.push_back(*std::move(library));
    } else if (SharedLibrary& known = libraries[place->second]; IsBetter(*library, known)) {
      known = *std::move(library);
    }
  }
  return libraries;
}

base::Result<bool> LinkSoname(const os::ConfinedTree& root, const std::string& folder,
                              const SharedLibrary& library) {
  const std::string link = folder + "/" + library.soname;
  if (library.link || library.soname == library.file || root.ReadLink(link).ok() ||
      root.Exists(link))
    return false;
  TRY(root.WriteLink(library.file, link));
  return true;
}

}  // namespace penstock::hook
