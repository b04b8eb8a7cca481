#include "operator/driver/rollout_plan.h"

#include <algorithm>
#include <utility>

#include "api/compat/nvidia/driver_names.h"
#include "base/core/strings.h"
#include "operator/json_values.h"

namespace penstock::cluster {
namespace {

using api::DriverSpec;
using base::WallTime;
using enum UpgradeState;

std::string ValueIn(const NodeTexts& texts, std::string_view key) {
  const auto found = texts.find(std::string(key));
  return found == texts.end() ? "" : found->second;
}

template <typename Map>
const typename Map::mapped_type* In(const Map& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

/// The driver that a node is to have.
struct Placement {
  const DriverSpec* driver = nullptr;
  std::string pool;  ///< the DaemonSet of its pool; empty: it is not known
  std::string why;   ///< why not
};

class Rollout {
 public:
  Rollout(const RolloutFacts& facts, WallTime now) : facts_(facts), now_(now) {}

  RolloutPlan Plan() {
    std::vector<const DriverNode*> eligible;
    for (const auto& [name, node] : facts_.nodes) {
      Read(name, node);
      if (MayHaveDriver(name, node)) eligible.push_back(&node.node);
    }
    const DriverOwnership ownership = AssignDrivers(eligible, facts_.drivers);
    for (const DriverSpec& driver : facts_.drivers) Place(driver, eligible, ownership);
    for (const auto& [name, node] : facts_.nodes) KeepWhileInUse(name, node);
    KeepSetsInUse();
    for (const DriverSpec& driver : facts_.drivers) Upgrade(driver, ownership);
    for (const auto& [name, node] : facts_.nodes)
      if (!placed_.contains(name) && !Keeps(name, node)) WithoutDriver(name, node);
    return std::move(plan_);
  }

 private:
  // What the nodes say.

  struct Known {
    UpgradeRecord record;
    bool tidy = false;  ///< a write of this record would change nothing
  };

  StoredRecord StoredOf(const std::string& name, const RolloutNode& node) const {
    const StoredRecord* known_before = In(facts_.records, name);
    return known_before != nullptr ? *known_before
                                   : ReadStoredRecord(node.node.labels, node.annotations);
  }

  /// A node that is being written already says what it will say.
  void Read(const std::string& name, const RolloutNode& node) {
    Known& known = known_[name];
    if (const NodeStep* step = In(facts_.being_written, name)) {
      known.record = step->record;
    } else {
      const StoredRecord stored = StoredOf(name, node);
      bool as_stored = false;
      known.record = stored.At(now_, as_stored);
      known.tidy = as_stored && stored.tidy;
    }
    if (const std::string set = ValueIn(node.node.labels, kPoolLabel); !set.empty())
      by_set_[set].push_back(&known.record);
    if (std::string held = ValueIn(node.node.labels, kHeldLabel); !held.empty())
      held_.insert(std::move(held));
  }

  // Which nodes.

  bool MayHaveDriver(const std::string& name, const RolloutNode& node) {
    if (!node.has_devices || node.opted_out) return false;
    if (IsFrozen(node)) return false;
    const std::string deploy = ValueIn(node.node.labels, api::compat::kDeployDriverLabel);
    const DriverReport* report = In(facts_.reports, name);
    // Where that driver is gone, the label is not written again when a user removes it.
    if (deploy == api::compat::kPreInstalled && (report == nullptr || report->of_host))
      plan_.host_drivers.insert(name);
    if (deploy != "true") return false;
    // A node that has a driver of ours keeps it, whatever is found on it besides; but one that was
    // placed before its agent had found the host's driver, and on which none of ours ever worked.
    const bool of_host = report != nullptr && report->of_host;
    const bool has_one = !ValueIn(node.node.labels, kPoolLabel).empty();
    if (has_one && !(of_host && known_.at(name).record.good.empty())) return true;
    if (!facts_.reports_expected) return true;
    if (of_host) plan_.host_drivers.insert(name);
    return report != nullptr && !of_host;
  }

  /// It has a driver whose object cannot be read now.
  bool IsFrozen(const RolloutNode& node) const {
    return facts_.unreadable.contains(ValueIn(node.node.labels, api::compat::kDriverOwnerLabel));
  }

  /// A node that wants no driver any more keeps it until no pod holds its devices.
  void KeepWhileInUse(const std::string& name, const RolloutNode& node) {
    const std::string owner = ValueIn(node.node.labels, api::compat::kDriverOwnerLabel);
    const bool wanted = ValueIn(node.node.labels, api::compat::kDeployDriverLabel) == "true";
    const bool is_driver = std::ranges::any_of(
        facts_.drivers, [&](const DriverSpec& one) { return one.enabled && one.name == owner; });
    if (!(node.opted_out || !wanted) || !is_driver || IsFrozen(node)) return;
    if (!facts_.pods.contains(name) || ValueIn(node.node.labels, kPoolLabel).empty()) return;
    plan_.pods_needed.insert(name);
    const std::vector<Json>* pods = In(facts_.pods_of_nodes, name);
    if (pods == nullptr || !facts_.claims) {
      in_use_.emplace(name, "");
      return;
    }
    const auto holding = HoldingPods(*pods, *facts_.claims, {});
    if (holding.empty()) return;
    in_use_.emplace(name,
                    "the node wants no driver any more, and keeps it until no pod holds its "
                    "devices: " +
                        std::to_string(holding.size()) + " do, among them " + holding.front().name +
                        " (" + holding.front().holds + ")");
  }

  bool Keeps(const std::string& name, const RolloutNode& node) const {
    return IsFrozen(node) || in_use_.contains(name);
  }

  // DaemonSets.

  void Place(const DriverSpec& driver, const std::vector<const DriverNode*>& eligible,
             const DriverOwnership& ownership) {
    std::vector<const DriverNode*> owned;
    for (const DriverNode* node : eligible) {
      const std::string* owner = In(ownership.owner, node->name);
      if (driver.enabled && owner != nullptr && *owner == driver.name) owned.push_back(node);
    }
    DriverPools pools = PoolsOf(driver, owned);
    if (driver.precompiled) LookAhead(driver, pools);
    for (const auto& [pool, names] : pools.nodes) {
      const std::string set = DaemonSetName(driver, pool);
      for (const std::string& name : names) placed_[name] = {&driver, set, ""};
      WantSet(driver, pool, set);
    }
    for (PoollessNode& node : pools.without) {
      // The labels of its system may have disappeared with the program that writes them.
      std::string set = ValueIn(facts_.nodes.at(node.node).node.labels, kPoolLabel);
      const bool ours = IsSetOf(set, driver);
      placed_[node.node] = {&driver, ours ? std::move(set) : "", std::move(node.why)};
    }
  }

  // Kernels that boot next.

  /// Nodes that will be in a pool, and the kernel of each until then.
  using Arrivals = std::vector<std::pair<std::string, std::string>>;

  /// Finds out whether there are images for the kernels that nodes will boot next: without one, a
  /// node would have no driver after that. A node may name anything: the kernels of most nodes
  /// count.
  void LookAhead(const DriverSpec& driver, const DriverPools& pools) {
    std::map<DriverPool, Arrivals> after;
    for (const auto& [pool, names] : pools.nodes)
      for (const std::string& name : names)
        if (const DriverReport* report = In(facts_.reports, name))
          if (const auto next = PoolAfterBoot(pool, report->next_kernel))
            after[*next].emplace_back(name, pool.kernel);
    std::vector<std::pair<DriverPool, Arrivals>> sorted(after.begin(), after.end());
    std::ranges::stable_sort(sorted, std::ranges::greater(),
                             [](const auto& one) { return one.second.size(); });
    if (sorted.size() > kMostUpcoming) sorted.resize(kMostUpcoming);
    for (auto& [pool, arrivals] : sorted) {
      std::ranges::sort(arrivals);
      // Why there are no pods at all is said of the driver itself.
      if (const auto set = DriverDaemonSet(driver, pool, facts_.installation); set.ok())
        Expect(driver, pool, arrivals, *set);
    }
  }

  void Expect(const DriverSpec& driver, const DriverPool& pool, const Arrivals& arrivals,
              const Json& set) {
    std::vector<std::string> ready;
    for (const auto& [name, kernel] : arrivals)
      if (!facts_.nodes.at(name).not_ready_since) ready.push_back(name);
    ImageCheck check = ImageCheckOf(set, std::move(ready));
    UpcomingKernel upcoming{pool.kernel, check.image, arrivals.size(), {}, {}};
    for (const auto& [name, kernel] : arrivals)
      if (upcoming.named.size() < kMostNamedUpcoming) upcoming.named.push_back(name);
    if (const ImageAnswer* answer = In(facts_.images, check.name)) upcoming.answer = *answer;
    if (upcoming.answer.state == ImageState::kMissing) Warn(upcoming, arrivals);
    plan_.image_checks.insert_or_assign(check.name, std::move(check));
    upcoming_[driver.name].push_back(std::move(upcoming));
  }

  void Warn(const UpcomingKernel& upcoming, const Arrivals& arrivals) {
    for (std::size_t i = 0; i < std::min(kMostWaiting, arrivals.size()); ++i)
      plan_.boot_warnings[arrivals[i].first] =
          "it will boot kernel " + upcoming.kernel + ", for which the driver's image " +
          upcoming.image + " cannot be pulled (" + upcoming.answer.why +
          "): provide that image, or make kernel " + arrivals[i].second +
          " the default of its boot loader";
  }

  static bool IsSetOf(const std::string& set, const DriverSpec& driver) {
    return !set.empty() && set.starts_with(DaemonSetName(driver, {.os_tag = ""}));
  }

  void WantSet(const DriverSpec& driver, const DriverPool& pool, const std::string& name) {
    const Json* found = In(facts_.daemon_sets, name);
    auto made = DriverDaemonSet(driver, pool, facts_.installation);
    if (!made.ok()) {
      problems_.try_emplace(driver.name, made.error());
      if (found != nullptr) plan_.kept_sets.insert(name);
      return;
    }
    if (found != nullptr) KeepPrevious(*made, *found, HasWorked(*found, name));
    AddHeld(*made);
    plan_.daemon_sets[name] = *std::move(made);
  }

  /// Whether the template of a DaemonSet that is there worked on a node, and no node depends on the
  /// one before it.
  bool HasWorked(const Json& found, const std::string& name) const {
    const std::string target = TemplateOf(found);
    const auto nodes = by_set_.find(name);
    if (nodes == by_set_.end()) return false;
    const auto& records = nodes->second;
    return std::ranges::all_of(records, [](const auto* record) { return record->held.empty(); }) &&
           std::ranges::any_of(records, [&](const auto* record) { return record->good == target; });
  }

  /// The DaemonSet of an earlier driver exists as long as a node has that driver.
  void AddHeld(const Json& set) {
    const std::string previous = PreviousOf(set);
    if (previous.empty() || !held_.contains(previous)) return;
    if (auto held = HeldDaemonSet(set))
      plan_.daemon_sets.emplace(TextAt(*held, "/metadata/name"), *held);
  }

  /// DaemonSets by which nodes have pods until they are upgraded, although they are in no pool now.
  void KeepSetsInUse() {
    for (const auto& [name, node] : facts_.nodes) {
      if (!placed_.contains(name) && !Keeps(name, node)) continue;
      const std::string set = ValueIn(node.node.labels, kPoolLabel);
      if (facts_.daemon_sets.contains(set) && !plan_.daemon_sets.contains(set))
        plan_.kept_sets.insert(set);
    }
  }

  /// As it will be; null: there is none.
  const Json* SetNamed(const std::string& name) const {
    const Json* wanted = In(plan_.daemon_sets, name);
    return wanted != nullptr || !plan_.kept_sets.contains(name) ? wanted
                                                                : In(facts_.daemon_sets, name);
  }

  /// What each node of a pool needs of its DaemonSet.
  struct SetFacts {
    std::string target, digest, previous;
    /// The API server has it as it is wanted: before that, a pod that is deleted would come back as
    /// it was.
    bool applied = false;
  };

  /// Call once all DaemonSets are known. Their templates are long: each is read once.
  const SetFacts& FactsOfSet(const std::string& name) {
    const auto [at, is_new] = set_facts_.try_emplace(name);
    const Json* set = is_new ? SetNamed(name) : nullptr;
    if (set == nullptr) return at->second;
    const Json* found = In(facts_.daemon_sets, name);
    const std::string target = TemplateOf(*set);
    at->second = {target, ConfigDigestOf(*set), PreviousOf(*set),
                  found != nullptr && TemplateOf(*found) == target};
    return at->second;
  }

  // Upgrades.

  /// Of the labels that decide about an upgrade.
  static std::set<std::string> LabelsThatMatter(const DriverSpec& driver) {
    std::set<std::string> keys = {std::string(api::compat::kUpgradeSkipLabel),
                                  std::string(kPoolLabel)};
    for (const auto& [key, value] : driver.upgrade.canaries.node_selector) keys.insert(key);
    return keys;
  }

  UpgradeNode UpgradeNodeOf(const std::string& name, const Placement& placement,
                            const std::set<std::string>& labels) {
    const RolloutNode& node = facts_.nodes.at(name);
    UpgradeNode upgrade{.name = name, .record = known_.at(name).record};
    for (const std::string& key : labels)
      if (const std::string* value = In(node.node.labels, key)) upgrade.labels[key] = *value;
    upgrade.cordoned = node.cordoned;
    if (const NodeStep* step = In(facts_.being_written, name)) {
      if (step->cordon) upgrade.cordoned = *step->cordon;
      upgrade.is_ending =
          IsUnderway(StoredOf(name, node).record.state) && !IsUnderway(step->record.state);
    }
    upgrade.not_ready_since = node.not_ready_since;
    const SetFacts& set = FactsOfSet(placement.pool);
    upgrade.wanted = set.target;
    upgrade.wanted_digest = set.digest;
    upgrade.previous = set.previous;
    if (const RolloutPod* pod = In(facts_.pods, name)) {
      upgrade.pod = pod->pod;
      const DriverReport* report = In(facts_.reports, name);
      ValidationResult validation = ValidationOf(*pod, report, now_);
      upgrade.validation = facts_.reports_expected ? validation.state : DriverValidation::kPassed;
      upgrade.validation_text = std::move(validation.text);
      // A canary that is done is looked at, too.
      const UpgradeState state = upgrade.record.state;
      if (state == kValidation || state == kDone) LookAt(validation.look_again);
    }
    return upgrade;
  }

  /// The pods on a node are read only while its upgrade depends on them.
  bool NeedsPods(const UpgradeNode& node) const {
    return node.record.state >= kCordon && node.record.state <= kDrain;
  }

  /// Whether the step can be decided: false until the pods are read.
  bool AddPods(UpgradeNode& node, const api::UpgradePolicy& policy) {
    if (!NeedsPods(node)) return true;
    plan_.pods_needed.insert(node.name);
    const std::vector<Json>* pods = In(facts_.pods_of_nodes, node.name);
    if (pods == nullptr || !facts_.claims) return node.record.state == kCordon;
    node.holding = HoldingPods(*pods, *facts_.claims, facts_.refused);
    if (auto jobs = RunningPods(*pods, policy.wait.pod_selector); jobs.ok())
      node.jobs = *std::move(jobs);
    return true;
  }

  void Upgrade(const DriverSpec& driver, const DriverOwnership& ownership) {
    DriverOutcome outcome{.name = driver.name};
    std::vector<UpgradeNode> nodes;
    std::set<std::string> undecided;
    const std::set<std::string> labels = LabelsThatMatter(driver);
    for (const auto& [name, placement] : placed_) {
      if (placement.driver != &driver) continue;
      ++outcome.nodes;
      if (placement.pool.empty()) {
        AddWaiting(outcome, {name, "", "SystemUnknown", placement.why});
        continue;
      }
      nodes.push_back(UpgradeNodeOf(name, placement, labels));
      if (!AddPods(nodes.back(), driver.upgrade)) undecided.insert(name);
    }
    for (const auto& [name, why] : in_use_)
      if (!why.empty() && OwnerOf(name) == driver.name)
        AddWaiting(outcome, {name, "", "DevicesInUse", why});
    FleetPlan fleet = PlanUpgrades(nodes, driver.upgrade, now_);
    for (const UpgradeNode& node : nodes) {
      NodeStep& step = fleet.steps.at(node.name);
      Summarize(outcome, node, step);
      const bool waits =
          undecided.contains(node.name) || !FactsOfSet(placed_[node.name].pool).applied;
      if (waits) step = {.record = node.record};
      Write(node, std::move(step));
    }
    LookAt(fleet.look_again);
    outcome.counts = fleet.counts;
    outcome.gate = std::move(fleet.gate);
    outcome.gate_message = std::move(fleet.gate_message);
    if (auto upcoming = upcoming_.extract(driver.name)) outcome.upcoming = upcoming.mapped();
    Explain(outcome, driver, ownership);
    plan_.drivers.push_back(std::move(outcome));
  }

  std::string OwnerOf(const std::string& node) const {
    return ValueIn(facts_.nodes.at(node).node.labels, api::compat::kDriverOwnerLabel);
  }

  void Explain(DriverOutcome& outcome, const DriverSpec& driver, const DriverOwnership& ownership) {
    std::vector<std::string> conflicts;
    for (const DriverConflict* conflict : ownership.ConflictsOf(driver.name))
      if (conflicts.size() < kMostWaiting) conflicts.push_back(conflict->Message());
    outcome.conflict = base::Join(conflicts, "; ");
    if (const std::string* problem = In(ownership.problems, driver.name))
      outcome.problem = *problem;
    const Error* problem = In(problems_, driver.name);
    if (problem == nullptr || !outcome.problem.empty()) return;
    outcome.problem = problem->message();
    outcome.lacks_object = problem->code() == Code::kFailedPrecondition;
  }

  static void AddWaiting(DriverOutcome& outcome, WaitingNode node) {
    if (outcome.waiting.size() < kMostWaiting) outcome.waiting.push_back(std::move(node));
  }

  static void Summarize(DriverOutcome& outcome, const UpgradeNode& node, const NodeStep& step) {
    const DriverPod& pod = node.pod;
    const bool current = !pod.terminating && pod.target == node.wanted;
    const bool ready = !pod.name.empty() && current && pod.ready;
    outcome.ready += ready ? 1 : 0;
    const UpgradeState state = node.record.state;
    if (ready && (state == kDone || state == kUnknown)) return;
    if (outcome.waiting.size() >= kMostWaiting) return;
    WaitingNode waiting{node.name, std::string(NameOf(state)), step.reason, step.message};
    if (waiting.reason.empty()) {
      waiting.reason = node.record.reason;
      waiting.message = node.record.message;
    }
    if (waiting.reason.empty()) {
      waiting.reason = pod.name.empty() ? "DriverPodMissing"
                       : !current       ? "EarlierDriver"
                                        : "DriverLoading";
      waiting.message = pod.name.empty() ? "" : pod.trouble;
    }
    AddWaiting(outcome, std::move(waiting));
  }

  // What is written.

  void Write(const UpgradeNode& node, NodeStep step) {
    const RolloutNode& found = facts_.nodes.at(node.name);
    const Placement& placement = placed_.at(node.name);
    NodeWrite write;
    SetLabel(write, found, api::compat::kDriverOwnerLabel, placement.driver->name);
    SetLabel(write, found, kPoolLabel, PoolFor(node, step, placement));
    AddMarks(write, found, node.name, step);
    Add(node.name, std::move(write), std::move(step));
  }

  void Add(const std::string& name, NodeWrite write, NodeStep step) {
    write.step = std::move(step);
    if (!write.empty() && !facts_.being_written.contains(name))
      plan_.writes.emplace(name, std::move(write));
  }

  /// The pool changes where no pod is lost by it, or where the upgrade has come to replace the pod.
  std::string PoolFor(const UpgradeNode& node, const NodeStep& step,
                      const Placement& placement) const {
    std::string now = ValueIn(node.labels, kPoolLabel);
    const bool free = now.empty() || node.pod.name.empty() || SetNamed(now) == nullptr;
    const bool replacing = step.record.state >= kPodRestart && step.record.state <= kUncordon;
    return free || replacing ? placement.pool : std::move(now);
  }

  static void SetLabel(NodeWrite& write, const RolloutNode& node, std::string_view key,
                       const std::string& value) {
    if (ValueIn(node.node.labels, key) == value) return;
    write.labels[std::string(key)] = value.empty() ? std::nullopt : std::optional(value);
  }

  void AddMarks(NodeWrite& write, const RolloutNode& node, const std::string& name,
                const NodeStep& step) const {
    const Known& known = known_.at(name);
    if (known.tidy && step.record == known.record) return;
    const UpgradeMarks marks = MarksOf(step.record);
    AddDiffering(write.labels, marks.labels, node.node.labels);
    AddDiffering(write.annotations, marks.annotations, node.annotations);
  }

  static void AddDiffering(std::map<std::string, std::optional<std::string>>& write,
                           const std::map<std::string, std::optional<std::string>>& marks,
                           const NodeTexts& found) {
    for (const auto& [key, value] : marks) {
      const std::string* there = In(found, key);
      if (value ? there == nullptr || *there != *value : there != nullptr) write[key] = value;
    }
  }

  /// Takes back what the operator wrote where the node is to have no driver of ours.
  void WithoutDriver(const std::string& name, const RolloutNode& node) {
    UpgradeNode none{.name = name, .record = known_.at(name).record};
    none.cordoned = node.cordoned;
    NodeStep step = NextStep(none, {}, false, now_);
    NodeWrite write;
    SetLabel(write, node, api::compat::kDriverOwnerLabel, "");
    SetLabel(write, node, kPoolLabel, "");
    AddMarks(write, node, name, step);
    Add(name, std::move(write), std::move(step));
  }

  void LookAt(std::optional<WallTime> time) {
    if (time && (!plan_.look_again || *time < *plan_.look_again)) plan_.look_again = time;
  }

  const RolloutFacts& facts_;
  const WallTime now_;
  std::map<std::string, Placement> placed_;    // by node
  std::map<std::string, std::string> in_use_;  // nodes that keep a driver although they want none
  std::map<std::string, SetFacts> set_facts_;
  std::map<std::string, Known> known_;                               // by node
  std::map<std::string, std::vector<const UpgradeRecord*>> by_set_;  // of nodes, by their pool
  std::set<std::string> held_;             // earlier templates that nodes have
  std::map<std::string, Error> problems_;  // by driver
  std::map<std::string, std::vector<UpcomingKernel>> upcoming_;  // by driver
  RolloutPlan plan_;
};

}  // namespace

RolloutPlan PlanRollout(const RolloutFacts& facts, WallTime now) {
  return Rollout(facts, now).Plan();
}

}  // namespace penstock::cluster
