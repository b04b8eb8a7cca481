#include "analysis/explain/placement.h"

#include <algorithm>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "analysis/objects.h"
#include "base/core/strings.h"

namespace penstock::analysis {

namespace {

using Labels = std::map<std::string, std::string>;

constexpr std::size_t kMostNamed = 5;
constexpr char kNameField[] = "metadata.name";  // the one that matchFields can have; no label's key

/// What a label of a node has to be.
struct Requirement {
  std::string key, operation;
  std::vector<std::string> values;
  std::string field;  ///< of the pod
};

struct Candidate {
  std::string name;
  Labels labels;
};

std::vector<std::string> Strings(const Json& list) {
  std::vector<std::string> strings;
  if (list.is_array())
    for (const Json& one : list)
      if (one.is_string()) strings.push_back(one.get<std::string>());
  return strings;
}

bool IsNumberMet(const std::string& value, const Requirement& requirement) {
  const auto is = base::ParseInt(value);
  const auto limit =
      requirement.values.size() == 1 ? base::ParseInt(requirement.values[0]) : std::nullopt;
  if (!is || !limit) return false;
  return requirement.operation == "Gt" ? *is > *limit : *is < *limit;
}

bool IsMet(const Requirement& requirement, const Labels& labels) {
  const auto found = labels.find(requirement.key);
  const bool there = found != labels.end();
  const bool listed =
      there && std::ranges::find(requirement.values, found->second) != requirement.values.end();
  const std::string& operation = requirement.operation;
  if (operation == "In") return listed;
  if (operation == "NotIn") return !listed;
  if (operation == "Exists") return there;
  if (operation == "DoesNotExist") return !there;
  return there && IsNumberMet(found->second, requirement);
}

/// The alternatives of a pod, each with all that a node needs for it.
std::vector<std::vector<Requirement>> Alternatives(const Json& pod) {
  std::vector<Requirement> common;
  for (const auto& [key, value] : TextsAt(pod, {"spec", "nodeSelector"}))
    common.push_back({key, "In", {value}, "spec.nodeSelector"});
  const Json& terms =
      At(pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
               "nodeSelectorTerms"});
  if (!terms.is_array() || terms.empty()) return {common};
  std::vector<std::vector<Requirement>> alternatives;
  for (const Json& term : terms) {
    std::vector<Requirement> all = common;
    for (const char* of : {"matchExpressions", "matchFields"})
      if (const Json& list = At(term, {of}); list.is_array())
        for (const Json& one : list)
          all.push_back({TextAt(one, {"key"}), TextAt(one, {"operator"}),
                         Strings(At(one, {"values"})), "spec.affinity.nodeAffinity"});
    // A term without a requirement matches no node.
    if (all.size() > common.size()) alternatives.push_back(std::move(all));
  }
  return alternatives;
}

std::string TextOf(const Requirement& requirement) {
  if (requirement.operation == "In" && requirement.values.size() == 1)
    return requirement.key + "=" + requirement.values[0];
  const std::string values = base::Join(requirement.values, ", ");
  return requirement.key + " " + requirement.operation + (values.empty() ? "" : " " + values);
}

std::string Some(const std::set<std::string>& all) {
  const std::vector<std::string> names(all.begin(), all.end());
  const std::size_t shown = std::min(names.size(), kMostNamed);
  return base::Join({names.data(), shown}, ", ") +
         (names.size() > shown ? " and " + std::to_string(names.size() - shown) + " more" : "");
}

/// The key as nodes have it, or one with the same end or a typing error; empty: none.
std::string NearestKey(const Requirement& requirement, const std::vector<Candidate>& nodes) {
  std::set<std::string> keys;
  for (const Candidate& node : nodes)
    for (const auto& [key, value] : node.labels) keys.insert(key);
  const std::vector<std::string> all(keys.begin(), keys.end());
  return base::Nearest(requirement.key, all).value_or("");
}

std::string NextStep(const Requirement& requirement, const std::vector<Candidate>& nodes) {
  std::map<std::string, std::string> node_with;  // value → the first node that has it
  for (const Candidate& node : nodes)
    if (const auto found = node.labels.find(requirement.key); found != node.labels.end())
      node_with.emplace(found->second, node.name);
  if (node_with.empty()) {
    const std::string near = NearestKey(requirement, nodes);
    return near.empty() ? "no node has this label with any value: set it on a node, or change " +
                              requirement.field
                        : "no node has this label with any value; the nearest one that nodes have "
                          "is " +
                              near;
  }
  std::vector<std::string> values;
  for (const auto& [value, node] : node_with) values.push_back(value);
  for (const std::string& wanted :
       requirement.operation == "In" ? requirement.values : std::vector<std::string>())
    if (const auto near = base::Nearest(wanted, values))
      return "the nearest value is " + *near + ", of node " + node_with[*near] + ": change " +
             requirement.field + ", or the node";
  return "nodes have the values " + Some({values.begin(), values.end()}) + ": change " +
         requirement.field + ", or a node";
}

/// Each requirement that no node meets; if there is none, that no node meets all of them.
void Explain(const std::vector<Requirement>& all, const std::vector<Candidate>& nodes,
             std::vector<ExplainFinding>& findings) {
  const std::size_t before = findings.size();
  for (const Requirement& one : all)
    if (std::ranges::none_of(nodes, [&](const auto& node) { return IsMet(one, node.labels); }))
      findings.push_back({"no node has " + TextOf(one) + ", which its " + one.field + " needs",
                          NextStep(one, nodes)});
  if (findings.size() != before) return;
  std::vector<std::string> parts;
  for (const Requirement& one : all) {
    std::set<std::string> meeting;
    for (const Candidate& node : nodes)
      if (IsMet(one, node.labels)) meeting.insert(node.name);
    parts.push_back(TextOf(one) + " (" + Some(meeting) + ")");
  }
  findings.push_back({"no node has all of " + base::Join(parts, ", "),
                      "change its node selector or affinity, or the labels of a node"});
}

std::string WhyNotScheduled(const Json& pod) {
  const Json& conditions = At(pod, {"status", "conditions"});
  if (conditions.is_array())
    for (const Json& condition : conditions)
      if (TextAt(condition, {"type"}) == "PodScheduled" && TextAt(condition, {"status"}) == "False")
        return TextAt(condition, {"message"});
  return {};
}

}  // namespace

PodPlacement Place(const Json& pod, const std::vector<Json>& nodes) {
  PodPlacement placement{
      .pod = TextAt(pod, {"metadata", "namespace"}) + "/" + TextAt(pod, {"metadata", "name"}),
      .node = TextAt(pod, {"spec", "nodeName"}),
      .why = WhyNotScheduled(pod)};
  std::vector<Candidate> candidates;
  for (const Json& node : nodes) {
    const std::string name = TextAt(node, {"metadata", "name"});
    candidates.push_back({name, TextsAt(node, {"metadata", "labels"})});
    candidates.back().labels[kNameField] = name;
  }
  const auto alternatives = Alternatives(pod);
  std::set<std::string> matching;
  for (const auto& all : alternatives)
    for (const Candidate& node : candidates)
      if (std::ranges::all_of(all, [&](const auto& one) { return IsMet(one, node.labels); }))
        matching.insert(node.name);
  placement.matching.assign(matching.begin(), matching.end());
  if (matching.empty() && placement.node.empty())
    for (const auto& all : alternatives) Explain(all, candidates, placement.findings);
  if (alternatives.empty())
    placement.findings.push_back(
        {"the terms of its spec.affinity.nodeAffinity are empty, and match "
         "no node",
         "add an expression, or remove them"});
  return placement;
}

}  // namespace penstock::analysis
