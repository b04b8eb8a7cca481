// Acme's dialect as unit tests use it, on a machine that is read from files.
#include "acme/machine.h"
#include "device/testing/acme.h"

namespace penstock::backend::acme {
namespace {

class MachineDialect final : public device::testing::AcmeDialect {
 public:
  std::vector<std::string> DriverPaths(const device::Paths& paths) const override {
    const Machine machine(paths.driver_root);
    return {machine.driver_file(), machine.devices_folder()};
  }
};

}  // namespace

const device::Dialect& TheDialect() {
  static const MachineDialect dialect;
  return dialect;
}

}  // namespace penstock::backend::acme
