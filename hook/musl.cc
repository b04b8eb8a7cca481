// update-ldcache for musl, which has no cache but a file with the search path (musl,
// ldso/dynlink.c).
#include <algorithm>

#include "base/core/strings.h"
#include "hook/hooks.h"
#include "hook/library_folder.h"

namespace penstock::hook {
namespace {

struct Linker {
  std::string name;    // musl's name of the architecture
  std::int32_t flags;  // of the libraries that it loads, as in ld.so.cache
};

std::vector<Linker> Linkers() {
#if defined(__aarch64__)
  return {{"aarch64", 0x0a03}};
#else
  return {{"x86_64", 0x0303}, {"i386", 0x0003}};
#endif
}

std::string LinkerPath(const Linker& linker) { return "/lib/ld-musl-" + linker.name + ".so.1"; }

// musl takes the first file with the right name and fails if it is for another architecture, so
// each path gets only the folders with libraries of its architecture.
bool HasLibrariesFor(const os::ConfinedTree& root, const std::string& folder, const Linker& linker,
                     Work& work) {
  const auto entries = root.List(folder);
  if (!entries.ok()) return false;
  const auto libraries = FindLibraries(
      root, folder, *entries, [](const std::string&) { return false; }, work);
  return libraries.ok() && std::ranges::any_of(*libraries, [&](const SharedLibrary& library) {
           return library.flags == linker.flags;
         });
}

// The search path to extend: a file replaces musl's built-in path.
std::vector<std::string> PathOf(const os::ConfinedTree& root, const std::string& file) {
  auto text = root.Read(file, 64u << 10);
  if (!text.ok()) return {"/lib", "/usr/local/lib", "/usr/lib"};
  std::replace(text->begin(), text->end(), '\n', ':');
  std::vector<std::string> path = base::Split(*text, ':');
  std::erase_if(path, [](const std::string& folder) { return folder.empty(); });
  return path;
}

}  // namespace

bool HasMusl(const os::ConfinedTree& root) { return root.Exists(LinkerPath(Linkers().front())); }

Status UpdateMuslPaths(const os::ConfinedTree& root, const std::vector<std::string>& folders,
                       Work& work) {
  for (const Linker& linker : Linkers()) {
    if (!root.Exists(LinkerPath(linker))) continue;
    const std::string file = "/etc/ld-musl-" + linker.name + ".path";
    const std::vector<std::string> there = PathOf(root, file);
    std::vector<std::string> path;
    for (const std::string& folder : folders) {
      if (std::ranges::find(there, folder) == there.end() &&
          HasLibrariesFor(root, folder, linker, work))
        path.push_back(folder);
    }
    if (path.empty()) continue;
    path.insert(path.end(), there.begin(), there.end());
    TRY(root.Write(file, base::Join(path, "\n") + "\n"));
  }
  return {};
}

}  // namespace penstock::hook
