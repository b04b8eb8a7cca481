// The backends of all vendors: the part of all.h that workers link.
#include "backend/all.h"

#define PENSTOCK_VENDOR(name)                                         \
  namespace penstock::backend::name {                                 \
  std::unique_ptr<device::Backend> MakeBackend(const device::Paths&); \
  }
#include PENSTOCK_VENDORS
#undef PENSTOCK_VENDOR

namespace penstock::backend {

std::vector<std::string_view> Names() {
  return {
#define PENSTOCK_VENDOR(name) #name,
#include PENSTOCK_VENDORS
#undef PENSTOCK_VENDOR
  };
}

std::unique_ptr<device::Backend> MakeBackend(std::string_view vendor, const device::Paths& paths) {
#define PENSTOCK_VENDOR(name) \
  if (vendor == #name) return name::MakeBackend(paths);
#include PENSTOCK_VENDORS
#undef PENSTOCK_VENDOR
  return nullptr;
}

}  // namespace penstock::backend
