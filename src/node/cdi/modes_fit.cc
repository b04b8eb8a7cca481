// Determines which platform this machine is.
#include <algorithm>

#include <fcntl.h>

#include "base/core/strings.h"
#include "node/cdi/dev_files.h"
#include "node/cdi/find_links.h"
#include "node/cdi/find_tree.h"
#include "node/cdi/modes.h"
#include "os/core/file.h"
#include "os/core/ld_cache.h"

namespace penstock::node::cdi {
namespace {

using device::CdiPlatform;

bool HasLibrary(const device::ContainerDriver& driver, const Places& places,
                const std::string& name) {
  const auto tree = DriverTree::Open(places);
  if (!tree.ok()) return false;
  auto folders = places.library_folders;
  folders.insert(folders.end(), driver.library_folders.begin(), driver.library_folders.end());
  for (const std::string& folder : folders)
    if (tree->Find(Below(folder, name), O_PATH).ok()) return true;
  const auto text = tree->Read("/etc/ld.so.cache");
  if (!text.ok()) return false;
  const auto cache = os::ReadLdCache(*text);
  return cache.ok() && std::ranges::any_of(*cache, [&](const os::LdCacheEntry& entry) {
           return entry.soname == name && tree->Find(entry.path, O_PATH).ok();
         });
}

bool HasSign(const CdiPlatform& platform, const Places& places) {
  const auto files = DevFiles::Open(places);
  const auto tree = DriverTree::Open(places);
  for (const std::string& sign : platform.signs) {
    if (sign.starts_with(kDev) ? files.ok() && files->Node(sign).ok()
                               : tree.ok() && tree->Find(sign, O_PATH).ok())
      return true;
  }
  if (platform.sign_file.empty()) return false;
  const auto text =
      platform.sign_file.starts_with(kSys)
          ? os::ReadFile(places.sysfs_root + "/" + platform.sign_file.substr(kSys.size()))
          : os::ReadFile(platform.sign_file);
  return text.ok() && base::ToLower(*text).starts_with(platform.sign_text);
}

}  // namespace

Fits FitsPlatform(const CdiPlatform& platform, const Input& input, const Places& places) {
  if (!HasSign(platform, places)) return Fits::kNo;
  if (platform.unless_library.empty()) return Fits::kYes;
  const auto driver = input.dialect->DriverForContainers(*input.driver);
  return HasLibrary(driver, places, platform.unless_library) ? Fits::kByModels : Fits::kYes;
}

bool AllOfModels(const CdiPlatform& platform, std::span<const device::Facts* const> devices) {
  const auto is_one = [&](const device::Facts* facts) {
    return std::ranges::any_of(platform.if_models, [&](const std::string& glob) {
      return base::GlobMatch(glob, facts->model);
    });
  };
  return !devices.empty() && std::ranges::all_of(devices, is_one);
}

}  // namespace penstock::node::cdi
