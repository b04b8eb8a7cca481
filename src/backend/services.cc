// The actions and sharing services of all vendors: the part of all.h that the serving agent links.
// Links no backend.
#include "backend/all.h"
#include "backend/nvidia/actions.h"
#include "backend/nvidia/mps/processes.h"
#include "backend/nvidia/mps/service.h"

namespace penstock::backend {

std::unique_ptr<device::Actions> MakeActions(std::string_view vendor, os::Loop& control,
                                             const device::Paths& paths) {
  if (vendor == "nvidia") return nvidia::MakeActions(control, paths);
  return nullptr;
}

std::unique_ptr<device::SharingService> MakeSharingService(std::string_view vendor,
                                                           os::Loop& control,
                                                           const ServerOptions& options) {
  if (vendor != "nvidia") return nullptr;
  return nvidia::MakeMpsService(control, {.driver_root = options.driver_root,
                                          .root = options.root,
                                          .host_root = options.host_root,
                                          .proc_root = options.proc_root,
                                          .own_shm = options.for_containers,
                                          .launcher = options.launcher});
}

bool IsServer(const std::string& proc_root, const os::ProcessInfo& process) {
  return nvidia::mps::IsServer(proc_root, process);
}

}  // namespace penstock::backend
