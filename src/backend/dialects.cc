// The dialects of all vendors: the part of all.h that the agent links. Links no backend.
#include "backend/all.h"
#include "backend/nvidia/dialect/dialect.h"

namespace penstock::backend {

const std::vector<const device::Dialect*>& Dialects() {
  static const std::vector<const device::Dialect*> dialects{&nvidia::TheDialect()};
  return dialects;
}

const device::Dialect* FindDialect(std::string_view vendor) {
  for (const device::Dialect* dialect : Dialects())
    if (dialect->vendor() == vendor) return dialect;
  return nullptr;
}

}  // namespace penstock::backend
