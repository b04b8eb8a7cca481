// Translates the configured paths: for a vendor's backend, for the kernel's log, and for
// containers. Opens nothing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/config/node_config.h"
#include "device/backend.h"
#include "node/cdi/spec_writer.h"
#include "node/inventory/inventory.h"
#include "os/machine_facts.h"

namespace penstock::app {

/// A path below a root, which may be "/".
std::string BelowRoot(const std::string& root, const std::string& path);

/// The dev root, as this process sees it and as the host does.
std::string DevRootOf(const api::PathsConfig& paths);
std::string HostDevRootOf(const api::PathsConfig& paths);

/// The paths for a vendor's backend. `library`: see device::Paths.
device::Paths PathsOf(const api::PathsConfig& paths, const std::string& library);
device::Paths PathsOf(const api::NodeConfig& config, std::string_view vendor);

/// The paths that specifications use, from a configuration.
node::cdi::Places PlacesOf(const api::NodeConfig& config);

/// Where the machine's own facts are read.
os::MachinePaths MachinePathsOf(const api::NodeConfig& config);

/// The path at which this process opens a device file ("/dev/nvidia0"): in the dev root's dev/,
/// also before that is there, unless the dev root is itself a /dev, with the file or "null" in it.
std::string OpenedPath(const std::string& dev_root, const std::string& file);
std::string OpenedPath(const api::PathsConfig& paths, const std::string& file);

/// Paths of device files on the host, for one answer to the kubelet: below hostDevRoot, else below
/// hostDriverRoot, else as this process opens them; below its place if the file belongs to a driver
/// that was opened elsewhere. Looks at each dev root once.
class HostDevicePaths {
 public:
  HostDevicePaths(std::shared_ptr<const api::NodeConfig> config,
                  std::shared_ptr<const node::inventory::Snapshot> inventory)
      : config_(std::move(config)), inventory_(std::move(inventory)) {}

  std::string operator()(const std::string& file);

 private:
  std::string Below(const std::string& dev_root, const std::string& root, const std::string& file);

  std::shared_ptr<const api::NodeConfig> config_;
  std::shared_ptr<const node::inventory::Snapshot> inventory_;
  std::map<std::string, std::optional<bool>> is_dev_;  // of dev roots; nothing: not known yet
};

}  // namespace penstock::app
