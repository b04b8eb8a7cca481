#include "operator/node_marks.h"

#include <algorithm>

#include "api/compat/policy_kinds.h"
#include "operator/json_values.h"
#include "operator/names.h"

namespace penstock::cluster {

using protocol::kube::OwnedKeys;

namespace {

constexpr char kClaimed[] = "claimed";  // of a reduced Node

std::string ValueIn(const Texts& texts, const std::string& key) {
  const auto found = texts.find(key);
  return found == texts.end() ? "" : found->second;
}

Json Selected(const Texts& texts, const std::set<std::string>& keys) {
  Json selected = Json::object();
  for (const std::string& key : keys)
    if (const auto found = texts.find(key); found != texts.end()) selected[key] = found->second;
  return selected;
}

/// The labels of a node with devices that did not opt out.
Texts LabelsFor(const Texts& there, const api::PenstockSpec& spec, bool has_host_driver) {
  Texts labels = spec.marks.labels;
  const auto& [driver, of_host] = api::compat::HostDriverMark();
  if (labels.contains(driver) && (has_host_driver || ValueIn(there, driver) == of_host))
    labels[driver] = of_host;
  if (!spec.marks.present_label.empty()) labels[spec.marks.present_label] = "true";
  if (spec.marks.labels.empty()) return labels;
  for (const auto& mark : api::compat::ConditionalMarks()) {
    const std::string& value = mark.value.empty() ? spec.node.default_layout : mark.value;
    if (ValueIn(there, mark.needed) == "true" && !value.empty()) labels[mark.key] = value;
  }
  return labels;
}

/// Leaves out what others have decided, and notes what is missing. `usual`: what the operator
/// itself may have written, so that it is no decision.
Texts Applicable(const Texts& wanted, const Texts& there, const Texts& usual, NodeMarksPlan& plan) {
  Texts applied;
  for (const auto& [key, value] : wanted) {
    const auto found = there.find(key);
    const bool empty = found == there.end() || found->second.empty();
    const bool differs = found == there.end() || found->second != value;
    if (!empty && differs && found->second != ValueIn(usual, key)) continue;
    applied[key] = value;
    plan.differs |= differs;
  }
  return applied;
}

/// The keys that the operator writes on some node, or has written there for another policy.
std::set<std::string> OwnLabels(const api::PenstockSpec& spec) {
  std::set<std::string> keys;
  for (const api::NodeMarks* marks : {&spec.marks, &api::compat::AllMarks()}) {
    for (const auto& [key, value] : marks->labels) keys.insert(key);
    if (!marks->present_label.empty()) keys.insert(marks->present_label);
  }
  for (const auto& mark : api::compat::ConditionalMarks()) keys.insert(mark.key);
  return keys;
}

std::set<std::string> OwnAnnotations(const api::PenstockSpec& spec) {
  std::set<std::string> keys;
  for (const api::NodeMarks* marks : {&spec.marks, &api::compat::AllMarks()})
    for (const auto& [key, value] : marks->annotations) keys.insert(key);
  return keys;
}

bool HasOther(const std::set<std::string>& own, const Texts& there, const Texts& wanted) {
  return std::ranges::any_of(
      own, [&](const std::string& key) { return there.contains(key) && !wanted.contains(key); });
}

/// What stays on a node although it is not wanted now: a label that disappears, by which devices
/// were found, removes nothing.
Texts Kept(const Texts& there, const Texts& wanted) {
  Texts kept;
  for (const auto& [key, value] : wanted)
    if (ValueIn(there, key) == value) kept[key] = value;
  return kept;
}

bool IsOurs(const std::string& manager) { return manager == kManager; }

bool IsOfObject(const Json& entry) { return TextAt(entry, "/subresource").empty(); }

bool IsApplyOfMarks(const Json& entry) {
  return IsOurs(TextAt(entry, "/manager")) && TextAt(entry, "/operation") == "Apply" &&
         IsOfObject(entry);
}

void AddDifferent(const Texts& wanted, const Texts& there, const char* map, Json& patch) {
  for (const auto& [key, value] : wanted)
    if (const auto found = there.find(key); found == there.end() || found->second != value)
      patch["metadata"][map][key] = value;
}

}  // namespace

bool MarkKeys::Contains(const MarkKeys& other) const {
  return std::ranges::includes(labels, other.labels) &&
         std::ranges::includes(annotations, other.annotations) &&
         std::ranges::includes(written, other.written);
}

void MarkKeys::Add(const MarkKeys& other) {
  labels.insert(other.labels.begin(), other.labels.end());
  annotations.insert(other.annotations.begin(), other.annotations.end());
  written.insert(other.written.begin(), other.written.end());
}

MarkKeys KeysOf(const api::PenstockSpec& spec) {
  MarkKeys keys{OwnLabels(spec), OwnAnnotations(spec), OwnLabels(spec)};
  for (const std::string& key : api::compat::DeviceLabels()) keys.labels.insert(key);
  for (const auto& mark : api::compat::ConditionalMarks()) keys.labels.insert(mark.needed);
  if (!spec.marks.opt_out_label.empty()) keys.labels.insert(spec.marks.opt_out_label);
  return keys;
}

Json ReducedNode(const Json& node, const MarkKeys& keys) {
  Json reduced = {
      {"metadata",
       {{"name", TextAt(node, "/metadata/name")},
        {"uid", TextAt(node, "/metadata/uid")},
        {"labels", Selected(TextsAt(node, "/metadata/labels"), keys.labels)},
        {"annotations", Selected(TextsAt(node, "/metadata/annotations"), keys.annotations)}}}};
  const auto claims_more = [&keys](const Json& entry) {
    return IsApplyOfMarks(entry) && !protocol::kube::HasOnlyMarks(entry, keys.written);
  };
  if (std::ranges::any_of(ListAt(node, "/metadata/managedFields"), claims_more))
    reduced[kClaimed] = true;
  return reduced;
}

NodeMarksPlan PlanMarks(const Json& node, const api::PenstockSpec& spec, const MarkKeys& keys,
                        MarkFacts facts) {
  const Texts labels = TextsAt(node, "/metadata/labels");
  const Texts annotations = TextsAt(node, "/metadata/annotations");
  NodeMarksPlan plan;
  plan.has_devices = api::compat::HasDevices(labels, spec.marks.present_label);
  plan.opted_out =
      !spec.marks.opt_out_label.empty() && ValueIn(labels, spec.marks.opt_out_label) == "false";
  const auto& [driver, of_host] = api::compat::HostDriverMark();
  plan.host_driver = ValueIn(labels, driver) == of_host;
  plan.claimed = node.contains(kClaimed);
  Texts wanted_labels, wanted_annotations;
  if (facts.wanted) {
    wanted_labels = LabelsFor(labels, spec, facts.has_host_driver);
    wanted_annotations = spec.marks.annotations;
    if (plan.opted_out)
      std::erase_if(wanted_labels,
                    [&](const auto& label) { return label.first != spec.marks.present_label; });
    if (!plan.has_devices) {
      wanted_labels = Kept(labels, wanted_labels);
      wanted_annotations = Kept(annotations, wanted_annotations);
    }
  }
  plan.labels = Applicable(wanted_labels, labels, spec.marks.labels, plan);
  plan.annotations = Applicable(wanted_annotations, annotations, {}, plan);
  plan.doubtful = HasOther(keys.written, labels, plan.labels) ||
                  HasOther(keys.annotations, annotations, plan.annotations);
  return plan;
}

bool AppliedMore(const Json& object, const NodeMarksPlan& plan) {
  const auto lacks = [](const Json& entry, const char* map, const Texts& wanted) {
    const Json* fields = Find(entry, std::string("/fieldsV1/f:metadata/f:") + map);
    if (fields == nullptr || !fields->is_object()) return false;
    for (const auto& [key, none] : fields->items())
      if (key.starts_with("f:") && !wanted.contains(key.substr(2))) return true;
    return false;
  };
  return std::ranges::any_of(ListAt(object, "/metadata/managedFields"), [&](const Json& entry) {
    return IsApplyOfMarks(entry) &&
           (lacks(entry, "labels", plan.labels) || lacks(entry, "annotations", plan.annotations));
  });
}

OwnedKeys ExcessOf(const Json& node, const NodeMarksPlan& plan, const MarkKeys& keys) {
  OwnedKeys excess = protocol::kube::OwnedAlone(node, IsApplyOfMarks, IsOurs);
  std::erase_if(excess.labels, [&keys](const std::string& key) {
    return !protocol::kube::MayBeANodes(key) && !keys.written.contains(key);
  });
  OwnedKeys all = protocol::kube::OwnedAlone(node, IsOfObject, IsOurs);
  std::erase_if(all.labels, [&](const std::string& key) { return !keys.written.contains(key); });
  std::erase_if(all.annotations,
                [&](const std::string& key) { return !keys.annotations.contains(key); });
  excess.labels.merge(all.labels);
  excess.annotations.merge(all.annotations);
  for (const auto& [key, value] : plan.labels) excess.labels.erase(key);
  for (const auto& [key, value] : plan.annotations) excess.annotations.erase(key);
  return excess;
}

bool MayBeApplied(const NodeMarksPlan& plan) { return !plan.claimed && !plan.labels.empty(); }

Json MarksObject(const Json& object, const NodeMarksPlan& plan, const std::string& version) {
  // The uid prevents the apply from creating an object that was just deleted.
  Json metadata = {{"name", TextAt(object, "/metadata/name")},
                   {"uid", TextAt(object, "/metadata/uid")},
                   {"resourceVersion", version}};
  if (!plan.labels.empty()) metadata["labels"] = plan.labels;
  if (!plan.annotations.empty()) metadata["annotations"] = plan.annotations;
  return {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", metadata}};
}

Json MarksPatch(const Json& object, const NodeMarksPlan& plan, const OwnedKeys& excess) {
  Json patch = protocol::kube::Without(excess, object);
  AddDifferent(plan.labels, TextsAt(object, "/metadata/labels"), "labels", patch);
  AddDifferent(plan.annotations, TextsAt(object, "/metadata/annotations"), "annotations", patch);
  return patch;
}

}  // namespace penstock::cluster
