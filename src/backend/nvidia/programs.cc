// Finds programs in a driver root and pairs them with the libraries they were built for.
#include "backend/nvidia/programs.h"

#include <array>
#include <cstdlib>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/nvidia/dialect/kinds.h"
#include "base/core/strings.h"
#include "os/core/root.h"

namespace penstock::backend::nvidia {
namespace {

// Debian has nvidia-cuda-mps-server in /usr/sbin.
constexpr std::array<std::string_view, 8> kProgramFolders = {
    "/usr/bin", "/bin",      "/usr/local/bin", "/usr/local/nvidia/bin",
    "/opt/bin", "/usr/sbin", "/sbin",          "/usr/local/sbin"};

constexpr std::array<std::string_view, 4> kLoaders = {
    "/lib64/ld-linux-x86-64.so.2", "/usr/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1",
    "/usr/lib/ld-linux-aarch64.so.1"};

/// The real path of a file in the root, with absolute links followed inside the root; empty if
/// there is no such file.
std::string Resolve(const os::Root& root, const std::string& path) {
  const auto file = root.OpenFile(path, O_PATH);
  if (!file.ok()) return "";
  const std::string real =
      os::ReadLink("/proc/self/fd/" + std::to_string(file->get())).value_or("");
  return ::access(real.c_str(), X_OK) == 0 ? real : "";
}

std::vector<std::string> Folders(const std::string& driver_root) {
  std::vector<std::string> folders;
  const char* path = ::getenv("PATH");
  if (driver_root == "/" && path != nullptr)
    for (const std::string& folder : base::Split(path, ':'))
      if (folder.starts_with('/')) folders.push_back(folder);
  folders.insert(folders.end(), kProgramFolders.begin(), kProgramFolders.end());
  return folders;
}

/// The driver's library folders in this root, as an LD_LIBRARY_PATH.
std::string LibraryPath(const std::string& driver_root) {
  std::vector<std::string> folders;
  for (const std::string_view folder : kLibraryFolders)
    if (const std::string path = driver_root + std::string(folder); os::Exists(path))
      folders.push_back(path);
  return base::Join(folders, ":");
}

// CUDA and loader settings of this process's caller are not meant for the driver's programs.
std::vector<std::string> CleanEnvironment() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("CUDA_") && !text.starts_with("LD_")) environment.emplace_back(text);
  }
  return environment;
}

}  // namespace

std::string OwnLoader(const std::string& driver_root) {
  if (driver_root == "/") return "";
  const auto root = os::Root::Open(driver_root);
  if (!root.ok()) return "";
  for (const std::string_view loader : kLoaders)
    if (std::string path = Resolve(*root, std::string(loader)); !path.empty()) return path;
  return "";
}

std::string ProgramFolders(const std::string& driver_root, bool inside) {
  std::vector<std::string> folders = Folders(driver_root);
  if (driver_root != "/" && !inside)
    for (std::string& folder : folders) folder.insert(0, driver_root);
  return base::Join(folders, ":");
}

base::Result<Program> FindProgram(const std::string& driver_root, std::string_view name) {
  const std::string where = driver_root == "/" ? "on this machine" : "below " + driver_root;
  const Error missing(Code::kNotFound,
                      "there is no " + std::string(name) + " " + where +
                          ": install the programs of the NVIDIA driver (nvidia-utils, "
                          "nvidia-compute-utils), or specify its location with --driver-root");
  const auto root = os::Root::Open(driver_root);
  if (!root.ok()) return missing;
  Program program;
  for (const std::string& folder : Folders(driver_root)) {
    program.path = Resolve(*root, folder + "/" + std::string(name));
    if (!program.path.empty()) break;
  }
  if (program.path.empty()) return missing;
  program.inside = program.path;
  if (const std::string base = Resolve(*root, "/");
      base != "/" && program.path.starts_with(base + "/"))
    program.inside = program.path.substr(base.size());
  program.environment = CleanEnvironment();
  program.command = {program.path};
  if (driver_root == "/") return program;
  const std::string libraries = LibraryPath(driver_root);
  // A root with its own C library needs its own loader: the machine's would refuse that library.
  if (const std::string loader = OwnLoader(driver_root); !loader.empty())
    program.command = {loader, "--library-path", libraries, program.path};
  else if (!libraries.empty())
    program.environment.push_back("LD_LIBRARY_PATH=" + libraries);
  return program;
}

}  // namespace penstock::backend::nvidia
