#include "backend/amd/hive.h"

#include "backend/amd/dialect/kinds.h"

namespace penstock::backend::amd {

std::optional<device::Evidence> HiveResets::Update(const AmdGpu& gpu, bool in_reset) {
  const std::uint64_t id = gpu.partitions.front().node.hive_id;
  if (id == 0) return in_reset ? std::optional(Standing(gpu, kInReset, 0, "")) : std::nullopt;
  Hive& hive = hives_[id];
  hive.in_reset.erase(gpu.id);
  if (in_reset) hive.in_reset.insert(gpu.id);
  if (hive.in_reset.empty()) {
    hives_.erase(id);
    return std::nullopt;
  }
  if (hive.first.empty()) hive.first = gpu.id;
  return Standing(gpu, kInReset, 0, hive.first == gpu.id ? "" : hive.first);
}

}  // namespace penstock::backend::amd
