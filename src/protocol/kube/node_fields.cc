#include "protocol/kube/node_fields.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace penstock::protocol::kube {
namespace {

bool AreLabelsOfNodes(const Json& fields, const std::set<std::string>& known) {
  if (!fields.is_object() || fields.size() != 1 || !fields.contains("f:metadata")) return false;
  for (const auto& [part, keys] : fields.at("f:metadata").items()) {
    if (part == ".") continue;
    if ((part != "f:labels" && part != "f:annotations") || !keys.is_object()) return false;
    for (const auto& [key, none] : keys.items())
      if (key != "." && !(key.starts_with("f:") && (MayBeANodes(std::string_view(key).substr(2)) ||
                                                    known.contains(key.substr(2)))))
        return false;
  }
  return true;
}

const Json& At(const Json& object, const std::string& path) {
  static const Json kNone;
  const Json::json_pointer at(path);
  return object.contains(at) ? object.at(at) : kNone;
}

/// Whether an entry has this text; an empty one also where it has none.
bool Says(const Json& entry, const char* key, std::string_view text) {
  const auto found = entry.find(key);
  return found == entry.end() ? text.empty() : *found == text;
}

/// The keys of a map of the metadata that an entry owns.
std::set<std::string> OwnedIn(const Json& entry, const char* map) {
  std::set<std::string> keys;
  const Json& fields = At(entry, std::string("/fieldsV1/f:metadata/") + map);
  if (!fields.is_object()) return keys;
  for (const auto& [key, none] : fields.items())
    if (key.starts_with("f:")) keys.insert(key.substr(2));
  return keys;
}

}  // namespace

bool MayBeANodes(std::string_view label) {
  const std::string_view domain = label.substr(0, label.find('/'));
  return domain.size() == label.size() || domain.ends_with("feature.node.kubernetes.io") ||
         !(domain.ends_with("kubernetes.io") || domain.ends_with("k8s.io"));
}

bool IsManagedBy(const Json& object, std::string_view manager, std::string_view subresource) {
  const Json& entries = At(object, "/metadata/managedFields");
  return entries.is_array() && std::ranges::any_of(entries, [&](const Json& entry) {
           return entry.is_object() && Says(entry, "manager", manager) &&
                  Says(entry, "subresource", subresource);
         });
}

OwnedKeys OwnedAlone(const Json& object, const std::function<bool(const Json& entry)>& counts,
                     const std::function<bool(const std::string& manager)>& ours) {
  OwnedKeys marks, of_others;
  const Json& entries = At(object, "/metadata/managedFields");
  if (!entries.is_array()) return marks;
  for (const Json& entry : entries) {
    const Json& manager = At(entry, "/manager");
    const bool is_ours = manager.is_string() && ours(manager.get<std::string>());
    if (is_ours && !counts(entry)) continue;
    OwnedKeys& its = is_ours ? marks : of_others;
    its.labels.merge(OwnedIn(entry, "f:labels"));
    its.annotations.merge(OwnedIn(entry, "f:annotations"));
  }
  const auto keep = [&object](std::set<std::string>& keys, const std::set<std::string>& others,
                              const char* map) {
    const Json& there = At(object, std::string("/metadata/") + map);
    std::erase_if(keys, [&](const std::string& key) {
      return others.contains(key) || !there.is_object() || !there.contains(key);
    });
  };
  keep(marks.labels, of_others.labels, "labels");
  keep(marks.annotations, of_others.annotations, "annotations");
  return marks;
}

Json Without(const OwnedKeys& marks, const Json& object) {
  Json metadata = {{"uid", At(object, "/metadata/uid")},
                   {"resourceVersion", At(object, "/metadata/resourceVersion")}};
  for (const std::string& key : marks.labels) metadata["labels"][key] = nullptr;
  for (const std::string& key : marks.annotations) metadata["annotations"][key] = nullptr;
  return {{"metadata", std::move(metadata)}};
}

Json WithoutCondition(std::string_view type, std::string_view uid) {
  return {{"metadata", {{"uid", uid}}},
          {"status", {{"conditions", Json::array({{{"$patch", "delete"}, {"type", type}}})}}}};
}

bool MayBeTakenBack(const Json& entry) { return HasOnlyMarks(entry, {}); }

bool HasOnlyMarks(const Json& entry, const std::set<std::string>& known) {
  if (!entry.is_object()) return false;
  const auto fields = entry.find("fieldsV1");
  return Says(entry, "operation", "Apply") && Says(entry, "subresource", "") &&
         fields != entry.end() && AreLabelsOfNodes(*fields, known);
}

}  // namespace penstock::protocol::kube
