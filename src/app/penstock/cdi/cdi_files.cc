#include "app/penstock/cdi/cdi_files.h"

#include <set>

#include <sys/stat.h>
#include <unistd.h>

#include "os/core/file.h"

namespace penstock::app {

namespace {

using api::cdi::DeviceNode;

/// Checks a device file as engines do: the target of a symbolic link does not matter
/// (pkg/cdi/container-edits_unix.go, deviceInfoFromPath).
std::string WhyNoDeviceFile(const DeviceNode& node) {
  const std::string& path = node.host_path.empty() ? node.path : node.host_path;
  if (!node.type.empty() && node.major.value_or(0) != 0)
    return "";  // an engine needs no more than this
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return "device file " + path + " does not exist";
  if (S_ISLNK(status.st_mode))
    return "device file " + path + " is a symbolic link, which engines do not follow";
  if (!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode) && !S_ISFIFO(status.st_mode))
    return path + " is not a device file";
  return "";
}

std::string WhyNoProgram(const api::cdi::Hook& hook) {
  if (hook.name == "startContainer") return "";  // the program is in the container
  if (!os::Exists(hook.path)) return "the hook program " + hook.path + " does not exist";
  if (::access(hook.path.c_str(), X_OK) != 0)
    return "the hook program " + hook.path + " cannot be executed";
  return "";
}

void AddMissing(const api::cdi::CdiEdits& edits, std::set<std::string>& missing) {
  const auto add = [&missing](std::string why) {
    if (!why.empty()) missing.insert(std::move(why));
  };
  for (const auto& node : edits.nodes) add(WhyNoDeviceFile(node));
  for (const auto& hook : edits.hooks) add(WhyNoProgram(hook));
  // Only mounts whose source is a path of the host; a tmpfs has none.
  for (const auto& mount : edits.mounts)
    if (mount.host_path.starts_with('/') && !os::Exists(mount.host_path))
      add(mount.host_path + ", the source of a mount, does not exist");
}

}  // namespace

std::vector<std::string> DefaultSpecFolders() {
  return {std::begin(api::cdi::kFolders), std::end(api::cdi::kFolders)};
}

std::vector<api::cdi::SpecFile> ReadSpecFolders(const std::vector<std::string>& folders) {
  std::vector<api::cdi::SpecFile> files;
  for (std::size_t i = 0; i < folders.size(); ++i)
    for (os::FolderFile& file :
         os::ReadFolder(folders[i], api::cdi::kSuffixes, api::cdi::kMaxBytes))
      files.push_back({std::move(file.path), static_cast<int>(i), std::move(file.text)});
  return files;
}

std::vector<std::string> Missing(const api::cdi::Spec& spec) {
  std::set<std::string> missing;
  AddMissing(spec.edits, missing);
  for (const auto& device : spec.devices) AddMissing(device.edits, missing);
  return {missing.begin(), missing.end()};
}

}  // namespace penstock::app
