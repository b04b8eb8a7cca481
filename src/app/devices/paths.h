// Translates the configured paths: for a vendor's backend, for the kernel's log, and for
// containers. Opens nothing.
#pragma once

#include <string>
#include <string_view>

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

/// The path at which this process opens a device file ("/dev/nvidia0"): the dev root either
/// contains dev/ or is itself a /dev.
std::string OpenedPath(const std::string& dev_root, const std::string& file);
std::string OpenedPath(const api::PathsConfig& paths, const std::string& file);

/// The path of a device file on the host, which goes into answers to the kubelet: below
/// hostDevRoot, else below hostDriverRoot, else as this process opens it.
std::string HostDevicePath(const api::PathsConfig& paths, const std::string& file);

/// The same, where the file belongs to a driver that was opened elsewhere: below its place.
std::string HostDevicePath(const api::PathsConfig& paths,
                           const node::inventory::Snapshot& inventory, const std::string& file);

}  // namespace penstock::app
