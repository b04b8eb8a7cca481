// What the rows of vendors.inc stand for, by the vendor's name. Backends are linked into workers,
// dialects also into the agent.
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
#include "os/process/process.h"

namespace penstock::backend {

/// The vendors whose backends a worker can run: "nvidia", "amd".
std::vector<std::string_view> Names();

/// Creates the backend of a vendor; null for an unknown name.
std::unique_ptr<device::Backend> MakeBackend(std::string_view vendor, const device::Paths& paths);

/// The dialects of all vendors, with static lifetime. Links no backend.
const std::vector<const device::Dialect*>& Dialects();

/// The dialect of a vendor; null for an unknown name.
const device::Dialect* FindDialect(std::string_view vendor);

/// Creates the actions on a vendor's devices, on this loop; null for an unknown name. Links no
/// backend.
std::unique_ptr<device::Actions> MakeActions(std::string_view vendor, os::Loop& control,
                                             const device::Paths& paths);

/// Creates a vendor's sharing service, on this loop; null for a vendor that has none. Links no
/// backend.
std::unique_ptr<device::SharingService> MakeSharingService(std::string_view vendor,
                                                           os::Loop& control,
                                                           const device::ServerOptions& options);

/// Whether a process is a sharing server of any vendor, which uses a device on behalf of all its
/// clients, or the daemon that starts such servers. Reads /proc: call it on an I/O thread.
bool IsServer(const std::string& proc_root, const os::ProcessInfo& process);

/// The socket on which the vendor's exporter serves the health of devices to its device plugin;
/// empty where it has none.
std::string_view HealthSocketOf(std::string_view vendor);

}  // namespace penstock::backend
