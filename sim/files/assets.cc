#include "sim/files/assets.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/core/strings.h"

namespace penstock::sim {

namespace fs = std::filesystem;

base::Result<Assets> FindAssets() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return base::ErrnoError(error.value(), "read /proc/self/exe");
  const fs::path prefix = program.parent_path().parent_path();
  return Assets{prefix / "lib/penstock-sim", prefix / "share/penstock"};
}

base::Result<std::string> ReadText(const std::string& path) {
  constexpr std::size_t kMost = 4u << 20;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (!file) return base::ErrnoError(errno, "read " + path);
  std::string text;
  char buffer[8192];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, file.get())) {
    text.append(buffer, got);
    if (text.size() > kMost)
      return base::Error(base::Code::kResourceExhausted, path + " is larger than 4 MiB");
  }
  if (std::ferror(file.get())) return base::ErrnoError(errno, "read " + path);
  return text;
}

base::Result<Catalogue> LoadCatalogue(const Assets& assets) {
  const std::string path = assets.share_folder + "/models/nvidia.yaml";
  ASSIGN(const std::string text, ReadText(path));
  return ReadCatalogue(text, path);
}

base::Result<std::vector<std::string>> MachineNames(const Assets& assets) {
  const std::string folder = assets.share_folder + "/machines";
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".yaml") names.push_back(at->path().stem());
  if (error) return base::ErrnoError(error.value(), "list " + folder);
  std::sort(names.begin(), names.end());
  return names;
}

base::Result<LoadedMachine> LoadMachine(const Assets& assets, const Catalogue& catalogue,
                                        const std::string& name_or_path) {
  const bool is_path =
      name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".yaml");
  std::string path = name_or_path;
  if (!is_path) {
    ASSIGN(const auto names, MachineNames(assets));
    if (std::find(names.begin(), names.end(), name_or_path) == names.end())
      return base::Error(base::Code::kNotFound, "unknown machine \"" + name_or_path +
                                                    "\"; available: " + base::Join(names, ", ") +
                                                    ", or the path of a machine file");
    path = assets.share_folder + "/machines/" + name_or_path + ".yaml";
  }
  ASSIGN(std::string text, ReadText(path));
  ASSIGN(Machine machine, ReadMachine(text, path, catalogue));
  return LoadedMachine{std::move(machine), std::move(text)};
}

}  // namespace penstock::sim
