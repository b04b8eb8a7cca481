// Translates the configured paths: for a vendor's backend, for the kernel's log, and for
// containers. Opens nothing.
#pragma once

#include <string>
#include <string_view>

#include "api/config/node_config.h"
#include "device/backend.h"
#include "node/cdi/spec_writer.h"
#include "os/machine_facts.h"

namespace penstock::app {

/// The paths for a vendor's backend.
device::Paths PathsOf(const api::NodeConfig& config, std::string_view vendor);

/// The paths that specifications use, from a configuration.
node::cdi::Places PlacesOf(const api::NodeConfig& config);

/// Where the machine's own facts are read.
os::MachinePaths MachinePathsOf(const api::NodeConfig& config);

/// The path at which this process opens a device file ("/dev/nvidia0"): the dev root either
/// contains dev/ or is itself a /dev.
std::string OpenedPath(const api::PathsConfig& paths, const std::string& file);

/// The path of a device file on the host, which goes into answers to the kubelet: below
/// hostDevRoot, else below hostDriverRoot, else as this process opens it.
std::string HostDevicePath(const api::PathsConfig& paths, const std::string& file);

}  // namespace penstock::app
