// Every vendor there is: the one place that names them. Backends are linked into workers, dialects also into the agent.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/actions.h"
#include "device/backend.h"
#include "device/dialect.h"
#include "device/sharing.h"
#include "os/loop.h"
#include "os/process.h"

namespace penstock::vendor {

/// Names of the vendors whose backends a worker can hold: "nvidia".
std::vector<std::string_view> Names();

/// The backend of a vendor; null for an unknown name.
std::unique_ptr<device::Backend> MakeBackend(std::string_view vendor, const device::Paths& paths);

/// The dialects of all vendors; they live as long as the program. Links no backend.
const std::vector<const device::Dialect*>& Dialects();

/// The dialect of a vendor; null for an unknown name.
const device::Dialect* FindDialect(std::string_view vendor);

/// What can be done to a vendor's devices, on this loop; null for an unknown name. Links no backend.
std::unique_ptr<device::Actions> MakeActions(std::string_view vendor, os::Loop& control, const device::Paths& paths);

/// What servers through which devices are shared have to know of this machine.
struct ServerOptions {
  std::string driver_root = "/";
  std::string proc_root = "/proc";
  std::string root;            ///< folder of their pipes and logs, as this process sees it
  std::string host_root;       ///< the same as the host calls it
  bool for_containers = true;  ///< else processes of this machine use them
  std::string launcher;        ///< the program that starts them in a place of their own (os/launch.h)
};

/// A vendor's servers through which its devices can be shared, on this loop; null for one that has none. Links no backend.
std::unique_ptr<device::SharingService> MakeSharingService(std::string_view vendor, os::Loop& control, const ServerOptions& options);

/// Whether a process is such a server of any vendor: it is on a device for all who share it. Reads /proc: on an I/O thread.
bool IsServer(const std::string& proc_root, const os::ProcessInfo& process);

}  // namespace penstock::vendor
