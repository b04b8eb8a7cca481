// Fuzzes a container's /etc/ld.so.conf and the files that it includes, which an image's author
// wrote. The input is a sequence of files separated by NUL.
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../oracle.h"
#include "hook/ld_config.h"
#include "os/core/file.h"
#include "os/core/testing/temporary_folder.h"

namespace {

using namespace penstock;
using fuzz::Require;

constexpr std::array<const char*, 5> kFiles = {hook::kLdConfig, "/etc/ld.so.conf.d/a.conf",
                                               "/etc/ld.so.conf.d/b.conf", "/opt/c.conf",
                                               hook::kDriverDropIn};
constexpr std::size_t kMostOfAFile = 512;

/// The tree of a container, whose files are overwritten for each input.
struct Container {
  Container() {
    for (const char* name : {"/etc/ld.so.conf.d", "/opt"})
      std::filesystem::create_directories(folder.path() + name);
    // File types other than regular files that an image may contain there.
    std::filesystem::create_directory_symlink("/etc", folder.path() + "/etc/loop");
    std::filesystem::create_directory(folder.path() + "/etc/ld.so.conf.d/folder.conf");
    std::filesystem::create_symlink("/proc/self/mem",
                                    folder.path() + "/etc/ld.so.conf.d/link.conf");
    Require(::mkfifo((folder.path() + "/etc/ld.so.conf.d/pipe.conf").c_str(), 0600) == 0);
    for (const char* name : kFiles)
      files.emplace_back(
          ::open((folder.path() + name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  }

  void Set(std::size_t file, std::string_view text) const {
    const int fd = files[file].get();
    Require(::ftruncate(fd, 0) == 0 && ::lseek(fd, 0, SEEK_SET) == 0 &&
            os::WriteAll(fd, text, "a file").ok());
  }

  const os::TemporaryFolder folder;
  std::vector<os::UniqueFd> files;
};

void CheckFolder(const os::ConfinedTree& root, const hook::LdConfigFolder& folder) {
  Require(folder.path.starts_with('/') && os::CleanPath(folder.path) == folder.path);
  Require(folder.path.find('\n') == std::string::npos &&
          folder.path.find('#') == std::string::npos);
  if (folder.file.empty()) return;
  Require(folder.file != hook::kDriverDropIn && folder.file != hook::kCompatDropIn);
  const auto named = hook::ReadFolders(root, folder.file);
  Require(named.size() == kMostOfAFile ||
          std::find(named.begin(), named.end(), folder.path) != named.end());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Container container;
  const auto parts = fuzz::Parts(data, size, kFiles.size());
  for (std::size_t i = 0; i < kFiles.size(); ++i) container.Set(i, parts[i]);
  const auto root = os::ConfinedTree::Open(container.folder.path());
  Require(root.ok());

  const auto folders = hook::ReadLdConfig(*root);
  Require(folders.size() <= kMostOfAFile);
  std::set<std::string> paths;
  std::vector<std::string> ordered;
  for (const auto& folder : folders) {
    CheckFolder(*root, folder);
    Require(paths.insert(folder.path).second);
    ordered.push_back(folder.path);
  }
  if (folders.size() < kMostOfAFile) Require(paths.contains("/usr/lib") && paths.contains("/lib"));
  // Penstock's own file with these folders lists the same folders.
  container.Set(kFiles.size() - 1, hook::WriteFolders(ordered));
  const auto again = hook::ReadFolders(*root, hook::kDriverDropIn);
  Require(again == ordered);
  return 0;
}
