// Simulates a node in random steps, for tests: the machine, its kubelet, its users and its
// administrator around the real modules. Reports only problems that it meets while it acts.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "device/testing/acme.h"
#include "node/allocate/allocate.h"
#include "node/attribute/attribute.h"
#include "node/inventory/testing/acme_inventory.h"
#include "node/ledger/checkpoint.h"
#include "node/share/assignment.h"
#include "node/share/offers.h"

namespace penstock::node::testing {

using device::HealthState;
using device::Sharing;
using share::OfferedSlot;
using Strings = std::vector<std::string>;

inline constexpr int kDevices = 4;

inline std::string IdOf(int device) { return device::testing::AcmeDevice(device, kDevices).id; }

/// The agent's state in memory, all of which is lost at a restart.
struct Agent {
  inventory::Inventory inventory;
  ledger::Ledger ledger;
  base::Published<device::SharedDevices> servers;
  share::Offers offers{inventory, ledger, device::testing::FindAcme, {"kubelet", "local"}};
  Agent() { offers.FollowServers("acme", servers); }

  bool IsWell(const std::string& device) {
    const auto snapshot = inventory.published().Get();
    const inventory::Entry* entry = snapshot->Find(device);
    return entry != nullptr && entry->health.state == HealthState::kHealthy &&
           !ledger.Get()->outside.contains(device);
  }
};

using Holders = std::map<std::string, std::vector<const ledger::Slot*>>;  ///< by device

inline Holders HoldersOf(const ledger::Snapshot& ledger) {
  Holders holders;
  for (const ledger::Lease& lease : ledger.leases)
    for (const ledger::Slot& slot : lease.slots) holders[slot.device].push_back(&slot);
  return holders;
}

struct Pod {
  std::string resource;
  Strings ids;
};

/// The machine, its kubelet and its users around an agent. Each step performs one random action.
class NodeSimulation {
 public:
  explicit NodeSimulation(std::uint64_t seed) : random_(seed) { Start({}); }

  void Step() {
    now_ += std::chrono::seconds(1);
    using Deed = void (NodeSimulation::*)();
    static const std::vector<std::pair<int, Deed>> kDeeds = {
        {30, &NodeSimulation::StartPod},     {22, &NodeSimulation::EndPod},
        {10, &NodeSimulation::ReportPods},   {22, &NodeSimulation::StartRun},
        {16, &NodeSimulation::EndRun},       {8, &NodeSimulation::ChangeHealth},
        {4, &NodeSimulation::ChangeOutside}, {4, &NodeSimulation::Reload},
        {4, &NodeSimulation::ComeOrGo},      {3, &NodeSimulation::Move},
        {4, &NodeSimulation::ChangeServers}, {1, &NodeSimulation::Restart}};
    int chance = Random(128);
    for (const auto& [weight, deed] : kDeeds)
      if ((chance -= weight) < 0) {
        (this->*deed)();
        break;
      }
    TendServers();
    ++steps_;
  }

  /// Ends all pods and runs, makes all devices healthy and removes all sharing: the node must be as
  /// it was at the start.
  void EndAll() {
    pods_.clear();
    ReportPods();
    while (!runs_.empty()) EndRun();
    config_ = {};
    moves_.clear();
    dead_sets_.clear();
    for (int i = 0; i < kDevices; ++i) {
      there_[i] = true;
      healthy_[i] = true;
    }
    outside_.clear();
    agent_->ledger.SetAttributed({});
    Appear();
    agent_->offers.Configure(config_, moves_);
    TendServers();
  }

  std::string Story() const {
    std::string story;
    for (const std::string& deed : story_) story += "  " + deed + "\n";
    return story;
  }

  Agent& agent() const { return *agent_; }
  /// What the kubelet allocated, and whether the ledger has yet to learn of pods that ended.
  const std::map<std::string, Pod>& pods() const { return pods_; }
  bool pods_to_report() const { return pods_to_report_; }
  const std::set<std::string>& runs() const { return runs_; }
  int steps() const { return steps_; }
  /// The problem that it met while it acted.
  const std::string& problem() const { return problem_; }
  int handed() const { return handed_; }

 private:
  int Random(int below) { return static_cast<int>(random_() % static_cast<std::uint64_t>(below)); }
  bool Chance(int of) { return Random(of) == 0; }
  void Notify(std::string deed) {
    story_.push_back(std::to_string(steps_) + ": " + std::move(deed));
    if (story_.size() > 25) story_.pop_front();
  }
  std::shared_ptr<const std::vector<share::Offer>> Offers() const { return agent_->offers.Get(); }

  // --- the kubelet's allocator: what the kubelet and adapter/kubelet do

  void StartPod() {
    std::vector<const share::Offer*> offers;
    const auto now = Offers();
    for (const auto& offer : *now)
      if (offer.allocator == api::kKubeletAllocator) offers.push_back(&offer);
    if (offers.empty()) return;
    const share::Offer& offer =
        *offers[static_cast<std::size_t>(Random(static_cast<int>(offers.size())))];
    Strings free = FreeForKubelet(offer);
    const auto size = static_cast<std::size_t>(1 + Random(3));
    if (free.size() < size) return;
    std::shuffle(free.begin(), free.end(), random_);
    const Strings must(free.begin(), free.begin() + (Chance(4) ? 1 : 0));
    const auto policy = Chance(2) ? api::SharePolicy::kPacked : api::SharePolicy::kDistributed;
    Strings ids = allocate::Prefer({free, must, size}, offer, policy,
                                   *agent_->inventory.published().Get(), *agent_->ledger.Get());
    for (const std::string& id : must)
      if (!ids.empty() && std::find(ids.begin(), ids.end(), id) == ids.end())
        problem_ = "not preferred, but must be included: " + id;
    if (!ids.empty() && std::set(ids.begin(), ids.end()).size() != size)
      problem_ = "preferred are not as many as were asked for";
    if (ids.empty() && !offer.single)
      problem_ = "nothing is preferred of " + std::to_string(free.size()) + " that are free";
    if (ids.empty()) ids.assign(free.begin(), free.begin() + static_cast<std::ptrdiff_t>(size));
    const std::string name = "p" + std::to_string(++named_);
    Notify("pod " + name + " wants " + offer.resource + ": " + ::testing::PrintToString(ids));
    if (Allocate(offer, ids)) pods_[name] = {offer.resource, ids};
  }

  /// The slots that were last reported usable and that no pod uses under the same name.
  Strings FreeForKubelet(const share::Offer& offer) const {
    std::set<std::string> used;
    for (const auto& [name, pod] : pods_)
      if (pod.resource == offer.resource) used.insert(pod.ids.begin(), pod.ids.end());
    Strings free;
    for (const OfferedSlot& slot : offer.slots)
      if (slot.usable && !used.contains(slot.slot.id)) free.push_back(slot.slot.id);
    return free;
  }

  bool Allocate(const share::Offer& offer, const Strings& ids) {
    ledger::Lease lease{.id = "k-" + std::to_string(++named_),
                        .allocator = std::string(api::kKubeletAllocator),
                        .since = now_};
    for (const OfferedSlot& slot : offer.slots)
      if (std::find(ids.begin(), ids.end(), slot.slot.id) != ids.end())
        lease.slots.push_back(slot.slot);
    if (!Committed(lease.slots)) return false;
    for (const ledger::Slot& slot : lease.slots) {
      const auto ledger = agent_->ledger.Get();
      const ledger::Lease* former = ledger->InTheWayOf(slot);
      if (former == nullptr) continue;
      if (!pods_to_report_)
        problem_ = former->id + " is in the way of " + slot.id +
                   ", and the ledger knows all that the kubelet knows";
      const bool same =
          std::any_of(former->slots.begin(), former->slots.end(), [&](const ledger::Slot& one) {
            return one.id == slot.id && one.resource == slot.resource;
          });
      if (!same) return false;
      agent_->ledger.Release(former->id);
    }
    return Hand(std::move(lease));
  }

  void EndPod() {
    if (pods_.empty()) return;
    const auto pod = std::next(pods_.begin(), Random(static_cast<int>(pods_.size())));
    Notify("pod " + pod->first + " ends");
    pods_.erase(pod);
    pods_to_report_ = true;
    if (Chance(2)) ReportPods();
  }

  void ReportPods() {
    std::vector<attribute::PodHolding> holdings;
    for (const auto& [name, pod] : pods_)
      holdings.push_back({"", name, "ml", "main", pod.ids, pod.resource});
    attribute::ApplyPods(holdings, now_ + std::chrono::seconds(1), now_, agent_->ledger, *Offers());
    pods_to_report_ = false;
  }

  // --- the local allocator

  void StartRun() {
    static const std::vector<int> kShares = {1, 1, 2, 3, 4, 8};
    allocate::Request request{.allocator = std::string(api::kLocalAllocator),
                              .count = 1 + Random(2),
                              .share = kShares[static_cast<std::size_t>(Random(6))]};
    if (Chance(5)) request.model = "*Big";
    if (Chance(5)) request.devices = {std::to_string(Random(kDevices))};
    const auto slots = allocate::Reserve(request, *agent_->inventory.published().Get(),
                                         *agent_->ledger.Get(), *Offers());
    if (!slots.ok()) {
      const Code code = slots.error().code();
      if (code != Code::kResourceExhausted && code != Code::kUnavailable &&
          code != Code::kFailedPrecondition && code != Code::kNotFound)
        problem_ = "strange refusal: " + slots.error().ToString();
      return;
    }
    for (const ledger::Slot& slot : *slots)
      if (!agent_->IsWell(slot.device))
        problem_ = slot.id + " was reserved, and its device cannot be used";
    if (!Committed(*slots)) return;
    ledger::Lease lease{.id = "r-" + std::to_string(++named_),
                        .allocator = std::string(api::kLocalAllocator),
                        .slots = *slots};
    lease.state = ledger::LeaseState::kHeld;
    Notify("run " + lease.id + " takes " + Ids(*slots));
    runs_.insert(lease.id);
    if (!Hand(std::move(lease))) problem_ = "what was reserved cannot be handed";
  }

  void EndRun() {
    if (runs_.empty()) return;
    const auto run = std::next(runs_.begin(), Random(static_cast<int>(runs_.size())));
    Notify("run " + *run + " ends");
    agent_->ledger.Release(*run);
    runs_.erase(run);
  }

  // --- both

  static std::string Ids(const std::vector<ledger::Slot>& slots) {
    std::string ids;
    for (const ledger::Slot& slot : slots)
      ids += " " + slot.id + "/" + std::to_string(slot.shape.shares);
    return ids;
  }

  bool Committed(const std::vector<ledger::Slot>& slots) const {
    return allocate::Commit(slots, allocate::ConsumerKind::kProcess,
                            *agent_->inventory.published().Get(), device::testing::FindAcme,
                            *agent_->offers.Servers())
        .ok();
  }

  bool Hand(ledger::Lease lease) {
    const auto added = agent_->ledger.Add(std::move(lease));
    if (added.ok()) ++handed_;
    if (!added.ok() && !pods_to_report_)
      problem_ = "usable, and cannot be handed: " + added.error().ToString();
    return added.ok();
  }

  // --- devices and their driver

  void Appear() {
    std::vector<device::Facts> facts;
    for (int i = 0; i < kDevices; ++i)
      if (there_[i]) facts.push_back(device::testing::AcmeDevice(i, kDevices));
    agent_->inventory.SetVendor(inventory::AcmeVendor());
    agent_->inventory.SetFacts("acme", std::move(facts), "fell off the bus", now_);
    for (int i = 0; i < kDevices; ++i)
      if (there_[i]) Read(i);
  }

  void Read(int i) {
    agent_->inventory.SetHealth(IdOf(i),
                                healthy_[i] ? HealthState::kHealthy : HealthState::kUnhealthy,
                                healthy_[i] ? "" : "XID 79", now_);
    agent_->inventory.SetReading(IdOf(i), {}, now_);
  }

  void ChangeHealth() {
    const int i = Random(kDevices);
    healthy_[i] = !Chance(6);
    Notify(IdOf(i) + (healthy_[i] ? " is healthy" : " is unhealthy"));
    if (there_[i]) Read(i);
  }

  void ComeOrGo() {
    const int i = Random(kDevices);
    there_[i] = !Chance(6);
    Notify(IdOf(i) + (there_[i] ? " is there" : " is gone"));
    Appear();
  }

  void ChangeOutside() {
    const std::string id = IdOf(Random(kDevices));
    const bool somebody = Chance(6);
    Notify(id + (somebody ? " has an outside process" : " has no outside process"));
    outside_.erase(id);
    if (somebody) outside_[id] = {{42, 1, "ann", "python"}};
    agent_->ledger.SetAttributed({.outside = outside_});
  }

  void ChangeServers() {
    const Strings names = {"acme.com/gpu", "acme.com/slice", "acme.com/big"};
    const std::string& name = names[static_cast<std::size_t>(Random(3))];
    if (Chance(5))
      dead_sets_.insert(name);
    else
      dead_sets_.erase(name);
  }

  /// Acts as a vendor's sharing service: every set that is needed has a server, which may have
  /// died.
  void TendServers() {
    device::SharedDevices servers;
    const auto ledger = agent_->ledger.Get();
    auto holders = HoldersOf(*ledger);
    for (const auto& set : share::SetsOf(agent_->offers.Desired()->assignments,
                                         *agent_->inventory.published().Get(), *ledger))
      for (const auto& member : set.members) {
        for (const ledger::Slot* slot : holders[member.device->id])
          if (slot->shape.sharing != Sharing::kServer)
            problem_ = slot->id + " is shut out by a server";
        const bool ready = !dead_sets_.contains(set.name);
        servers[member.device->id] = {
            .set = set.name, .ready = ready, .reason = ready ? "" : "its server died"};
      }
    if (servers != *agent_->servers.Get()) agent_->servers.Set(std::move(servers));
  }

  // --- the administrator

  void Reload() {
    config_ = {};
    static const Strings kNames = {"", "", "acme.com/slice", "acme.com/gpu.shared"};
    for (int rules = Random(4); rules > 0; --rules) {
      api::SharingRule rule;
      if (Chance(2))
        rule.devices = {std::to_string(Random(kDevices)), std::to_string(Random(kDevices + 2))};
      rule.most = Chance(4) ? 1 + Random(3) : 0;
      rule.strategy = Chance(3) ? api::ShareStrategy::kServer : api::ShareStrategy::kTimeSlicing;
      rule.replicas = 1 + Random(8);
      rule.rename = kNames[static_cast<std::size_t>(Random(4))];
      rule.fail_requests_greater_than_one = Chance(3);
      config_.sharing.rules.push_back(std::move(rule));
    }
    config_.resource_per_model = Chance(4);
    if (Chance(2))
      config_.assignments = {
          {{std::to_string(Random(kDevices)), std::to_string(Random(kDevices))}, "local"}};
    Notify("reload: " + std::to_string(config_.sharing.rules.size()) + " rules");
    agent_->offers.Configure(config_, moves_);
  }

  void Move() {
    const std::string id = IdOf(Random(kDevices));
    static const Strings kAllocators = {"kubelet", "local", "local", ""};
    if (!Chance(3))
      moves_.erase(id);
    else
      moves_[id].allocator = kAllocators[static_cast<std::size_t>(Random(4))];
    Notify(id + " moves");
    agent_->offers.SetMoves(moves_);
  }

  void Restart() {
    const auto checkpoint = ledger::DecodeCheckpoint(
        ledger::EncodeCheckpoint(*agent_->ledger.Get(), "boot"), "boot", "ledger.json");
    if (!checkpoint.ok()) {
      problem_ = checkpoint.error().ToString();
      return;
    }
    if (*checkpoint != agent_->ledger.Get()->leases)
      problem_ = "the checkpoint reads back otherwise";
    const bool lost = Chance(4);  // then groups restore runs, and the kubelet pods
    Notify(lost ? "restart without a checkpoint" : "restart");
    std::vector<ledger::Lease> leases;
    for (const ledger::Lease& lease : *checkpoint)
      if (!lost || lease.allocator == api::kLocalAllocator) leases.push_back(lease);
    Start(leases);
  }

  void Start(const std::vector<ledger::Lease>& leases) {
    agent_ = std::make_unique<Agent>();
    agent_->offers.Configure(config_, moves_);
    Appear();
    for (const ledger::Lease& lease : leases)
      if (const auto added = agent_->ledger.Add(lease); !added.ok())
        problem_ = "not recovered: " + added.error().ToString();
    ReportPods();
  }

  std::mt19937_64 random_;
  base::WallTime now_{std::chrono::seconds(1'000'000)};
  std::unique_ptr<Agent> agent_;
  api::NodeConfig config_;
  share::Moves moves_;
  ledger::Processes outside_;
  std::array<bool, kDevices> there_{true, true, true, true}, healthy_{true, true, true, true};
  std::set<std::string> dead_sets_;
  std::map<std::string, Pod> pods_;  // as the kubelet knows them
  bool pods_to_report_ = false;      // the ledger has yet to learn of pods that ended
  std::set<std::string> runs_;
  int named_ = 0, handed_ = 0, steps_ = 0;
  std::string problem_;
  std::deque<std::string> story_;
};

}  // namespace penstock::node::testing
