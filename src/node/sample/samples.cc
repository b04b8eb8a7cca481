// Looking values up.
#include "node/sample/samples.h"

#include <algorithm>
#include <utility>

namespace penstock::node::sample {

const Latest* DeviceSample::Find(device::QuantityId quantity, int link) const {
  const auto found = std::lower_bound(values.begin(), values.end(), std::pair(quantity, link), [](const Latest& one, const auto& key) {
    return std::pair(one.value.quantity, one.value.link) < key;
  });
  return found != values.end() && found->value.quantity == quantity && found->value.link == link ? &*found : nullptr;
}

const DeviceSample* Snapshot::Find(std::string_view device) const {
  const auto found = devices.find(device);
  return found == devices.end() ? nullptr : found->second.get();
}

}  // namespace penstock::node::sample
