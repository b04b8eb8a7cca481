// What can be done to Acme's devices: a reset removes the faults from the machine's files. There
// are no sharing servers.
#include <memory>

#include "acme/machine.h"
#include "device/actions.h"
#include "device/sharing.h"
#include "os/loop.h"
#include "os/process/process.h"

namespace penstock::backend::acme {
namespace {

class AcmeActions final : public device::Actions {
 public:
  AcmeActions(os::Loop& control, const device::Paths& paths)
      : control_(control), machine_(paths.driver_root) {}

  std::vector<std::string> ResetTogether(const device::Facts& device,
                                         const std::vector<const device::Facts*>&) const override {
    return {device.id};
  }

  void Reset(const std::vector<device::Facts>& devices,
             std::function<void(base::Status)> done) override {
    base::Status status;
    for (const device::Facts& device : devices)
      if (status.ok()) status = machine_.Cure(device.id);
    control_.Post([alive = std::weak_ptr(alive_), done = std::move(done), status] {
      if (!alive.expired()) done(status);
    });
  }

 private:
  os::Loop& control_;
  const Machine machine_;
  const std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

std::unique_ptr<device::Actions> MakeActions(os::Loop& control, const device::Paths& paths) {
  return std::make_unique<AcmeActions>(control, paths);
}

std::unique_ptr<device::SharingService> MakeSharingService(os::Loop&,
                                                           const device::ServerOptions&) {
  return nullptr;
}

bool IsServer(const std::string&, const os::ProcessInfo&) { return false; }

std::string_view HealthSocket() { return ""; }

}  // namespace penstock::backend::acme
