// What the configured paths mean: for a vendor's backend, for the kernel's log, for a container on this machine. Opens nothing.
#pragma once

#include <string>

#include "api/node_config.h"
#include "device/backend.h"
#include "os/machine_facts.h"

namespace penstock::app {

/// The paths of a configuration as a backend takes them.
device::Paths PathsOf(const api::NodeConfig& config);

/// Where the machine's own facts are read.
os::MachinePaths MachinePathsOf(const api::NodeConfig& config);

/// Where this process opens a device file ("/dev/nvidia0"): the dev root is the folder that holds dev/, or is a /dev itself.
std::string OpenedPath(const api::PathsConfig& paths, const std::string& file);

/// What the machine calls it, which is what the kubelet is answered: hostDevRoot, else hostDriverRoot, else as this process opens it.
std::string HostDevicePath(const api::PathsConfig& paths, const std::string& file);

}  // namespace penstock::app
