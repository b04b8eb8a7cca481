// The backends of all vendors: the worker's half of all.h.
#include "vendor/all.h"
#include "vendor/nvidia/backend.h"

namespace penstock::vendor {

std::vector<std::string_view> Names() { return {"nvidia"}; }

std::unique_ptr<device::Backend> MakeBackend(std::string_view vendor, const device::Paths& paths) {
  if (vendor == "nvidia") return nvidia::MakeBackend(paths);
  return nullptr;
}

}  // namespace penstock::vendor
