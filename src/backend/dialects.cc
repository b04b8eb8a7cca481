// The dialects of all vendors: the part of all.h that the agent links. Links no backend.
#include "backend/all.h"

#define PENSTOCK_VENDOR(name)          \
  namespace penstock::backend::name {  \
  const device::Dialect& TheDialect(); \
  }
#include PENSTOCK_VENDORS
#undef PENSTOCK_VENDOR

namespace penstock::backend {

const std::vector<const device::Dialect*>& Dialects() {
  static const std::vector<const device::Dialect*> dialects{
#define PENSTOCK_VENDOR(name) &name::TheDialect(),
#include PENSTOCK_VENDORS
#undef PENSTOCK_VENDOR
  };
  return dialects;
}

const device::Dialect* FindDialect(std::string_view vendor) {
  for (const device::Dialect* dialect : Dialects())
    if (dialect->vendor() == vendor) return dialect;
  return nullptr;
}

}  // namespace penstock::backend
