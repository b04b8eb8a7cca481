// What acts on the devices of all vendors: the serving agent's half of all.h. Links no backend.
#include "vendor/all.h"
#include "vendor/nvidia/actions.h"

namespace penstock::vendor {

std::unique_ptr<device::Actions> MakeActions(std::string_view vendor, os::Loop& control, const device::Paths& paths) {
  if (vendor == "nvidia") return nvidia::MakeActions(control, paths);
  return nullptr;
}

}  // namespace penstock::vendor
