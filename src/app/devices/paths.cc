#include "app/devices/paths.h"

#include <algorithm>

#include "os/core/file.h"
#include "os/device_file.h"

namespace penstock::app {
namespace {

const std::string kDev = "/dev";

/// Whether the dev root is itself a /dev: it has no dev/, but the file, or what each /dev has.
/// Nothing: it has none of these. The files of a driver root that is being replaced will be in its
/// dev/. Checked in this process's view, even for paths that the host names differently.
std::optional<bool> IsDev(const std::string& dev_root, const std::string& file) {
  if (os::Exists(BelowRoot(dev_root, kDev))) return false;
  if (os::Exists(BelowRoot(dev_root, file.substr(kDev.size()))) || os::HasDeviceFiles(dev_root))
    return true;
  return std::nullopt;
}

std::string InRoot(bool is_dev, const std::string& root, const std::string& file) {
  return BelowRoot(root, is_dev ? file.substr(kDev.size()) : file);
}

}  // namespace

std::string BelowRoot(const std::string& root, const std::string& path) {
  return root == "/" ? path : root + path;
}

std::string DevRootOf(const api::PathsConfig& paths) {
  return paths.dev_root.empty() ? paths.driver_root : paths.dev_root;
}

std::string HostDevRootOf(const api::PathsConfig& paths) {
  if (!paths.host_dev_root.empty()) return paths.host_dev_root;
  return paths.host_driver_root.empty() ? DevRootOf(paths) : paths.host_driver_root;
}

device::Paths PathsOf(const api::PathsConfig& paths, const std::string& library) {
  return {.driver_root = paths.driver_root,
          .library = library,
          .sysfs_root = paths.sysfs_root,
          .dev_root = DevRootOf(paths),
          .proc_root = paths.proc_root};
}

device::Paths PathsOf(const api::NodeConfig& config, std::string_view vendor) {
  return PathsOf(config.paths, api::OfVendor(config.paths.libraries, vendor));
}

node::cdi::Places PlacesOf(const api::NodeConfig& config) {
  const std::string& host_driver_root = config.paths.host_driver_root;
  return {.driver_root = config.paths.driver_root,
          .host_driver_root = host_driver_root,
          .dev_root = DevRootOf(config.paths),
          .host_dev_root =
              config.paths.host_dev_root.empty() ? host_driver_root : config.paths.host_dev_root,
          .sysfs_root = config.paths.sysfs_root,
          .proc_root = config.paths.proc_root};
}

os::MachinePaths MachinePathsOf(const api::NodeConfig& config) {
  const api::PathsConfig& paths = config.paths;
  std::string product = config.labels.machine_type_file;
  if (product.starts_with("/sys/"))
    product = paths.sysfs_root + product.substr(std::string("/sys").size());
  return {.sysfs_root = paths.sysfs_root,
          .proc_root = paths.proc_root,
          .os_release = paths.os_release,
          .product_file = product};
}

std::string OpenedPath(const std::string& dev_root, const std::string& file) {
  return InRoot(IsDev(dev_root, file).value_or(false), dev_root, file);
}

std::string OpenedPath(const api::PathsConfig& paths, const std::string& file) {
  return OpenedPath(DevRootOf(paths), file);
}

std::string HostDevicePaths::operator()(const std::string& file) {
  const auto has = [&file](const std::vector<device::DeviceFile>& files) {
    return std::ranges::find(files, file, &device::DeviceFile::path) != files.end();
  };
  for (const node::inventory::VendorEntry& vendor : inventory_->vendors) {
    // That of the host is where the configuration in force says.
    if (vendor.driver == nullptr || vendor.place == nullptr || !vendor.place->container) continue;
    const bool of_device =
        std::ranges::any_of(inventory_->devices, [&](const node::inventory::Entry& entry) {
          return entry.facts->vendor == vendor.vendor && has(entry.facts->files);
        });
    if (of_device || has(vendor.driver->files))
      return Below(vendor.place->dev_root, vendor.place->host_dev_root, file);
  }
  return Below(DevRootOf(config_->paths), HostDevRootOf(config_->paths), file);
}

std::string HostDevicePaths::Below(const std::string& dev_root, const std::string& root,
                                   const std::string& file) {
  std::optional<bool>& is_dev = is_dev_[dev_root];
  if (!is_dev) is_dev = IsDev(dev_root, file);
  return InRoot(is_dev.value_or(false), root, file);
}

}  // namespace penstock::app
