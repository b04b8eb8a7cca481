#include "adapter/kubelet/advertisement_filter.h"

#include <utility>

#include "base/core/strings.h"

namespace penstock::adapter::kubelet {
namespace {

using node::share::Offer;
using node::share::OfferedSlot;

/// Why every device is withheld; empty if there is no such reason.
std::string WhyAllWithheld(const AdvertisementFilter::Gate& gate) {
  if (!gate.listing.decided) return gate.listing.reason;
  if (!gate.missing.empty())
    return base::Join(gate.missing, ", ") +
           ": required (containers.requiredClasses) but missing on this node";
  if (gate.listing.cdi() && gate.written == nullptr)
    return "containers.deviceList requests CDI, but no CDI specifications are written on this node";
  return "";
}

}  // namespace

std::vector<Offer> AdvertisementFilter::Show(const std::vector<Offer>& offers, const Gate& gate) {
  withheld_.clear();
  std::string all = WhyAllWithheld(gate);
  const auto why_withheld = [&](const std::string& device) -> std::string {
    if (!all.empty()) return all;
    if (const auto found = gate.waiting.find(device); found != gate.waiting.end())
      return found->second;
    return gate.listing.cdi() && !gate.written->devices.contains(device)
               ? "no CDI specification names this device yet"
               : "";
  };
  std::set<std::string> still;
  std::vector<Offer> shown;
  for (const Offer& offer : offers) {
    if (offer.allocator != api::kKubeletAllocator) continue;
    Offer one = offer;
    one.slots.clear();
    for (OfferedSlot slot : offer.slots) {
      const std::string& device = slot.slot.device;
      if (std::string reason = why_withheld(device); !reason.empty()) {
        withheld_[device] = reason;
        if (!shown_.contains(device)) continue;
        if (std::exchange(slot.usable, false)) slot.reason = std::move(reason);
      }
      still.insert(device);
      one.slots.push_back(std::move(slot));
    }
    if (!one.slots.empty()) shown.push_back(std::move(one));
  }
  shown_ = std::move(still);
  return shown;
}

}  // namespace penstock::adapter::kubelet
