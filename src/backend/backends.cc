// The backends of all vendors: the part of all.h that workers link.
#include "backend/all.h"
#include "backend/nvidia/backend.h"

namespace penstock::backend {

std::vector<std::string_view> Names() { return {"nvidia"}; }

std::unique_ptr<device::Backend> MakeBackend(std::string_view vendor, const device::Paths& paths) {
  if (vendor == "nvidia") return nvidia::MakeBackend(paths);
  return nullptr;
}

}  // namespace penstock::backend
