#include "node/allocate/explain.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "node/allocate/allocate.h"
#include "node/allocate/choose.h"

namespace penstock::node::allocate {

namespace {

constexpr std::size_t kMaxSizes = 32;

using Positions = std::vector<std::size_t>;

/// Why a slot is not free now; empty where it is.
std::string DescribeObstacle(const share::OfferedSlot& offered, const ledger::Snapshot& ledger) {
  if (!offered.usable) return offered.reason;
  const ledger::Lease* holder = ledger.InTheWayOf(offered.slot);
  if (holder == nullptr) return "";
  return "held by " +
         (holder->pod.empty() ? holder->id : holder->namespace_name + "/" + holder->pod) +
         (holder->user.empty() ? "" : " of " + holder->user);
}

/// One offer as a request sees it.
class View {
 public:
  View(const share::Offer& offer, const inventory::Snapshot& inventory,
       const ledger::Snapshot& ledger)
      : offer_(offer) {
    for (const share::OfferedSlot& offered : offer.slots) {
      const inventory::Entry* entry = inventory.Find(offered.slot.device);
      if (entry == nullptr) continue;
      const auto [at, fresh] = position_.try_emplace(offered.slot.device, devices_.size());
      if (fresh) {
        facts_.push_back(entry->facts.get());
        devices_.push_back({.allocator = offer.allocator,
                            .resource = offer.resource,
                            .id = entry->facts->id,
                            .index = entry->facts->index,
                            .model = entry->facts->model,
                            .number = entry->facts->number});
      }
      parts_ = parts_ || !offered.slot.ancestors.empty();
      api::PreviewedDevice& device = devices_[at->second];
      const std::string obstacle = DescribeObstacle(offered, ledger);
      ++device.slots;
      shared_ = shared_ || offered.slot.shape.shares > 1;
      if (obstacle.empty()) {
        ++device.free;
        free_slots_.push_back(offered.slot.id);
      } else if (device.reason.empty()) {
        device.reason = obstacle;
      }
    }
    links_.emplace(facts_);
  }

  const std::vector<api::PreviewedDevice>& devices() const { return devices_; }

  std::vector<api::PreviewedChoice> Choices(api::SharePolicy policy,
                                            const inventory::Snapshot& inventory,
                                            const ledger::Snapshot& ledger) const {
    std::vector<api::PreviewedChoice> choices;
    const Positions free = Free();
    const std::size_t most = offer_.single && shared_ ? 1 : devices_.size();
    for (std::size_t size = 1; size <= std::min({most, free.size(), kMaxSizes}); ++size)
      choices.push_back(shared_ || parts_ ? OfSlots(size, policy, inventory, ledger)
                                          : OfDevices(size, free));
    if (free.size() < std::min(most, kMaxSizes)) choices.push_back(NoMore(free.size()));
    return choices;
  }

 private:
  Positions Free() const {
    Positions free;
    for (std::size_t i = 0; i < devices_.size(); ++i)
      if (devices_[i].free > 0) free.push_back(i);
    return free;
  }

  api::PreviewedChoice Empty(std::size_t size) const {
    return {.allocator = offer_.allocator, .resource = offer_.resource, .size = size};
  }

  api::PreviewedChoice OfDevices(std::size_t size, const Positions& free) const {
    api::PreviewedChoice choice = Empty(size);
    const auto best = ChooseBest(*links_, free, {}, size);
    if (!best) return choice;
    choice.within = best->within;
    choice.left = best->left;
    choice.exact = best->exact;
    Notify(best->members, choice);
    return choice;
  }

  /// The answer that the kubelet would get, of shares or parts.
  api::PreviewedChoice OfSlots(std::size_t size, api::SharePolicy policy,
                               const inventory::Snapshot& inventory,
                               const ledger::Snapshot& ledger) const {
    api::PreviewedChoice choice = Empty(size);
    std::map<std::string, std::string> device_of;
    for (const share::OfferedSlot& offered : offer_.slots)
      device_of[offered.slot.id] = offered.slot.device;
    std::set<std::size_t> members;
    for (const std::string& id :
         Prefer({free_slots_, {}, size}, offer_, policy, inventory, ledger)) {
      const auto device = device_of.find(id);
      if (device != device_of.end()) members.insert(position_.at(device->second));
    }
    Notify({members.begin(), members.end()}, choice);
    choice.within = ScoreWithin(members);
    choice.exact = false;
    if (!shared_)
      choice.reason = links_->any() ? "parts: the best linked, of as few devices as possible"
                                    : "parts, packed: of the most used devices";
    else
      choice.reason = policy == api::SharePolicy::kPacked
                          ? "shares, packed: from the most used devices"
                          : "shares, distributed: from the least used devices";
    return choice;
  }

  std::int64_t ScoreWithin(const std::set<std::size_t>& members) const {
    std::int64_t sum = 0;
    for (auto a = members.begin(); a != members.end(); ++a)
      for (auto b = std::next(a); b != members.end(); ++b) sum += links_->Score(*a, *b);
    return sum;
  }

  /// Adds the devices, and their pairs by kind of link, best first.
  void Notify(const Positions& members, api::PreviewedChoice& choice) const {
    // Keys: the negated score and the description.
    std::map<std::pair<int, std::string>, std::vector<std::string>> kinds;
    for (std::size_t i = 0; i < members.size(); ++i) {
      choice.devices.push_back(devices_[members[i]].id);
      for (std::size_t j = i + 1; j < members.size(); ++j)
        kinds[{-links_->Score(members[i], members[j]), links_->Describe(members[i], members[j])}]
            .push_back(NumberOf(*facts_[members[i]]) + "-" + NumberOf(*facts_[members[j]]));
    }
    for (auto& [kind, pairs] : kinds) choice.links.push_back({kind.second, std::move(pairs)});
  }

  api::PreviewedChoice NoMore(std::size_t free) const {
    api::PreviewedChoice choice = Empty(free + 1);
    choice.reason = std::to_string(free) + " of " + std::to_string(devices_.size()) + " are free";
    const auto taken =
        std::ranges::find_if(devices_, [](const auto& device) { return device.free == 0; });
    if (taken == devices_.end()) return choice;
    const device::Facts& facts = *facts_[static_cast<std::size_t>(taken - devices_.begin())];
    choice.reason += "; " + std::string(device::ToString(facts.kind)) + " " + NumberOf(facts) +
                     ": " + taken->reason;
    return choice;
  }

  const share::Offer& offer_;
  std::vector<api::PreviewedDevice> devices_;
  std::vector<const device::Facts*> facts_;
  std::map<std::string, std::size_t> position_;
  std::vector<std::string> free_slots_;
  bool shared_ = false;
  bool parts_ = false;
  std::optional<DeviceLinks> links_;
};

std::string WhyNotOffered(const inventory::Entry& entry, const share::Assignments& assignments) {
  if (!entry.withheld.empty()) return entry.withheld;
  const auto assignment = assignments.find(entry.facts->id);
  return assignment == assignments.end() || assignment->second.reason.empty()
             ? "assigned to none"
             : assignment->second.reason;
}

void AddNotOffered(const inventory::Snapshot& inventory, const share::Assignments& assignments,
                   std::vector<api::PreviewedDevice>& devices) {
  std::set<std::string> offered;
  for (const auto& device : devices) offered.insert(device.id);
  for (const inventory::Entry& entry : inventory.devices)
    if (entry.health.state != device::HealthState::kGone && !offered.contains(entry.facts->id))
      devices.push_back({.id = entry.facts->id,
                         .index = entry.facts->index,
                         .model = entry.facts->model,
                         .reason = WhyNotOffered(entry, assignments),
                         .number = entry.facts->number});
}

}  // namespace

ChoiceExplanation Explain(const std::vector<share::Offer>& offers,
                          const share::Assignments& assignments, api::SharePolicy policy,
                          const inventory::Snapshot& inventory, const ledger::Snapshot& ledger) {
  ChoiceExplanation explanation;
  for (const share::Offer& offer : offers) {
    const View view(offer, inventory, ledger);
    explanation.devices.insert(explanation.devices.end(), view.devices().begin(),
                               view.devices().end());
    for (auto& choice : view.Choices(policy, inventory, ledger))
      explanation.choices.push_back(std::move(choice));
  }
  AddNotOffered(inventory, assignments, explanation.devices);
  return explanation;
}

}  // namespace penstock::node::allocate
