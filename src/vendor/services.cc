// What acts on the devices of all vendors: the serving agent's half of all.h. Links no backend.
#include "vendor/all.h"
#include "vendor/nvidia/actions.h"
#include "vendor/nvidia/mps/processes.h"
#include "vendor/nvidia/mps/service.h"

namespace penstock::vendor {

std::unique_ptr<device::Actions> MakeActions(std::string_view vendor, os::Loop& control, const device::Paths& paths) {
  if (vendor == "nvidia") return nvidia::MakeActions(control, paths);
  return nullptr;
}

std::unique_ptr<device::SharingService> MakeSharingService(std::string_view vendor, os::Loop& control, const ServerOptions& options) {
  if (vendor != "nvidia") return nullptr;
  return nvidia::MakeMpsService(control, {.driver_root = options.driver_root,
                                          .root = options.root,
                                          .host_root = options.host_root,
                                          .proc_root = options.proc_root,
                                          .own_shm = options.for_containers,
                                          .launcher = options.launcher});
}

bool IsServer(const std::string& proc_root, const os::ProcessInfo& process) { return nvidia::mps::IsServer(proc_root, process); }

}  // namespace penstock::vendor
