#include "backend/amd/missing_parts.h"

#include <algorithm>
#include <utility>

#include "backend/amd/dialect/kinds.h"
#include "base/core/strings.h"

namespace penstock::backend::amd {
namespace {

constexpr std::size_t kMostCards = 4;   // that a message names
constexpr std::size_t kDrmMinors = 64;  // of cards, up to Linux 6.12 (drivers/gpu/drm/drm_drv.c)

/// amdgpu makes the devices of partitions as long as there are minors, and leaves out the rest
/// (amdgpu_xcp.c, "Skip xcp node #%d when out of drm node resource").
std::string WhyMissing(const Machine& machine, const std::vector<AmdGpu>& gpus) {
  const Machine::Cards cards = machine.DrmCards(gpus);
  if (cards.all < kDrmMinors)
    return "the driver made no device for it; the kernel's log may say why (\"Skip xcp node\")";
  std::string why = "all " + std::to_string(cards.all) + " minors of DRM are taken";
  if (cards.others.size() > kMostCards)
    why +=
        ", by " + std::to_string(cards.others.size()) + " cards that are not of this driver, too";
  else if (!cards.others.empty())
    why += ", by cards that are not of this driver, too: " + base::Join(cards.others, ", ");
  return why;
}

}  // namespace

std::optional<unsigned> PartitionsIn(std::string_view mode, std::string_view available) {
  const auto has = [available](std::string_view word) {
    return available.find(word) != std::string_view::npos;
  };
  if (mode == "SPX") return 1;
  if (mode == "DPX") return 2;
  if (mode == "TPX") return 3;
  if (mode == "QPX") return 4;
  if (mode != "CPX" || !has("CPX")) return std::nullopt;
  // Linux, amdgpu_gfx_get_available_compute_partition.
  if (has("QPX")) return 8;
  if (has("TPX")) return 6;
  return has("DPX") ? 4 : 2;
}

std::optional<device::Evidence> MissingParts::Look(const Machine& machine,
                                                   const std::vector<AmdGpu>& gpus,
                                                   const AmdGpu& gpu, const std::string& mode,
                                                   const std::string& generation) {
  const auto expected = PartitionsIn(
      mode, mode == "CPX" ? machine.PciFile(gpu.pci, "available_compute_partition") : "");
  std::vector<std::string> missing;
  for (unsigned xcp = 0; xcp < expected.value_or(0); ++xcp)
    if (std::ranges::find(gpu.partitions, xcp, &Partition::xcp) == gpu.partitions.end())
      missing.push_back(std::to_string(xcp));
  const auto settled = [&] {
    const auto now = ReadGeneration(machine.sysfs());
    return now.ok() && *now == generation && machine.ComputeMode(gpu) == mode;
  };
  if (missing.empty() || !settled()) {
    seen_.erase(gpu.id);
    return std::nullopt;
  }
  Seen& seen = seen_[gpu.id];
  if (seen.generation != generation || seen.mode != mode) {
    seen = {generation, mode, {}, ""};
    return std::nullopt;
  }
  // Hundreds of files are read for this, so only when a card has come or gone.
  auto cards = machine.sysfs().List("/class/drm").value_or({});
  if (seen.why.empty() || cards != seen.cards)
    seen = {generation, mode, std::move(cards), WhyMissing(machine, gpus)};
  return Standing(gpu, kPartitionsMissing, missing.size(),
                  "it has " + std::to_string(*expected - missing.size()) + " of the " +
                      std::to_string(*expected) + " partitions of the mode " + mode +
                      "; missing: " + base::Join(missing, ", ") + ", because " + seen.why);
}

}  // namespace penstock::backend::amd
