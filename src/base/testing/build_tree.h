// Locates the build folder and the source folder of a running test program. Located at run time, so
// that the same sources compile to the same programs in every checkout, and the compiler cache and
// the record of passed tests apply across checkouts.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace penstock::base {

/// The folder that CMake configured: the nearest folder above the running program that contains
/// CMakeCache.txt. Ends the program with a message if there is none.
inline const std::filesystem::path& BuildFolder() {
  static const std::filesystem::path folder = [] {
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
    for (std::filesystem::path at = program.parent_path(); at != at.root_path();
         at = at.parent_path())
      if (std::filesystem::exists(at / "CMakeCache.txt")) return at;
    std::fprintf(stderr, "%s: not in a build folder of CMake; run it where it was built\n",
                 program.c_str());
    std::exit(2);
  }();
  return folder;
}

/// The top of the source tree, from CMakeCache.txt.
inline const std::filesystem::path& SourceFolder() {
  static const std::filesystem::path folder = [] {
    constexpr std::string_view kKey = "CMAKE_HOME_DIRECTORY:INTERNAL=";
    std::ifstream cache(BuildFolder() / "CMakeCache.txt");
    for (std::string line; std::getline(cache, line);)
      if (line.starts_with(kKey)) return std::filesystem::path(line.substr(kKey.size()));
    std::fprintf(stderr, "%s/CMakeCache.txt: has no line %s\n", BuildFolder().c_str(), kKey.data());
    std::exit(2);
  }();
  return folder;
}

/// The absolute path of a file of the sources, or of the build; `path` is relative to the folder
/// above.
inline std::string SourcePath(std::string_view path) { return SourceFolder() / path; }
inline std::string BuildPath(std::string_view path) { return BuildFolder() / path; }

/// The content of a file of the sources.
inline std::string ReadSource(std::string_view path) {
  std::ifstream file(SourcePath(path));
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace penstock::base
