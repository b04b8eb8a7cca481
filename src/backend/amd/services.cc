// What can be done to AMD's GPUs: nothing yet. There are no sharing servers.
#include <memory>

#include "backend/amd/dialect/kinds.h"
#include "device/actions.h"
#include "device/sharing.h"
#include "os/loop.h"
#include "os/process/process.h"

namespace penstock::backend::amd {
namespace {

/// A reset of one GPU resets all that xGMI links with it, and only amdgpu knows when it needs one,
/// which it then does by itself.
class AmdActions final : public device::Actions {
 public:
  explicit AmdActions(os::Loop& control) : control_(control) {}

  std::vector<std::string> ResetTogether(
      const device::Facts& device, const std::vector<const device::Facts*>& all) const override {
    std::vector<std::string> together{device.id};
    for (const device::Facts* other : all)
      for (const device::Link& link : device.links)
        if (link.peer == other->id && link.fabric_lanes > 0) together.push_back(other->id);
    return together;
  }

  void Reset(const std::vector<device::Facts>&, std::function<void(base::Status)> done) override {
    control_.Post([alive = std::weak_ptr(alive_), done = std::move(done)] {
      if (!alive.expired())
        done(base::Error(base::Code::kUnimplemented,
                         "Penstock resets no AMD GPU: amdgpu does so where it can; "
                         "otherwise reload the driver or reboot"));
    });
  }

 private:
  os::Loop& control_;
  const std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

std::unique_ptr<device::Actions> MakeActions(os::Loop& control, const device::Paths&) {
  return std::make_unique<AmdActions>(control);
}

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
