#include "app/devices/paths.h"

#include "os/core/file.h"

namespace penstock::app {
namespace {

std::string DevRoot(const api::PathsConfig& paths) {
  return paths.dev_root.empty() ? paths.driver_root : paths.dev_root;
}

std::string Below(const std::string& root, const std::string& path) {
  return root == "/" ? path : root + path;
}

/// Whether the dev root contains dev/. Checked in this process's view, even for paths that the host
/// names differently.
bool HasDev(const api::PathsConfig& paths) { return os::Exists(Below(DevRoot(paths), "/dev")); }

std::string InRoot(const api::PathsConfig& paths, const std::string& root,
                   const std::string& file) {
  return Below(root, HasDev(paths) ? file : file.substr(std::string("/dev").size()));
}

}  // namespace

device::Paths PathsOf(const api::NodeConfig& config, std::string_view vendor) {
  const api::PathsConfig& paths = config.paths;
  return {.driver_root = paths.driver_root,
          .library = api::ConfigOf(config, vendor).library,
          .sysfs_root = paths.sysfs_root,
          .dev_root = DevRoot(paths),
          .proc_root = paths.proc_root};
}

node::cdi::Places PlacesOf(const api::NodeConfig& config) {
  const std::string& host_driver_root = config.paths.host_driver_root;
  return {.driver_root = config.paths.driver_root,
          .host_driver_root = host_driver_root,
          .dev_root = DevRoot(config.paths),
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

std::string OpenedPath(const api::PathsConfig& paths, const std::string& file) {
  return InRoot(paths, DevRoot(paths), file);
}

std::string HostDevicePath(const api::PathsConfig& paths, const std::string& file) {
  if (!paths.host_dev_root.empty()) return InRoot(paths, paths.host_dev_root, file);
  if (!paths.host_driver_root.empty()) return InRoot(paths, paths.host_driver_root, file);
  return OpenedPath(paths, file);
}

}  // namespace penstock::app
