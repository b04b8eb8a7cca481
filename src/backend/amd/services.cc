// AMD's GPUs have no sharing servers; their exporter has a socket for the health of devices.
#include <memory>

#include "device/sharing.h"
#include "os/loop.h"
#include "os/process/process.h"

namespace penstock::backend::amd {

std::unique_ptr<device::SharingService> MakeSharingService(os::Loop&,
                                                           const device::ServerOptions&) {
  return nullptr;
}

bool IsServer(const std::string&, const os::ProcessInfo&) { return false; }

/// ROCm, k8s-device-plugin, internal/pkg/exporter/health.go.
std::string_view HealthSocket() {
  return "/var/lib/amd-metrics-exporter/amdgpu_device_metrics_exporter_grpc.socket";
}

}  // namespace penstock::backend::amd
