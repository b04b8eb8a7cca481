// Assumes nothing about the shape of an object.
#include "adapter/cluster/observed_node.h"

#include <nlohmann/json.hpp>

#include "base/core/strings.h"

namespace penstock::adapter::cluster {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kNfdAnnotation = "nfd.node.kubernetes.io/feature-labels";
constexpr std::string_view kNfdPrefix = "feature.node.kubernetes.io/";

/// The value at `key`; null if there is none.
const Json& At(const Json& object, const std::string& key) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}

std::string Text(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }

std::map<std::string, std::string> Texts(const Json& object) {
  std::map<std::string, std::string> texts;
  if (!object.is_object()) return texts;
  for (const auto& [key, value] : object.items())
    if (value.is_string()) texts[key] = value.get<std::string>();
  return texts;
}

/// Names without a namespace have NFD's own prefix. If several NFDs run, each has an annotation
/// with its name in front.
std::set<std::string> NfdKeys(const Json& annotations) {
  std::set<std::string> keys;
  for (const auto& [name, value] : Texts(annotations)) {
    if (name != kNfdAnnotation && !name.ends_with("." + std::string(kNfdAnnotation))) continue;
    for (const std::string& part : base::Split(value, ',')) {
      const std::string key(base::Trim(part));
      if (!key.empty())
        keys.insert(key.find('/') == std::string::npos ? std::string(kNfdPrefix) + key : key);
    }
  }
  return keys;
}

void AddManagers(const Json& managed, ObservedNode& view) {
  if (!managed.is_array()) return;
  for (const Json& entry : managed) {
    const std::string manager = Text(At(entry, "manager"));
    const bool us = manager == kLabelsManager && Text(At(entry, "operation")) == "Apply";
    const Json& labels = At(At(At(entry, "fieldsV1"), "f:metadata"), "f:labels");
    if (!labels.is_object()) continue;
    for (const auto& [field, below] : labels.items()) {
      if (!field.starts_with("f:")) continue;  // "." is the map itself
      const std::string key = field.substr(2);
      if (us) {
        view.own.insert(key);
      } else {
        view.others[key] = manager;
      }
    }
  }
  for (const std::string& key : view.own) view.others.erase(key);
}

std::optional<ObservedCondition> ReadyOf(const Json& conditions) {
  if (!conditions.is_array()) return std::nullopt;
  for (const Json& one : conditions)
    if (Text(At(one, "type")) == kReadyCondition)
      return ObservedCondition{Text(At(one, "status")), Text(At(one, "reason")),
                               Text(At(one, "message")), Text(At(one, "lastTransitionTime"))};
  return std::nullopt;
}

}  // namespace

ObservedNode ObserveNode(const Json& node) {
  ObservedNode view;
  const Json& metadata = At(node, "metadata");
  view.name = Text(At(metadata, "name"));
  view.uid = Text(At(metadata, "uid"));
  view.version = Text(At(metadata, "resourceVersion"));
  view.labels = Texts(At(metadata, "labels"));
  view.annotations = Texts(At(metadata, "annotations"));
  std::erase_if(view.annotations,
                [](const auto& one) { return !one.first.starts_with(kOwnDomain); });
  view.nfd = NfdKeys(At(metadata, "annotations"));
  AddManagers(At(metadata, "managedFields"), view);
  view.numbers = {Texts(At(At(node, "status"), "capacity")),
                  Texts(At(At(node, "status"), "allocatable"))};
  view.ready = ReadyOf(At(At(node, "status"), "conditions"));
  return view;
}

bool NotOlder(const ObservedNode& candidate, const ObservedNode& known) {
  const auto left = base::ParseUint(candidate.version), right = base::ParseUint(known.version);
  return !left || !right || candidate.uid != known.uid || *left >= *right;
}

}  // namespace penstock::adapter::cluster
