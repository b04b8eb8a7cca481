// A vendor whose driver consists of real modules of Debian's kernel, which are loaded without any
// hardware: amdgpu, two that it uses as if they belonged to it, and vgem, which keeps devices from
// it. As NVIDIA's driver it could be installed by containers.
#include <memory>

#include "device/actions.h"
#include "device/sharing.h"
#include "device/testing/acme.h"
#include "os/loop.h"
#include "os/process/process.h"

namespace penstock::backend::emulated {
namespace {

class EmulatedDialect final : public device::testing::AcmeDialect {
 public:
  std::string_view vendor() const override { return "emulated"; }
  const device::KernelDriver* kernel_driver() const override { return &driver_; }

 private:
  const device::KernelDriver driver_{.module = "amdgpu",
                                     .modules = {"gpu_sched", "drm_ttm_helper"},
                                     .rivals = {"vgem"},
                                     .device_files = {"kfd"},
                                     .control = "/dev/kfd",
                                     .libraries = {"/usr/lib/emulated/libdriver.so.1"},
                                     .container_root = "emulated/driver",
                                     .digest_file = "emulated/driver.state",
                                     .pid_file = "emulated/driver.pid",
                                     .ready_files = {"emulated/ready"}};
};

}  // namespace

const device::Dialect& TheDialect() {
  static const EmulatedDialect dialect;
  return dialect;
}

std::unique_ptr<device::Actions> MakeActions(os::Loop&, const device::Paths&) { return nullptr; }

std::unique_ptr<device::SharingService> MakeSharingService(os::Loop&,
                                                           const device::ServerOptions&) {
  return nullptr;
}

bool IsServer(const std::string&, const os::ProcessInfo&) { return false; }

std::string_view HealthSocket() { return ""; }

}  // namespace penstock::backend::emulated
