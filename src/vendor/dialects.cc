// The dialects of all vendors. Links no backend: the agent includes this half of all.h only.
#include "vendor/all.h"
#include "vendor/nvidia/dialect/dialect.h"

namespace penstock::vendor {

const std::vector<const device::Dialect*>& Dialects() {
  static const std::vector<const device::Dialect*> dialects{&nvidia::TheDialect()};
  return dialects;
}

const device::Dialect* FindDialect(std::string_view vendor) {
  for (const device::Dialect* dialect : Dialects())
    if (dialect->vendor() == vendor) return dialect;
  return nullptr;
}

}  // namespace penstock::vendor
