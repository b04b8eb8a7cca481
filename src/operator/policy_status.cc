#include "operator/policy_status.h"

#include <algorithm>

#include "api/compat/policy_state.h"
#include "base/core/strings.h"
#include "operator/driver_status.h"
#include "operator/json_values.h"

namespace penstock::cluster {

using api::compat::Counted;
using api::compat::FieldAnswer;
using api::compat::FieldFate;

namespace {

constexpr char kDefinitionsApplied[] = "DefinitionsApplied",
               kOperandsReplaced[] = "OperandsReplaced";
constexpr std::size_t kMostText = 16u << 10;  // of a message; the schema allows 32 KiB

std::string Joined(const std::vector<std::string>& sentences) {
  std::string text;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    if (text.size() + sentences[i].size() > kMostText)
      return text + "; and " + std::to_string(sentences.size() - i) + " more";
    text += (text.empty() ? "" : "; ") + sentences[i];
  }
  return text;
}

bool IsOfDriver(std::string_view reason) {
  return reason == "DriverMissing" || reason == "DriverUnusable" || reason == "NoDriver" ||
         reason == "DriverNotReady";
}

std::string OfNodes(const FleetState& fleet) {
  const std::size_t bad = fleet.NotReady();
  std::string text =
      std::to_string(bad) + " of " + std::to_string(fleet.nodes) + " nodes not ready";
  constexpr std::size_t kMost = 3;
  for (std::size_t i = 0; i < std::min(kMost, fleet.named.size()); ++i)
    text += (i == 0 ? ": " : "; ") + fleet.named[i].name + ": " + fleet.named[i].reason;
  return bad > kMost ? text + "; ..." : text;
}

std::string OfAgents(const AgentsState& agents) {
  std::string text = "agents: " + std::to_string(agents.ready) + " ready and " +
                     std::to_string(agents.updated) + " current, of " +
                     std::to_string(agents.desired) + " nodes";
  constexpr std::size_t kMost = 3;
  for (std::size_t i = 0; i < std::min(kMost, agents.troubles.size()); ++i)
    text += "; " + agents.troubles[i];
  return agents.troubles.size() > kMost ? text + "; ..." : text;
}

/// A ClusterPolicy does not wait for the nodes of other vendors.
const FleetState& FleetOf(const PolicyOutcome& outcome, const ClusterFacts& facts) {
  return outcome.policy->kind == &api::compat::PenstockKind() ? facts.all_accelerators
                                                              : facts.fleet;
}

VendorNodes NodesOfVendor(const PolicyOutcome& outcome, const ClusterFacts& facts) {
  const auto found = facts.vendors.find(outcome.policy->kind->vendor);
  return found == facts.vendors.end() ? VendorNodes{} : found->second;
}

/// What is still missing of nodes, after the agents; an empty text: nothing.
PolicyState ProgressOfNodes(const FleetState& fleet, bool reports_expected) {
  if (!reports_expected || fleet.NotReady() == 0)
    return {"ready", "Reconciled", "all nodes with devices are ready"};
  const bool only_drivers = std::ranges::all_of(fleet.by_reason, [](const auto& reason) {
    return IsOfDriver(reason.first) || reason.first == "OptedOut";
  });
  return {"notReady", only_drivers ? "DriverNotReady" : "OperandNotReady", OfNodes(fleet)};
}

/// What is still missing; an empty text: nothing.
PolicyState ProgressOfAgents(const ClusterFacts& facts) {
  const auto waits = [](const std::string& reason, const std::string& message) {
    return PolicyState{"notReady", reason, message};
  };
  const AgentsState& agents = facts.agents;
  if (!facts.complete) return waits("OperandNotReady", "reading the cluster's objects");
  if (!agents.exists) return waits("OperandNotReady", "agents: there is no DaemonSet yet");
  if (!agents.current)
    return waits("OperandNotReady",
                 "agents: the cluster's DaemonSet controller has not acted on the last change yet");
  if (!agents.complete()) return waits("OperandNotReady", OfAgents(agents));
  if (facts.reports_expected && facts.reports < agents.desired)
    return waits("OperandNotReady", std::to_string(facts.reports) + " of " +
                                        std::to_string(agents.desired) + " nodes have reported");
  return {};
}

PolicyState Progress(const FleetState& fleet, const ClusterFacts& facts) {
  if (PolicyState agents = ProgressOfAgents(facts); !agents.state.empty()) return agents;
  for (const DriverOutcome& driver : facts.drivers)
    if (const DriverTrouble trouble = TroubleOfDriver(driver); !trouble.reason.empty())
      return {
          "notReady", "DriverNotReady",
          (driver.name.empty() ? "driver: " : "driver " + driver.name + ": ") + trouble.message};
  if (fleet.nodes == 0)
    return {"ready", "NoGPUNodes", "no node of the cluster has a supported device"};
  return ProgressOfNodes(fleet, facts.reports_expected);
}

/// Of an object of a kind with a vendor: of this vendor's nodes only. The reason is that of AMD's
/// operator (internal/conditions/deviceconfig.go).
PolicyState OfVendor(const FleetState& fleet, const ClusterFacts& facts) {
  if (PolicyState agents = ProgressOfAgents(facts); !agents.state.empty()) return agents;
  PolicyState state = ProgressOfNodes(fleet, facts.reports_expected);
  if (state.state == "ready") state.reason = "OperatorReady";
  if (!facts.reports_expected) {
    state.message = "all agents are ready; without NodeState objects no nodes are counted";
  } else if (fleet.nodes == 0) {
    state.message = "no node with an agent has devices of this vendor";
  }
  return state;
}

/// Of an object that adds a driver: of this driver only.
PolicyState OfDriver(const std::string& name, const ClusterFacts& facts) {
  const auto driver = std::ranges::find(facts.drivers, name, &DriverOutcome::name);
  if (driver == facts.drivers.end())
    return {"notReady", "DriverNotReady", "reading the cluster's objects"};
  DriverTrouble trouble = TroubleOfDriver(*driver);
  if (!trouble.reason.empty())
    return {"notReady", std::move(trouble.reason), std::move(trouble.message), trouble.error};
  return {"ready", "Reconciled",
          driver->nodes == 0 ? "no node has this driver"
                             : std::to_string(driver->nodes) + " nodes have the driver"};
}

Json ConditionOf(const char* type, bool status, const std::string& reason,
                 const std::string& message) {
  return {{"type", type},
          {"status", status ? "True" : "False"},
          {"reason", reason},
          {"message", message}};
}

std::string Sentence(const FieldAnswer& answer) { return answer.field + ": " + answer.text; }

/// Whether the field has no effect that it should have.
bool IsNotServed(const FieldAnswer& answer) {
  return answer.fate == FieldFate::kNotServed || answer.fate == FieldFate::kUnknown;
}

/// Whether each field that the policy sets takes effect, and what becomes of those that do not.
Json FieldsServed(const PolicyOutcome& outcome) {
  std::vector<std::string> sentences = outcome.remarks;
  const bool all = std::ranges::none_of(outcome.answers, IsNotServed);
  for (const FieldAnswer& answer : outcome.answers)
    if (answer.fate != FieldFate::kHonoured) sentences.push_back(Sentence(answer));
  const char* reason = !all                ? "FieldsNotServed"
                       : sentences.empty() ? "AllFieldsServed"
                                           : "ServedWithRemarks";
  return ConditionOf("FieldsServed", all, reason, Joined(sentences));
}

Json ConditionIn(const Json& status, const Json& type) {
  for (const Json& condition : ListAt(status, "/conditions"))
    if (TextAt(condition, "/type") == type) return condition;
  return {};
}

/// Whether what this generation wants was written once, by this operator or one before it.
bool WasWritten(const PolicyOutcome& outcome, const ClusterFacts& facts, const Json& found) {
  const Json* generation = Find(outcome.policy->object, "/metadata/generation");
  if (generation == nullptr) return false;
  const auto written = facts.generations_written.find(NameOf(*outcome.policy).uid);
  if (written != facts.generations_written.end()) return written->second == *generation;
  const Json ready = ConditionIn(found, "Ready");
  const Json* observed = Find(ready, "/observedGeneration");
  return observed != nullptr && *observed == *generation;
}

/// An unchanged condition keeps its time.
void SetTimes(Json& conditions, const Json& found, const std::string& now) {
  for (Json& condition : conditions) {
    const Json before = ConditionIn(found, condition["type"]);
    const bool same = TextAt(before, "/status") == condition["status"] &&
                      !TextAt(before, "/lastTransitionTime").empty();
    condition["lastTransitionTime"] = same ? before["lastTransitionTime"] : Json(now);
  }
}

/// Where nothing is written, the generation was observed once it was read.
void SetGeneration(Json& conditions, const Json& found, const PolicyOutcome& outcome,
                   bool written) {
  const bool observed = written || !outcome.ignored.empty() || !outcome.problem.empty();
  const Json* generation = Find(outcome.policy->object, "/metadata/generation");
  for (Json& condition : conditions) {
    const Json before = ConditionIn(found, condition["type"]);
    const Json* known = observed ? generation : Find(before, "/observedGeneration");
    if (known != nullptr && known->is_number_integer()) condition["observedGeneration"] = *known;
  }
}

Json NodesOf(const FleetState& fleet) {
  Json nodes = {{"total", fleet.nodes}};
  if (!fleet.by_state.empty()) nodes["byState"] = fleet.by_state;
  if (!fleet.by_reason.empty()) nodes["byReason"] = fleet.by_reason;
  for (const NodeReadiness& node : fleet.named) {
    Json one = {{"name", node.name}, {"state", node.state}, {"reason", node.reason}};
    if (!node.message.empty()) one["message"] = node.message;
    if (!node.since.empty()) one["since"] = node.since;
    nodes["notReady"].push_back(std::move(one));
  }
  return nodes;
}

std::size_t NumberOf(const VendorNodes& nodes, Counted counted) {
  if (counted == Counted::kAgents) return nodes.agents;
  if (counted == Counted::kDrivers) return nodes.drivers;
  const auto ready = nodes.fleet.by_state.find("ready");
  return ready == nodes.fleet.by_state.end() ? 0 : ready->second;
}

/// What the status has for each component that the object switches on.
void AddCounts(const PolicyOutcome& outcome, const VendorNodes& nodes, Json& status) {
  for (const auto& [field, counted] : outcome.components)
    status[field] = {{"nodesMatchingSelectorNumber", nodes.fleet.nodes},
                     {"desiredNumber", nodes.fleet.nodes},
                     {"availableNumber", NumberOf(nodes, counted)}};
}

/// With the fields of the vendor's operator and no others: a server drops what the definition of
/// that operator, which may be the one in force, does not have.
Json VendorStatusOf(const PolicyOutcome& outcome, const ClusterFacts& facts, Json conditions) {
  Json status = Json::object();
  if (outcome.ignored.empty() && outcome.problem.empty())
    AddCounts(outcome, NodesOfVendor(outcome, facts), status);
  if (const Json* observed = Find(conditions, "/0/observedGeneration"))
    status["observedGeneration"] = *observed;
  status["conditions"] = std::move(conditions);
  return status;
}

/// All drivers, or that of the object.
std::vector<DriverOutcome> DriversFor(const PolicyOutcome& outcome, const ClusterFacts& facts) {
  const PolicyObject& policy = *outcome.policy;
  if (!outcome.ignored.empty() || !policy.kind->not_served.empty()) return {};
  std::vector<DriverOutcome> drivers = facts.drivers;
  if (AddsDriver(policy))
    std::erase_if(drivers, [name = NameOf(policy).name](const DriverOutcome& driver) {
      return driver.name != name;
    });
  return drivers;
}

/// A warning about the future: the policy is as ready with it as without.
Json NextKernelImages(const std::vector<std::string>& missing) {
  const char* reason = missing.empty() ? "ImagesAvailable" : "ImagesMissing";
  return ConditionOf("NextKernelImages", missing.empty(), reason, Joined(missing));
}

/// Why definitions that concern this object are used as they were found: that of its kind, and
/// those without which objects are not read at all.
std::optional<std::string> DefinitionsKept(const PolicyOutcome& outcome,
                                           const ClusterFacts& facts) {
  if (!facts.definitions) return std::nullopt;
  const api::compat::PolicyKind& kind = *outcome.policy->kind;
  const auto is_policys = [](const std::string& name) {
    const auto names = [&name](const api::compat::PolicyKind& one) {
      return name == one.plural + "." + one.group;
    };
    return names(api::compat::PenstockKind()) ||
           std::ranges::any_of(api::compat::PolicyKinds(), names);
  };
  std::vector<std::string> sentences;
  for (const auto& [name, kept] : *facts.definitions)
    if (name == kind.plural + "." + kind.group || !kept.served || !is_policys(name))
      sentences.push_back(kept.why);
  return Joined(sentences);
}

/// A warning: objects are read as the definition that is there lets them be written. Null: none.
Json DefinitionsApplied(const PolicyOutcome& outcome, const ClusterFacts& facts,
                        const Json& found) {
  const std::optional<std::string> kept = DefinitionsKept(outcome, facts);
  if (!kept) return ConditionIn(found, kDefinitionsApplied);
  return kept->empty() ? Json() : ConditionOf(kDefinitionsApplied, false, "DefinitionsKept", *kept);
}

/// A warning: both do the same work. Null: none.
Json OperandsReplaced(const PolicyOutcome& outcome, const ClusterFacts& facts, const Json& found) {
  if (!outcome.ignored.empty()) return {};
  if (!facts.operands_left) return ConditionIn(found, kOperandsReplaced);
  if (facts.operands_left->empty()) return {};
  return ConditionOf(kOperandsReplaced, false, "OperandsLeft", *facts.operands_left);
}

bool AreFieldsAnswered(const PolicyOutcome& outcome) {
  return outcome.answered && outcome.ignored.empty() && outcome.problem.empty();
}

PolicyState StateAlone(const PolicyOutcome& outcome, const ClusterFacts& facts, const Json& found) {
  const bool has_vendor = !outcome.policy->kind->vendor.empty();
  if (!outcome.ignored.empty())
    return {"ignored", std::string(api::compat::kIgnored), outcome.ignored};
  if (!outcome.problem.empty())
    return {"notReady", has_vendor ? "ValidationError" : "ReconcileFailed",
            Joined({outcome.problem}), true};
  if (const std::string& why = outcome.policy->kind->not_served; !why.empty())
    return {"notReady", "NotServed", why};
  if (!facts.problems.empty()) return {"notReady", "ReconcileFailed", Joined(facts.problems), true};
  if (!facts.written && !WasWritten(outcome, facts, found))
    return {"notReady", "OperandNotReady", "what it changes is not written yet"};
  if (has_vendor) return OfVendor(NodesOfVendor(outcome, facts).fleet, facts);
  return AddsDriver(*outcome.policy) ? OfDriver(NameOf(*outcome.policy).name, facts)
                                     : Progress(FleetOf(outcome, facts), facts);
}

}  // namespace

PolicyState StateOf(const PolicyOutcome& outcome, const ClusterFacts& facts, const Json& found) {
  PolicyState state = StateAlone(outcome, facts, found);
  state.definitions = DefinitionsKept(outcome, facts);
  if (outcome.ignored.empty()) state.operands_left = facts.operands_left;
  // Of a kind that is not served at all, the state says so.
  if (!AreFieldsAnswered(outcome) || !outcome.policy->kind->not_served.empty()) return state;
  for (const FieldAnswer& answer : outcome.answers)
    if (IsNotServed(answer)) state.not_served.push_back(Sentence(answer));
  state.fields = state.not_served.empty() ? "" : TextAt(FieldsServed(outcome), "/message");
  return state;
}

Json StatusOf(const PolicyOutcome& outcome, const ClusterFacts& facts, const Json& found,
              const std::string& now) {
  const PolicyState state = StateOf(outcome, facts, found);
  const bool ready = state.state == "ready";
  Json conditions = Json::array();
  conditions.push_back(ConditionOf("Ready", ready, state.reason, state.message));
  conditions.push_back(ConditionOf("Error", state.error, state.error ? state.reason : "Ready",
                                   state.error ? state.message : ""));
  if (AreFieldsAnswered(outcome)) conditions.push_back(FieldsServed(outcome));
  std::vector<DriverOutcome> drivers;
  if (outcome.policy->kind->vendor.empty()) drivers = DriversFor(outcome, facts);
  if (const auto missing = MissingImagesOf(drivers))
    conditions.push_back(NextKernelImages(*missing));
  if (Json applied = DefinitionsApplied(outcome, facts, found); !applied.is_null())
    conditions.push_back(std::move(applied));
  if (Json replaced = OperandsReplaced(outcome, facts, found); !replaced.is_null())
    conditions.push_back(std::move(replaced));
  SetTimes(conditions, found, now);
  SetGeneration(conditions, found, outcome, facts.written);
  if (!outcome.policy->kind->vendor.empty())
    return VendorStatusOf(outcome, facts, std::move(conditions));
  Json status = {{"state", state.state},
                 {"namespace", facts.namespace_name},
                 {"conditions", std::move(conditions)}};
  if (outcome.ignored.empty() && outcome.policy->kind->not_served.empty() &&
      !AddsDriver(*outcome.policy))
    status["nodes"] = NodesOf(FleetOf(outcome, facts));
  if (!drivers.empty()) status["drivers"] = DriversInStatus(drivers);
  return status;
}

PolicyState StateOfUndecided(const std::vector<std::string>& problems) {
  if (problems.empty()) return {};
  return {"notReady", "ReconcileFailed", Joined(problems), true};
}

Json StatusOfUndecided(const PolicyObject& policy, const std::vector<std::string>& problems,
                       const Json& found, const std::string& now) {
  const PolicyState state = StateOfUndecided(problems);
  if (state.state.empty()) return {};
  Json conditions = Json::array({ConditionOf("Ready", false, state.reason, state.message),
                                 ConditionOf("Error", true, state.reason, state.message)});
  SetTimes(conditions, found, now);
  for (Json& condition : conditions) {
    const Json before = ConditionIn(found, condition["type"]);
    if (const Json* known = Find(before, "/observedGeneration"))
      condition["observedGeneration"] = *known;
  }
  for (const char* type : {"FieldsServed", kDefinitionsApplied, kOperandsReplaced})
    if (Json known = ConditionIn(found, type); !known.is_null())
      conditions.push_back(std::move(known));
  Json status = found.is_object() ? found : Json::object();
  status["conditions"] = std::move(conditions);
  if (policy.kind->vendor.empty()) status["state"] = state.state;
  return status;
}

Json StatusOfDeleted(const PolicyObject& policy, const std::vector<std::string>& left,
                     const Json& found, const std::string& now) {
  Json conditions =
      Json::array({ConditionOf("Ready", false, "Deleting", "to be taken back: " + Joined(left))});
  SetTimes(conditions, found, now);
  if (!policy.kind->vendor.empty()) return {{"conditions", std::move(conditions)}};
  Json status = {{"state", "notReady"}, {"conditions", std::move(conditions)}};
  if (const Json* space = Find(found, "/namespace")) status["namespace"] = *space;
  return status;
}

}  // namespace penstock::cluster
