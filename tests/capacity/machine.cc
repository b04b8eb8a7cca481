#include "tests/capacity/machine.h"

#include <algorithm>
#include <utility>

#include "node/share/assignment.h"

namespace penstock::capacity {

using node::change::testing::DivisibleDevice;

void Kubelet::Read(const std::string& resource, const std::vector<node::share::Offer>& offers) {
  lists[resource].clear();
  for (const node::share::Offer& offer : offers)
    if (offer.allocator == api::kKubeletAllocator && offer.resource == resource)
      for (const node::share::OfferedSlot& slot : offer.slots)
        lists[resource][slot.slot.id] = slot.usable;
}

std::set<std::string> Kubelet::Resources(const std::vector<node::share::Offer>& offers) const {
  std::set<std::string> names;
  for (const auto& [name, slots] : lists) names.insert(name);
  for (const node::share::Offer& offer : offers)
    if (offer.allocator == api::kKubeletAllocator) names.insert(offer.resource);
  return names;
}

void Kubelet::Lose() {
  for (auto& [name, slots] : lists)
    for (auto& [id, healthy] : slots) healthy = false;
  asking.reset();
}

std::vector<std::string> Kubelet::Free(const std::string& resource) const {
  std::vector<std::string> free;
  const auto list = lists.find(resource);
  if (list == lists.end()) return free;
  for (const auto& [id, healthy] : list->second) {
    const auto has = [&](const Pod& pod) {
      return pod.resource == resource && std::ranges::find(pod.ids, id) != pod.ids.end();
    };
    if (healthy && std::ranges::none_of(pods, [&](const auto& pod) { return has(pod.second); }))
      free.push_back(id);
  }
  return free;
}

std::set<std::string> Kubelet::Counted() const {
  std::set<std::string> devices;
  for (const auto& [name, slots] : lists)
    for (const auto& [id, healthy] : slots)
      if (healthy) devices.insert(node::share::DeviceOf(id));
  return devices;
}

std::vector<node::attribute::PodHolding> Kubelet::List() const {
  std::vector<node::attribute::PodHolding> all;
  for (const auto& [uid, pod] : pods)
    all.push_back({uid, uid, "ml", "main", pod.ids, pod.resource});
  return all;
}

Machine::Machine(unsigned seed) : random_(seed) {
  proc.Write(std::to_string(kRunner) + "/cgroup", "0::/user.slice\n");
  const bool reuses_ids = Chance(50);
  for (std::size_t i = 0; i < kDevices; ++i) {
    auto device = std::make_unique<DivisibleDevice>(static_cast<int>(i));
    device->device.memory = base::Mebibytes(40u << 10);
    device->device.compute_units = kSlices;
    device->device.profiles = {
        {.name = "1g", .slices = 1, .most = 4, .placements = {{0, 1}, {1, 1}, {2, 1}, {3, 1}}},
        {.name = "2g", .slices = 2, .most = 2, .placements = {{0, 2}, {2, 2}}},
        {.name = "4g", .slices = 4, .most = 1, .placements = {{0, 4}}}};
    for (device::PartProfile& profile : device->device.profiles)
      profile.capacity = {base::Mebibytes(static_cast<std::uint64_t>(profile.slices) * (10u << 10)),
                          profile.slices};
    device->reuses_ids = reuses_ids;
    if (Chance(50)) device->device.modes[0].effect = device::ModeEffect::kAfterReset;
    device->before_change = [this, i](const std::string& id) { BeforeChange(i, id); };
    devices_.push_back(std::move(device));
  }
  // On this one, parts are created on demand.
  devices_.back()->device.modes[0].current = devices_.back()->device.modes[0].pending = "on";
}

std::vector<DivisibleDevice*> Machine::devices() {
  std::vector<DivisibleDevice*> all;
  for (const auto& one : devices_) all.push_back(one.get());
  return all;
}

std::vector<device::Facts> Machine::Look() const {
  std::vector<device::Facts> all;
  for (const auto& one : devices_) {
    all.push_back(one->Now());
    if (one->device.modes[0].current == "on") all.back().withheld = "only its parts can be used";
    all.insert(all.end(), one->parts.begin(), one->parts.end());
  }
  return all;
}

void Machine::Reset(const std::string& id) {
  for (std::size_t i = 0; i < kDevices; ++i) {
    if (devices_[i]->device.id != id) continue;
    BeforeChange(i, id);
    for (const device::Facts& part : devices_[i]->parts) BeforeChange(i, part.id);
    devices_[i]->Reset();
    Note("the driver resets " + id);
    Count("reset of a device");
  }
}

void Machine::BeforeChange(std::size_t device, const std::string& id) {
  if (kubelet.Counted().contains(id)) Wrong(id + " is changed while the kubelet may allocate it");
  const auto claim = ClaimOf(id, 1);
  if (!claim) return;
  for (const std::string& holder : model_.HoldersOf(device, claim->slices))
    Wrong(id + " is changed under its holder " + holder);
}

void Machine::EndCalls() {
  for (const auto& call : std::exchange(asked, {}))
    if (Chance(50)) call();
}

std::optional<Claim> Machine::ClaimOf(const std::string& device, int shares) const {
  for (std::size_t i = 0; i < kDevices; ++i) {
    if (devices_[i]->device.id == device) return Claim{i, {0, kSlices}, kUnits / shares};
    for (const device::Facts& part : devices_[i]->parts)
      if (part.id == device) return Claim{i, *part.placement, kUnits / shares};
  }
  return std::nullopt;
}

void Machine::Granted(const std::string& holder, const std::vector<node::ledger::Slot>& slots) {
  std::vector<Claim> claims;
  for (const node::ledger::Slot& slot : slots) {
    Note(holder + " gets " + slot.id + (slot.shape.shares > 1 ? ", a share" : ""));
    const auto claim = ClaimOf(slot.device, slot.shape.shares);
    if (!claim) {
      Wrong(slot.device + " is granted and is not there");
      continue;
    }
    claims.push_back(*claim);
    held_[holder].push_back({slot.device, slot.shape.shares, *claim});
  }
  model_.Take(holder, claims);
}

void Machine::Ended(const std::string& holder) {
  model_.Give(holder);
  held_.erase(holder);
}

void Machine::CountParts() {
  std::set<std::string> now;
  for (const auto& one : devices_)
    for (const device::Facts& part : one->parts) now.insert(part.id);
  for (const std::string& part : now)
    if (!parts_.contains(part)) Count("part created");
  for (const std::string& part : std::exchange(parts_, now))
    if (!now.contains(part)) Count("part destroyed");
}

void Machine::Check() {
  CountParts();
  if (const std::string what = model_.Overcommitted(); !what.empty()) Wrong(what);
  for (const auto& [holder, all] : held_)
    for (const Held& held : all) {
      const auto now = ClaimOf(held.device, held.shares);
      if (!now || now->slices != held.claim.slices)
        Wrong("what " + holder + " holds, " + held.device + ", is not there any more");
      else if (now->slices.size == kSlices && !devices_[now->device]->parts.empty() &&
               devices_[now->device]->device.id == held.device)
        Wrong(held.device + " is divided while " + holder + " holds all of it");
    }
}

}  // namespace penstock::capacity
