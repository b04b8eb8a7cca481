// Collects each vendor's labels from its dialect and the host's from host_features.h, and keeps the
// valid ones.
#include "node/label/labels.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>

#include "api/labels.h"
#include "base/log.h"
#include "node/label/host_features.h"
#include "node/share/assignment.h"

namespace penstock::node::label {
namespace {

bool IsPresent(const inventory::Entry& entry) {
  return entry.health.state != device::HealthState::kGone;
}

/// "pci.class" from the device's details; 0 if it is missing.
std::uint32_t ClassOf(const device::Facts& facts) {
  const auto found = facts.details.find("pci.class");
  if (found == facts.details.end() || !found->second.starts_with("0x")) return 0;
  std::uint32_t number = 0;
  const char* const end = found->second.data() + found->second.size();
  const auto [stop, error] = std::from_chars(found->second.data() + 2, end, number, 16);
  return error == std::errc() && stop == end ? number : 0;
}

/// A vendor's hardware, from the PCI bus and from the inventory. The bus was read once; a device
/// that appeared later is only in the inventory.
struct VendorHas {
  device::LabelFacts facts;
  std::set<PciKind> kinds;
};

device::LabelShare ShareOf(const std::string& device, const LabelShares& shares) {
  const auto found = shares.find(device);
  return found != shares.end()
             ? found->second
             : device::LabelShare{.isolation = std::string(ToString(device::Isolation::kHardware))};
}

VendorHas Gather(const inventory::Snapshot& inventory, const inventory::VendorEntry& vendor,
                 const device::Dialect& dialect, const LabelContext& context,
                 const LabelShares& shares) {
  VendorHas has;
  has.facts.driver = vendor.driver.get();
  has.facts.machine = context.machine.product;
  if (context.config.timestamp) has.facts.timestamp = context.timestamp;
  has.facts.part_names = share::PartNamesOf(context.parts, context.profiled_parts, dialect);
  for (const inventory::Entry& entry : inventory.devices) {
    if (entry.facts->vendor != vendor.vendor || !IsPresent(entry)) continue;
    if (!entry.facts->parent.empty()) {
      has.facts.parts.push_back(entry.facts.get());
      has.facts.part_shares.push_back(ShareOf(entry.facts->id, shares));
      continue;
    }
    has.facts.devices.push_back(entry.facts.get());
    has.facts.shares.push_back(ShareOf(entry.facts->id, shares));
    if (const std::uint32_t code = ClassOf(*entry.facts); IsAcceleratorClass(code))
      has.kinds.emplace(static_cast<std::uint16_t>(code >> 8), dialect.pci_vendor());
  }
  for (const os::PciFunction& function : context.machine.pci) {
    if (function.vendor != dialect.pci_vendor() || !IsAcceleratorClass(function.class_code))
      continue;
    has.kinds.emplace(static_cast<std::uint16_t>(function.class_code >> 8), function.vendor);
    has.facts.pci_configs.push_back(function.config);
  }
  return has;
}

void LogValue(base::LogLevel level, std::string_view message, const std::string& key,
              const std::string& value) {
  constexpr std::size_t kMaxShown = 100;
  base::Log(level, message, {{"key", key}, {"value", value.substr(0, kMaxShown)}});
}

/// An invalid label is dropped, because Kubernetes would reject the other labels with it; a value
/// that is only too long is cut.
LabelSet Valid(LabelSet labels) {
  for (auto at = labels.begin(); at != labels.end();) {
    const auto value = api::FitLabelValue(at->second);
    if (api::IsLabelKey(at->first) && value) {
      if (*value != at->second)
        LogValue(base::kInfo, "label value truncated to the length that Kubernetes accepts",
                 at->first, at->second);
      at->second = *value;
      ++at;
    } else {
      LogValue(base::kWarn, "label omitted: Kubernetes would reject it", at->first, at->second);
      at = labels.erase(at);
    }
  }
  return labels;
}

std::vector<bool> GoneDevices(const inventory::Snapshot& inventory) {
  std::vector<bool> gone;
  for (const inventory::Entry& entry : inventory.devices) gone.push_back(!IsPresent(entry));
  return gone;
}

}  // namespace

LabelSet ComputeLabels(const inventory::Snapshot& inventory, const device::DialectOf& dialect_of,
                       const LabelContext& context, const LabelShares& shares) {
  LabelSet labels;
  std::set<PciKind> accelerators;
  for (const inventory::VendorEntry& vendor : inventory.vendors) {
    const device::Dialect* dialect = dialect_of(vendor.vendor);
    if (dialect == nullptr) continue;
    const VendorHas has = Gather(inventory, vendor, *dialect, context, shares);
    labels.merge(dialect->Labels(has.facts));
    accelerators.insert(has.kinds.begin(), has.kinds.end());
  }
  if (!context.feature_discovery)
    std::erase_if(labels,
                  [](const auto& label) { return !label.first.starts_with(api::kFeaturePrefix); });
  if (context.host_features) labels.merge(HostFeatures(context.machine, accelerators));
  return Valid(std::move(labels));
}

void Labels::Set(LabelContext context) {
  context_ = std::move(context);
  context_differs_ = true;
}

void Labels::Update(const share::NodeDevices& now) {
  if ((!begun_ && !context_differs_) || !Differs(now)) return;
  LabelSet labels = ComputeLabels(*now.inventory, dialect_of_, context_, shares_);
  if (std::exchange(begun_, true) && labels == *published_.Get()) return;
  published_.Set(std::move(labels));
}

/// The servers' snapshot also changes with their clients, the desired assignments with settings
/// that no label shows, and the inventory with each reading.
bool Labels::Differs(const share::NodeDevices& now) {
  const bool context = std::exchange(context_differs_, false);
  const bool facts = std::exchange(facts_generation_, now.inventory->facts_generation) !=
                     now.inventory->facts_generation;
  std::vector<bool> gone = GoneDevices(*now.inventory);
  const bool other_gone = std::exchange(gone_, gone) != gone;
  return SharesDiffer(now) || context || facts || other_gone;
}

bool Labels::SharesDiffer(const share::NodeDevices& now) {
  if (now.desired == desired_ && now.servers == servers_) return false;
  desired_ = now.desired;
  servers_ = now.servers;
  LabelShares shares = share::LabelSharesOf(now.desired->assignments, *now.servers);
  const auto same = [](const auto& a, const auto& b) {
    const auto parts = [](const device::LabelShare& share) {
      return std::tie(share.shape, share.renamed, share.isolation);
    };
    return a.first == b.first && parts(a.second) == parts(b.second);
  };
  if (std::equal(shares.begin(), shares.end(), shares_.begin(), shares_.end(), same)) return false;
  shares_ = std::move(shares);
  return true;
}

}  // namespace penstock::node::label
