// Rules over facts, in order.
#include "node/share/wish.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/strings.h"
#include "node/share/assign.h"

namespace penstock::node::share {
namespace {

constexpr std::string_view kSeparator = "::";  // NVIDIA's device plugin, internal/rm/devices.go

device::Shape ShapeOf(const api::SharingRule& rule) {
  if (rule.replicas <= 1 || rule.strategy == api::ShareStrategy::kNone) return {};
  return {rule.strategy == api::ShareStrategy::kMps ? device::Sharing::kMps : device::Sharing::kTimeSlicing, rule.replicas};
}

std::string ResourceOf(const api::NodeConfig& config, const device::Facts& facts, const device::Dialect& dialect) {
  for (const api::ResourceRule& rule : config.resources)
    if (device::ModelMatches(rule.pattern, facts.model)) return rule.name;
  return config.resource_per_model ? dialect.ModelResource(facts) : std::string(dialect.resource());
}

/// Applies sharing rules to one device after another, in order of index: a rule may be for so many devices only.
class Sharer {
 public:
  explicit Sharer(const std::vector<api::SharingRule>& rules) : rules_(rules), used_(rules.size(), 0) {}

  const api::SharingRule* RuleFor(const device::Facts& facts, const std::string& resource) {
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      const api::SharingRule& rule = rules_[i];
      if (!rule.resource.empty() && rule.resource != resource) continue;
      if (!Selects(rule.devices, facts) || (rule.most > 0 && used_[i] >= rule.most)) continue;
      ++used_[i];
      return &rule;
    }
    return nullptr;
  }

  void AddRemarks(std::vector<std::string>& remarks) const {
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      const std::string key = "sharing.rules[" + std::to_string(i) + "]: ";
      if (used_[i] == 0) {
        remarks.push_back(key + "matches no device of this node");
      } else if (used_[i] < rules_[i].most) {
        remarks.push_back(key + "asks for " + std::to_string(rules_[i].most) + " devices and matches " + std::to_string(used_[i]));
      }
    }
  }

 private:
  const std::vector<api::SharingRule>& rules_;
  std::vector<int> used_;
};

void Share(const api::SharingRule& rule, const device::Facts& facts, const device::Dialect& dialect, Wish& wish,
           std::vector<std::string>& remarks) {
  const device::Shape shape = ShapeOf(rule);
  if (shape.shares == 1) return;
  if (std::string why = dialect.WhyNotShared(facts, shape); !why.empty()) {
    remarks.push_back("sharing: " + facts.model + " " + facts.id + " is offered nowhere: " + why);
    wish.door.clear();
    wish.reason = std::move(why);
    return;
  }
  wish.shape = shape;
  wish.renamed = !rule.rename.empty() && rule.rename != wish.resource;
  if (wish.renamed) wish.resource = rule.rename;
  wish.single = rule.fail_requests_greater_than_one;
}

}  // namespace

Wished ComputeWishes(const api::NodeConfig& config, OpenDoors open, const Moves& moves, const inventory::Snapshot& inventory,
                     const DialectOf& dialect_of) {
  Wished wished;
  const DoorOf door_of = AssignDoors(config, open.kubelet, open.local);
  Sharer sharer(config.sharing.rules);
  for (const inventory::Entry& entry : inventory.devices) {
    const device::Facts& facts = *entry.facts;
    const device::Dialect* dialect = dialect_of(facts.vendor);
    if (dialect == nullptr) continue;
    Wish wish{.door = door_of(facts), .resource = ResourceOf(config, facts, *dialect)};
    if (const auto move = moves.find(facts.id); move != moves.end()) {
      wish.door = move->second.door;
      wish.reason = move->second.reason;
    }
    if (const api::SharingRule* rule = sharer.RuleFor(facts, wish.resource)) Share(*rule, facts, *dialect, wish, wished.remarks);
    wished.wishes.emplace(facts.id, std::move(wish));
  }
  if (!inventory.devices.empty()) sharer.AddRemarks(wished.remarks);
  return wished;
}

std::vector<device::SharedSet> SetsOf(const Wishes& wishes, const inventory::Snapshot& inventory, const ledger::Snapshot& ledger) {
  std::map<std::string, const ledger::Slot*> held;  // device → a share of it that somebody has
  for (const ledger::Lease& lease : ledger.leases)
    for (const ledger::Slot& slot : lease.slots)
      if (slot.shape.sharing == device::Sharing::kMps) held[slot.device] = &slot;
  std::map<std::string, device::SharedSet> sets;
  for (const inventory::Entry& entry : inventory.devices) {
    const auto holder = held.find(entry.facts->id);
    const auto wish = wishes.find(entry.facts->id);
    std::string name;
    device::Shape shape;
    if (holder != held.end()) {
      name = holder->second->resource;
      shape = holder->second->shape;
    } else if (wish != wishes.end() && !wish->second.door.empty()) {
      name = wish->second.resource;
      shape = wish->second.shape;
    }
    if (shape.sharing != device::Sharing::kMps) continue;
    sets[name].name = name;
    sets[name].members.push_back({entry.facts, shape.shares});
  }
  std::vector<device::SharedSet> list;
  for (auto& [name, set] : sets) list.push_back(std::move(set));
  return list;
}

std::map<std::string, device::LabelShare> LabelSharesOf(const Wishes& wishes, const device::SharedDevices& servers) {
  std::map<std::string, device::LabelShare> shares;
  for (const auto& [id, wish] : wishes)
    shares[id] = {wish.shape, wish.renamed, std::string(device::ToString(IsolationOf(id, wish.shape, servers)))};
  return shares;
}

std::string SlotId(const std::string& device, const device::Shape& shape, int share) {
  return shape.shares == 1 ? device : device + std::string(kSeparator) + std::to_string(share);
}

std::string DeviceOf(std::string_view slot_id) { return std::string(slot_id.substr(0, slot_id.find(kSeparator))); }

}  // namespace penstock::node::share
