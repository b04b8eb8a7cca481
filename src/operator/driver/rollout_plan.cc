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
    std::vector<DriverNode> eligible;
    for (const auto& [name, node] : facts_.nodes)
      if (MayHaveDriver(name, node)) eligible.push_back(node.node);
    const DriverOwnership ownership = AssignDrivers(eligible, facts_.drivers);
    for (const DriverSpec& driver : facts_.drivers) Place(driver, eligible, ownership);
    KeepSetsInUse();
    for (const DriverSpec& driver : facts_.drivers) Upgrade(driver, ownership);
    for (const auto& [name, node] : facts_.nodes)
      if (!placed_.contains(name) && !IsFrozen(node)) WithoutDriver(name, node);
    return std::move(plan_);
  }

 private:
  // Which nodes.

  bool MayHaveDriver(const std::string& name, const RolloutNode& node) {
    if (!node.has_devices || node.opted_out) return false;
    if (IsFrozen(node)) return false;
    const std::string deploy = ValueIn(node.node.labels, api::compat::kDeployDriverLabel);
    if (deploy == api::compat::kPreInstalled) plan_.host_drivers.insert(name);
    if (deploy != "true") return false;
    // A node that has a driver of ours keeps it, whatever is found on it besides.
    const bool has_one = !ValueIn(node.node.labels, kPoolLabel).empty();
    if (has_one || !facts_.reports_expected) return true;
    const DriverReport* report = In(facts_.reports, name);
    if (report == nullptr) return false;
    if (report->of_host) plan_.host_drivers.insert(name);
    return !report->of_host;
  }

  /// It has a driver whose object cannot be read now.
  bool IsFrozen(const RolloutNode& node) const {
    return facts_.unreadable.contains(ValueIn(node.node.labels, api::compat::kDriverOwnerLabel));
  }

  // DaemonSets.

  void Place(const DriverSpec& driver, const std::vector<DriverNode>& eligible,
             const DriverOwnership& ownership) {
    std::vector<DriverNode> owned;
    for (const DriverNode& node : eligible) {
      const std::string* owner = In(ownership.owner, node.name);
      if (driver.enabled && owner != nullptr && *owner == driver.name) owned.push_back(node);
    }
    DriverPools pools = PoolsOf(driver, owned);
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
    bool worked = false;
    for (const auto& [node_name, node] : facts_.nodes) {
      if (ValueIn(node.node.labels, kPoolLabel) != name) continue;
      const UpgradeRecord record = RecordOf(node_name, node);
      if (!record.held.empty()) return false;
      worked |= record.good == target;
    }
    return worked;
  }

  /// The DaemonSet of an earlier driver exists as long as a node has that driver.
  void AddHeld(const Json& set) {
    const std::string previous = PreviousOf(set);
    const bool is_held = std::ranges::any_of(facts_.nodes, [&](const auto& node) {
      return !previous.empty() && ValueIn(node.second.node.labels, kHeldLabel) == previous;
    });
    if (!is_held) return;
    if (auto held = HeldDaemonSet(set))
      plan_.daemon_sets.emplace(TextAt(*held, "/metadata/name"), *held);
  }

  /// DaemonSets by which nodes have pods until they are upgraded, although they are in no pool now.
  void KeepSetsInUse() {
    for (const auto& [name, node] : facts_.nodes) {
      if (!placed_.contains(name) && !IsFrozen(node)) continue;
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

  // Upgrades.

  /// A node that is being written already says what it will say.
  UpgradeRecord RecordOf(const std::string& name, const RolloutNode& node) const {
    if (const NodeStep* step = In(facts_.being_written, name)) return step->record;
    return ReadUpgradeRecord(node.node.labels, node.annotations, now_);
  }

  UpgradeNode UpgradeNodeOf(const std::string& name, const Placement& placement) {
    const RolloutNode& node = facts_.nodes.at(name);
    UpgradeNode upgrade{.name = name, .labels = node.node.labels};
    upgrade.record = RecordOf(name, node);
    upgrade.cordoned = node.cordoned;
    if (const NodeStep* step = In(facts_.being_written, name); step != nullptr && step->cordon)
      upgrade.cordoned = *step->cordon;
    upgrade.not_ready_since = node.not_ready_since;
    if (const Json* set = SetNamed(placement.pool)) {
      upgrade.wanted = TemplateOf(*set);
      upgrade.wanted_digest = ConfigDigestOf(*set);
      upgrade.previous = PreviousOf(*set);
    }
    if (const RolloutPod* pod = In(facts_.pods, name)) {
      upgrade.pod = pod->pod;
      const DriverReport* report = In(facts_.reports, name);
      ValidationResult validation = ValidationOf(*pod, report, now_);
      upgrade.validation = facts_.reports_expected ? validation.state : DriverValidation::kPassed;
      upgrade.validation_text = std::move(validation.text);
      if (upgrade.record.state == kValidation) LookAt(validation.look_again);
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
    node.holding = HoldingPods(*pods, *facts_.claims, {}, facts_.refused);
    if (auto jobs = RunningPods(*pods, policy.wait.pod_selector); jobs.ok())
      node.jobs = *std::move(jobs);
    return true;
  }

  /// Whether the API server has the DaemonSet as it is wanted: before that, a pod that is deleted
  /// would come back as it was.
  bool IsApplied(const std::string& set) const {
    const Json* found = In(facts_.daemon_sets, set);
    const Json* wanted = SetNamed(set);
    return found != nullptr && wanted != nullptr && TemplateOf(*found) == TemplateOf(*wanted);
  }

  void Upgrade(const DriverSpec& driver, const DriverOwnership& ownership) {
    DriverOutcome outcome{.name = driver.name};
    std::vector<UpgradeNode> nodes;
    std::set<std::string> undecided;
    for (const auto& [name, placement] : placed_) {
      if (placement.driver != &driver) continue;
      ++outcome.nodes;
      if (placement.pool.empty()) {
        AddWaiting(outcome, {name, "", "SystemUnknown", placement.why});
        continue;
      }
      nodes.push_back(UpgradeNodeOf(name, placement));
      if (!AddPods(nodes.back(), driver.upgrade)) undecided.insert(name);
    }
    FleetPlan fleet = PlanUpgrades(nodes, driver.upgrade, now_);
    for (const UpgradeNode& node : nodes) {
      NodeStep& step = fleet.steps.at(node.name);
      Summarize(outcome, node, step);
      const bool waits = undecided.contains(node.name) || !IsApplied(placed_[node.name].pool);
      if (waits) step = {.record = node.record};
      Write(node, std::move(step));
    }
    LookAt(fleet.look_again);
    outcome.counts = fleet.counts;
    outcome.gate = std::move(fleet.gate);
    outcome.gate_message = std::move(fleet.gate_message);
    Explain(outcome, driver, ownership);
    plan_.drivers.push_back(std::move(outcome));
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
    NodeWrite& write = plan_.writes[node.name];
    SetLabel(write, found, api::compat::kDriverOwnerLabel, placement.driver->name);
    SetLabel(write, found, kPoolLabel, PoolFor(node, step, placement));
    AddMarks(write, found, step);
    write.step = std::move(step);
    if (facts_.being_written.contains(node.name) || write.empty()) plan_.writes.erase(node.name);
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

  static void AddMarks(NodeWrite& write, const RolloutNode& node, const NodeStep& step) {
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
    UpgradeNode none{.name = name, .labels = node.node.labels, .record = RecordOf(name, node)};
    none.cordoned = node.cordoned;
    NodeStep step = NextStep(none, {}, false, now_);
    NodeWrite& write = plan_.writes[name];
    SetLabel(write, node, api::compat::kDriverOwnerLabel, "");
    SetLabel(write, node, kPoolLabel, "");
    AddMarks(write, node, step);
    write.step = std::move(step);
    if (facts_.being_written.contains(name) || write.empty()) plan_.writes.erase(name);
  }

  void LookAt(std::optional<WallTime> time) {
    if (time && (!plan_.look_again || *time < *plan_.look_again)) plan_.look_again = time;
  }

  const RolloutFacts& facts_;
  const WallTime now_;
  std::map<std::string, Placement> placed_;  // by node
  std::map<std::string, Error> problems_;    // by driver
  RolloutPlan plan_;
};

}  // namespace

RolloutPlan PlanRollout(const RolloutFacts& facts, WallTime now) {
  return Rollout(facts, now).Plan();
}

}  // namespace penstock::cluster
