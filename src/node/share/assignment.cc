#include "node/share/assignment.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/core/strings.h"
#include "node/share/describe.h"

namespace penstock::node::share {
namespace {

constexpr std::string_view kSeparator = "::";  // NVIDIA's device plugin, internal/rm/devices.go

device::Shape ShapeOf(const api::SharingRule& rule) {
  if (rule.replicas <= 1 || rule.strategy == api::ShareStrategy::kNone) return {};
  return {rule.strategy == api::ShareStrategy::kServer ? device::Sharing::kServer
                                                       : device::Sharing::kTimeSlicing,
          rule.replicas};
}

/// Determines the resource names of whole devices by rules; remembers which rules matched a device.
class Namer {
 public:
  explicit Namer(const api::NodeConfig& config)
      : config_(config), matches_(config.resources.size(), false) {}

  bool IsByProfile(const device::Facts& facts, const device::Dialect& dialect) const {
    return !facts.profile.empty() && NamesOf(dialect) == device::PartNames::kOfProfiles;
  }

  std::string ResourceOf(const device::Facts& facts, const device::Dialect& dialect) {
    if (IsByProfile(facts, dialect)) return dialect.PartResource(facts);
    const api::ResourceRule* first = nullptr;
    for (std::size_t i = 0; i < config_.resources.size(); ++i) {
      if (!device::ModelMatches(config_.resources[i].pattern, facts.model)) continue;
      matches_[i] = true;
      if (first == nullptr) first = &config_.resources[i];
    }
    if (first != nullptr) return first->name;
    if (config_.resource_per_model) return dialect.ModelResource(facts);
    return NamesOf(dialect) == device::PartNames::kOfProfiles ? dialect.WholeResource(facts)
                                                              : std::string(dialect.resource());
  }

  void AddRemarks(std::vector<std::string>& remarks) const {
    for (std::size_t i = 0; i < matches_.size(); ++i)
      if (!matches_[i])
        remarks.push_back(base::Item("resources", i) + ": matches no device of this node");
  }

 private:
  device::PartNames NamesOf(const device::Dialect& dialect) const {
    return PartNamesOf(config_.parts, config_.profiled_parts, dialect);
  }

  const api::NodeConfig& config_;
  std::vector<bool> matches_;
};

/// Applies sharing rules to one device after another, because a rule may be limited to a number of
/// devices.
class Sharer {
 public:
  explicit Sharer(const std::vector<api::SharingRule>& rules) {
    for (const api::SharingRule& rule : rules)
      uses_.push_back({&rule, 0, 0, std::vector<bool>(rule.devices.size(), false)});
  }

  /// `counts`: the device counts towards the rule's `most`.
  const api::SharingRule* RuleFor(const inventory::Entry& entry, const std::string& resource,
                                  bool counts) {
    const api::SharingRule* first = nullptr;
    for (Use& use : uses_) {
      if (!Matches(use, entry, resource)) continue;
      ++use.matches;
      if (first != nullptr || (counts && use.rule->most > 0 && use.used >= use.rule->most))
        continue;
      use.used += counts ? 1 : 0;
      first = use.rule;
    }
    return first;
  }

  void AddRemarks(std::vector<std::string>& remarks) const {
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      const Use& use = uses_[i];
      const std::string key = base::Item("sharing.rules", i) + ": ";
      for (std::size_t name = 0; use.matches > 0 && name < use.named.size(); ++name)
        if (!use.named[name])
          remarks.push_back(key + "no device on this node matches \"" + use.rule->devices[name] +
                            "\"");
      if (use.matches == 0) {
        remarks.push_back(key + "matches no device of this node");
      } else if (use.used == 0) {
        remarks.push_back(key +
                          "applies to no device on this node: earlier rules apply to all devices "
                          "that it matches");
      } else if (use.used < use.rule->most) {
        remarks.push_back(key + "requests " + std::to_string(use.rule->most) +
                          " devices but applies to " + std::to_string(use.used));
      }
    }
  }

 private:
  struct Use {
    const api::SharingRule* rule;
    int matches, used;
    std::vector<bool> named;  // which of its devices exist
  };

  static bool Matches(Use& use, const inventory::Entry& entry, const std::string& resource) {
    if (!use.rule->resource.empty() && use.rule->resource != resource) return false;
    bool any = use.named.empty();
    for (std::size_t i = 0; i < use.named.size(); ++i) {
      if (!Selects({use.rule->devices[i]}, entry)) continue;
      use.named[i] = any = true;
    }
    return any;
  }

  std::vector<Use> uses_;
};

/// By PCI address, because indices shift while a device is missing.
std::vector<const inventory::Entry*> InAddressOrder(const inventory::Snapshot& inventory) {
  std::vector<const inventory::Entry*> order;
  for (const inventory::Entry& entry : inventory.devices) order.push_back(&entry);
  std::ranges::stable_sort(order, [](const inventory::Entry* a, const inventory::Entry* b) {
    return std::tie(a->facts->vendor, a->facts->pci) < std::tie(b->facts->vendor, b->facts->pci);
  });
  return order;
}

/// The device is gone, and another one is at its PCI address.
bool IsReplaced(const inventory::Entry& gone, const inventory::Snapshot& inventory) {
  return gone.health.state == device::HealthState::kGone && gone.facts->pci &&
         std::ranges::any_of(inventory.devices, [&gone](const inventory::Entry& other) {
           return other.health.state != device::HealthState::kGone &&
                  other.facts->vendor == gone.facts->vendor && other.facts->pci == gone.facts->pci;
         });
}

void Share(const api::SharingRule& rule, const inventory::Entry& entry,
           const device::Dialect& dialect, Assignment& assignment,
           std::vector<std::string>& remarks) {
  const device::Facts& facts = *entry.facts;
  const device::Shape shape = ShapeOf(rule);
  if (shape.shares == 1) return;
  if (std::string why = dialect.WhyNotShared(facts, shape); !why.empty()) {
    // A divided device is not offered in any case; its parts are shared.
    if (entry.withheld != inventory::kDivided)
      remarks.push_back("sharing: " + facts.model + " " + facts.id + " is not offered: " + why);
    assignment.allocator.clear();
    assignment.reason = std::move(why);
    return;
  }
  assignment.shape = shape;
  assignment.renamed = !rule.rename.empty() && rule.rename != assignment.resource;
  if (assignment.renamed) assignment.resource = rule.rename;
  // A process cannot use the servers of two parts.
  assignment.single = rule.fail_requests_greater_than_one ||
                      (shape.sharing == device::Sharing::kServer && !facts.parent.empty());
}

/// A move takes precedence over the configuration, but enables no allocator.
void Apply(const Move& move, const EnabledAllocators& enabled, Assignment& assignment) {
  const std::string& to = move.allocator;
  assignment.allocator = enabled.contains(to) ? to : "";
  assignment.reason = move.reason;
  if (assignment.allocator != to)
    assignment.reason = "it was manually assigned to " + DescribeAllocator(to) +
                        ", whose allocator is closed on this node";
}

const Move* MoveOf(const inventory::Entry& entry, const Moves& moves) {
  if (const auto own = moves.find(entry.facts->id); own != moves.end()) return &own->second;
  for (const inventory::Ancestor& whole : entry.ancestors)
    if (const auto move = moves.find(whole.device); move != moves.end())
      return move->second.with_parts ? &move->second : nullptr;
  return nullptr;
}

/// Offers the parts of divided devices by the strategy of the configuration.
class PartsOffer {
 public:
  PartsOffer(const api::NodeConfig& config, const inventory::Snapshot& inventory,
             const device::DialectOf& dialect_of) {
    for (const inventory::Entry& entry : inventory.devices)
      if (const device::Dialect* dialect = dialect_of(entry.facts->vendor))
        names_.try_emplace(entry.facts->vendor,
                           PartNamesOf(config.parts, config.profiled_parts, *dialect));
    FindCommon(inventory);
  }

  /// Why this device is not offered; empty if it is.
  std::string WhyNot(const inventory::Entry& entry) const {
    const device::Facts& facts = *entry.facts;
    if (entry.withheld == inventory::kDivided) return "";
    const auto names = names_.find(facts.vendor);
    if (names != names_.end() && names->second == device::PartNames::kNone && !facts.parent.empty())
      return "parts of devices are not offered (parts.strategy, or parts.profiledStrategy: none)";
    const auto common = common_.find(facts.vendor);
    if (common == common_.end() || facts.profile == common->second) return "";
    const auto name = [](const std::string& profile) {
      return profile.empty() ? "whole" : "a part of the profile " + profile;
    };
    return "parts.strategy: single offers devices of one kind under one name: most devices of this "
           "node are " +
           (common->second.empty() ? std::string("whole") : "divided into " + common->second) +
           ", and this one is " + name(facts.profile) + "; divide all alike, or use mixed";
  }

 private:
  /// The kind of most devices: whole, or divided into parts of one profile; of several, divided
  /// ones, and the first profile by name. Only where some are divided, and of vendors whose devices
  /// and parts have one name.
  void FindCommon(const inventory::Snapshot& inventory) {
    std::map<std::string, std::map<std::string, std::set<std::string>>>
        kinds;                      // by vendor, profile
    std::set<std::string> divided;  // vendors
    for (const inventory::Entry& entry : inventory.devices) {
      const device::Facts& facts = *entry.facts;
      if (entry.health.state == device::HealthState::kGone || !entry.withheld.empty()) continue;
      const std::string& whole = entry.ancestors.empty() ? facts.id : entry.ancestors.back().device;
      kinds[facts.vendor][facts.profile].insert(whole);
      if (!facts.profile.empty()) divided.insert(facts.vendor);
    }
    for (const std::string& vendor : divided) {
      const auto names = names_.find(vendor);
      if (names == names_.end() || names->second != device::PartNames::kOfDevices) continue;
      const std::string* best = nullptr;
      std::size_t most = 0;
      for (const auto& [profile, devices] : kinds[vendor]) {
        // Whole devices come first in the map.
        if (devices.size() < most || (devices.size() == most && !best->empty())) continue;
        best = &profile;
        most = devices.size();
      }
      common_[vendor] = *best;
    }
  }

  std::map<std::string, device::PartNames> names_;  // by vendor
  std::map<std::string, std::string> common_;       // vendor → profile; empty: whole
};

void Withdraw(const Withdrawal& withdrawal, Assignment& assignment) {
  if (withdrawal.listed) {
    assignment.withdrawn = withdrawal.reason;
    return;
  }
  assignment.allocator.clear();
  assignment.reason = withdrawal.reason;
}

/// The withdrawal that concerns a device: its own, or that of a device that it is a part of.
const Withdrawal* WithdrawalOf(const inventory::Entry& entry, const Withdrawals& withdrawals) {
  const std::string& id = entry.facts->id;
  if (const auto own = withdrawals.find(id); own != withdrawals.end()) return &own->second;
  for (const inventory::Ancestor& whole : entry.ancestors) {
    const auto found = withdrawals.find(whole.device);
    if (found != withdrawals.end() && found->second.with_parts &&
        !found->second.except.contains(id))
      return &found->second;
  }
  return nullptr;
}

/// Why parts.onDemand has no effect, names that select nothing, and devices on which no part can be
/// created.
void AddRemarksOnDemand(const api::NodeConfig& config, const EnabledAllocators& enabled,
                        const inventory::Snapshot& inventory, const device::DialectOf& dialect_of,
                        std::vector<std::string>& remarks) {
  if (config.parts_on_demand.empty()) return;
  if (OnDemandDevices(config, enabled).empty()) {
    const api::Allocator& cutting = api::CuttingAllocator();
    remarks.push_back(std::string("parts.onDemand: has no effect: ") +
                      (enabled.contains(cutting.name)
                           ? "it needs parts.strategy: mixed"
                           : std::string(cutting.in_words) + " get no devices (" +
                                 api::EnabledKey(cutting) + ")"));
    return;
  }
  for (std::size_t i = 0; i < config.parts_on_demand.size(); ++i) {
    const std::string& wanted = config.parts_on_demand[i];
    const std::string key = base::Item("parts.onDemand", i) + ": ";
    bool any = false;
    for (const inventory::Entry& entry : inventory.devices) {
      if (!entry.ancestors.empty() || !Selects({wanted}, entry)) continue;
      any = true;
      const device::Dialect* dialect = dialect_of(entry.facts->vendor);
      const device::PartTerms* terms = dialect == nullptr ? nullptr : dialect->part_terms();
      const std::string name = terms == nullptr ? "" : terms->mode;
      const auto mode = std::ranges::find(entry.facts->modes, name, &device::Mode::name);
      if (mode == entry.facts->modes.end())
        remarks.push_back(key + Describe(*entry.facts) + " cannot be divided");
      else if (mode->current != terms->on)
        remarks.push_back(key + Describe(*entry.facts) + " is offered whole, because its mode " +
                          terms->mode + " is not " + terms->on +
                          "; apply a layout that enables it");
    }
    if (!any) remarks.push_back(key + "no device of this node matches \"" + wanted + "\"");
  }
}

}  // namespace

device::PartNames PartNamesOf(api::PartsStrategy all, api::PartsStrategy of_profiles,
                              const device::Dialect& dialect) {
  const device::PartTerms* terms = dialect.part_terms();
  const bool own =
      terms != nullptr && terms->has_naming_option && of_profiles != api::PartsStrategy::kDefault;
  switch (own ? of_profiles : all) {
    case api::PartsStrategy::kNone: return device::PartNames::kNone;
    case api::PartsStrategy::kSingle: return device::PartNames::kOfDevices;
    case api::PartsStrategy::kMixed: return device::PartNames::kOfProfiles;
    case api::PartsStrategy::kDefault: break;
  }
  return dialect.usual_part_names();
}

DesiredAssignments ComputeAssignments(const api::NodeConfig& config,
                                      const EnabledAllocators& enabled, const Moves& moves,
                                      const inventory::Snapshot& inventory,
                                      const device::DialectOf& dialect_of,
                                      const Withdrawals& withdrawals) {
  DesiredAssignments desired;
  const AllocatorOf allocator_of = AssignAllocators(config, enabled);
  const std::vector<std::string> on_demand = OnDemandDevices(config, enabled);
  Namer namer(config);
  Sharer sharer(config.sharing.rules);
  const PartsOffer parts(config, inventory, dialect_of);
  for (const inventory::Entry* entry : InAddressOrder(inventory)) {
    const device::Facts& facts = *entry->facts;
    const device::Dialect* dialect = dialect_of(facts.vendor);
    if (dialect == nullptr) continue;
    Assignment assignment{.allocator = allocator_of(*entry),
                          .resource = namer.ResourceOf(facts, *dialect),
                          .by_profile = namer.IsByProfile(facts, *dialect)};
    if (const Move* move = MoveOf(*entry, moves)) Apply(*move, enabled, assignment);
    assignment.on_demand = IsForPartsOnDemand(on_demand, *entry);
    std::string why = parts.WhyNot(*entry);
    const bool counts =
        entry->withheld != inventory::kDivided && why.empty() && !IsReplaced(*entry, inventory);
    if (const api::SharingRule* rule = sharer.RuleFor(*entry, assignment.resource, counts))
      Share(*rule, *entry, *dialect, assignment, desired.remarks);
    if (!why.empty()) {
      assignment.allocator.clear();
      assignment.reason = std::move(why);
    }
    if (const Withdrawal* withdrawal = WithdrawalOf(*entry, withdrawals))
      Withdraw(*withdrawal, assignment);
    desired.assignments.emplace(facts.id, std::move(assignment));
  }
  if (inventory.devices.empty()) return desired;
  AddRemarksOnDemand(config, enabled, inventory, dialect_of, desired.remarks);
  namer.AddRemarks(desired.remarks);
  sharer.AddRemarks(desired.remarks);
  return desired;
}

std::vector<device::SharedSet> SetsOf(const Assignments& assignments,
                                      const inventory::Snapshot& inventory,
                                      const ledger::Snapshot& ledger) {
  std::map<std::string_view, const ledger::Slot*>
      held;  // device → the slot that represents all held slots of it
  for (const ledger::Lease& lease : ledger.leases)
    for (const ledger::Slot& slot : lease.slots) {
      const auto [known, first] = held.emplace(slot.device, &slot);
      if (!first && known->second->shape < slot.shape) known->second = &slot;
    }
  using Key = std::pair<std::string, std::string>;  // name and vendor
  std::map<Key, device::SharedSet> sets;
  std::set<Key> in_use, withdrawn;
  for (const inventory::Entry& entry : inventory.devices) {
    const auto holder = held.find(entry.facts->id);
    const auto assignment = assignments.find(entry.facts->id);
    device::Shape shape;
    std::string name;
    if (assignment != assignments.end() && !assignment->second.allocator.empty() &&
        entry.withheld != inventory::kDivided) {
      shape = assignment->second.shape;
      name = assignment->second.resource;
    }
    if (holder != held.end()) {
      shape = holder->second->shape;
      if (!holder->second->resource.empty()) name = holder->second->resource;
    }
    if (shape.sharing != device::Sharing::kServer || name.empty()) continue;
    if (!entry.facts->parent.empty()) {
      // One that no program can use now, such as a MIG device whose compute instances another
      // program has destroyed, has no server that could start.
      const bool usable = entry.withheld.empty() || holder != held.end();
      if (entry.health.state == device::HealthState::kGone || !usable) continue;
      name = entry.facts->id;
    }
    const Key key(name, entry.facts->vendor);
    if (holder != held.end())
      in_use.insert(key);
    else if (assignment != assignments.end() && !assignment->second.withdrawn.empty())
      withdrawn.insert(key);
    device::SharedSet& set = sets[key];
    set.name = name;
    set.members.push_back({entry.facts, shape.shares});
  }
  std::vector<device::SharedSet> list;
  for (auto& [key, set] : sets)
    // While a device is reset, its set has no server unless a share is held: one of the
    // others alone would have to end again before that of all could start.
    if (!withdrawn.contains(key) || in_use.contains(key)) list.push_back(std::move(set));
  return list;
}

std::map<std::string, device::LabelShare> LabelSharesOf(const Assignments& assignments,
                                                        const device::SharedDevices& servers) {
  std::map<std::string, device::LabelShare> shares;
  for (const auto& [id, assignment] : assignments)
    shares[id] = {assignment.shape, assignment.renamed,
                  std::string(device::ToString(IsolationOf(id, assignment.shape, servers)))};
  return shares;
}

ledger::Slot SlotOf(const inventory::Entry& entry, const std::string& resource,
                    const device::Shape& shape, int share) {
  const std::string& device = entry.facts->id;
  return {SlotId(device, shape, share), device, resource, shape, entry.ancestors,
          PartCapacityOf(entry)};
}

device::Capacity PartCapacityOf(const inventory::Entry& entry) {
  return entry.ancestors.empty() ? device::Capacity{} : CapacityOf(*entry.facts);
}

std::string SlotId(const std::string& device, const device::Shape& shape, int share) {
  return shape.shares == 1 ? device : device + std::string(kSeparator) + std::to_string(share);
}

std::string DeviceOf(std::string_view slot_id) {
  return std::string(slot_id.substr(0, slot_id.find(kSeparator)));
}

}  // namespace penstock::node::share
