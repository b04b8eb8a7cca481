// Converts objects to a form in which lists with keys are maps, works on the maps, and converts
// them back.
#include "protocol/kube/fake/fields.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace penstock::protocol::kube::fake {
namespace {

using Pointer = Json::json_pointer;

constexpr std::string_view kKeyed = "k:";

std::optional<std::string_view> KeyOfList(std::string_view list) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kLists = {
      {{"conditions", "type"},
       {"ownerReferences", "uid"},
       {"addresses", "type"},
       {"containers", "name"},
       {"initContainers", "name"},
       {"volumes", "name"},
       {"env", "name"},
       {"ports", "port"}}};
  for (const auto& [name, key] : kLists) {
    if (name == list) return key;
  }
  return std::nullopt;
}

/// Of an element; empty: it has none.
std::string KeyIn(const Json& item, std::string_view key) {
  if (!item.is_object() || !item.contains(key)) return "";
  const Json& value = item[std::string(key)];
  if (value.is_string()) return value;
  return value.is_number_integer() ? value.dump() : "";
}

bool HasKeys(const Json& list, std::string_view key) {
  for (const Json& item : list) {
    if (KeyIn(item, key).empty()) return false;
  }
  return !list.empty();
}

Json Normalise(const Json& value) {
  if (!value.is_object()) return value;
  Json normal = Json::object();
  for (const auto& [name, child] : value.items()) {
    if (name.starts_with("$setElementOrder/") || name == "$retainKeys") continue;
    const auto key = KeyOfList(name);
    if (!key || !child.is_array() || !HasKeys(child, *key)) {
      normal[name] = Normalise(child);
      continue;
    }
    Json& elements = normal[name] = Json::object();
    for (const Json& item : child) {
      const std::string element = std::string(kKeyed) + KeyIn(item, *key);
      elements[element] = item.value("$patch", Json()) == "delete" ? Json() : Normalise(item);
    }
  }
  return normal;
}

bool IsKeyedList(const Json& value) {
  return value.is_object() && !value.empty() && value.begin().key().starts_with(kKeyed);
}

Json Denormalise(const Json& value) {
  if (!value.is_object()) return value;
  if (IsKeyedList(value)) {
    Json list = Json::array();
    for (const auto& [name, child] : value.items()) list.push_back(Denormalise(child));
    return list;
  }
  Json plain = Json::object();
  for (const auto& [name, child] : value.items()) plain[name] = Denormalise(child);
  return plain;
}

bool IsServers(const std::string& pointer) {
  static const std::set<std::string> kServers = {"/apiVersion",
                                                 "/kind",
                                                 "/metadata/name",
                                                 "/metadata/namespace",
                                                 "/metadata/uid",
                                                 "/metadata/resourceVersion",
                                                 "/metadata/generation",
                                                 "/metadata/selfLink",
                                                 "/metadata/deletionGracePeriodSeconds"};
  return kServers.contains(pointer) || pointer.starts_with("/metadata/creationTimestamp") ||
         pointer.starts_with("/metadata/managedFields");
}

void CollectLeaves(const Json& value, const Pointer& at, std::map<std::string, Json>& leaves) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [name, child] : value.items()) CollectLeaves(child, at / name, leaves);
  } else if (!at.empty() && !IsServers(at.to_string())) {
    leaves.emplace(at.to_string(), value);
  }
}

std::map<std::string, Json> NormalLeaves(const Json& normal) {
  std::map<std::string, Json> leaves;
  CollectLeaves(normal, Pointer(), leaves);
  return leaves;
}

/// An object without the members that another one has alike: no leaf of them differs.
Json Without(const Json& object, const Json& other) {
  Json rest = Json::object();
  for (const auto& [name, child] : object.items()) {
    const auto found = other.find(name);
    if (found == other.end() || *found != child) rest[name] = child;
  }
  return rest;
}

std::vector<std::string> Tokens(Pointer pointer) {
  std::vector<std::string> tokens;
  for (; !pointer.empty(); pointer.pop_back()) tokens.insert(tokens.begin(), pointer.back());
  return tokens;
}

std::string Dotted(const std::string& pointer) {
  std::string text;
  for (const std::string& token : Tokens(Pointer(pointer))) text += "." + token;
  return text;
}

void SetAt(Json& root, const std::string& pointer, const Json& value) {
  Json* at = &root;
  for (const std::string& token : Tokens(Pointer(pointer))) {
    if (!at->is_object()) *at = Json::object();
    at = &(*at)[token];
  }
  if (value.is_object() && value.empty() && at->is_object()) return;
  *at = value;
}

// Removes a leaf and the maps that become empty without it.
void EraseAt(Json& root, const std::string& text) {
  for (Pointer pointer(text); !pointer.empty(); pointer.pop_back()) {
    if (!root.contains(pointer.parent_pointer())) continue;
    Json& parent = root[pointer.parent_pointer()];
    if (!parent.is_object()) return;
    parent.erase(pointer.back());
    if (!parent.empty()) return;
  }
}

std::vector<Manager> OthersWith(const Managers& managers, const Manager& manager,
                                const std::string& pointer) {
  std::vector<Manager> others;
  for (const auto& [name, owned] : managers) {
    if (name != manager && owned.contains(pointer)) others.push_back(name);
  }
  return others;
}

void Forget(Managers& managers, const std::string& pointer) {
  for (auto& [name, owned] : managers) owned.erase(pointer);
}

void AddField(Json& fields, const std::string& pointer) {
  Json* at = &fields;
  for (const std::string& token : Tokens(Pointer(pointer))) {
    const bool keyed = token.starts_with(kKeyed);
    at = &(*at)[keyed ? token : "f:" + token];
    if (at->is_null()) *at = Json::object();
  }
}

void CollectFields(const Json& fields, const Pointer& at, std::set<std::string>& owned) {
  for (const auto& [name, child] : fields.items()) {
    const Pointer field = at / (name.starts_with("f:") ? name.substr(2) : name);
    child.empty() ? (void)owned.insert(field.to_string()) : CollectFields(child, field, owned);
  }
}

}  // namespace

std::map<std::string, Json> LeavesOf(const Json& object) { return NormalLeaves(Normalise(object)); }

Applied ApplyFields(const Json& current, Managers managers, const Json& wanted,
                    const Manager& manager, bool force) {
  Applied applied;
  Json object = Normalise(current);
  const auto now = NormalLeaves(object);
  const auto leaves = LeavesOf(wanted);
  for (const auto& [pointer, value] : leaves) {
    const auto found = now.find(pointer);
    const bool same = found != now.end() && found->second == value;
    for (const Manager& other :
         same ? std::vector<Manager>() : OthersWith(managers, manager, pointer)) {
      if (!force)
        applied.conflicts.push_back("conflict with \"" + other.name + "\": " + Dotted(pointer));
      managers[other].erase(pointer);
    }
    SetAt(object, pointer, value);
  }
  if (!applied.conflicts.empty()) return applied;
  for (const std::string& pointer : managers[manager]) {
    if (!leaves.contains(pointer) && OthersWith(managers, manager, pointer).empty())
      EraseAt(object, pointer);
  }
  managers[manager].clear();
  for (const auto& [pointer, value] : leaves) managers[manager].insert(pointer);
  std::erase_if(managers, [](const auto& entry) { return entry.second.empty(); });
  applied.object = Denormalise(object);
  applied.managers = std::move(managers);
  return applied;
}

Managers OwnChanges(const Json& before, const Json& after, Managers managers,
                    const Manager& manager) {
  const auto old = LeavesOf(Without(before, after)), now = LeavesOf(Without(after, before));
  for (const auto& [pointer, value] : old) {
    if (!now.contains(pointer)) Forget(managers, pointer);
  }
  for (const auto& [pointer, value] : now) {
    const auto found = old.find(pointer);
    if (found != old.end() && found->second == value) continue;
    Forget(managers, pointer);
    managers[manager].insert(pointer);
  }
  std::erase_if(managers, [](const auto& entry) { return entry.second.empty(); });
  return managers;
}

Json StrategicMerge(const Json& target, const Json& patch) {
  Json merged = Normalise(target);
  merged.merge_patch(Normalise(patch));
  return Denormalise(merged);
}

Json ManagedFieldsOf(const Managers& managers, const Json& api_version) {
  Json list = Json::array();
  for (const auto& [manager, owned] : managers) {
    Json fields = Json::object();
    for (const std::string& pointer : owned) AddField(fields, pointer);
    Json entry = {{"manager", manager.name},
                  {"operation", manager.operation},
                  {"apiVersion", api_version},
                  {"fieldsType", "FieldsV1"},
                  {"fieldsV1", std::move(fields)}};
    if (!manager.subresource.empty()) entry["subresource"] = manager.subresource;
    list.push_back(std::move(entry));
  }
  return list;
}

Managers ManagersIn(const Json& managed_fields) {
  Managers managers;
  for (const Json& entry : managed_fields) {
    const Manager manager{entry.at("manager"), entry.at("operation"),
                          entry.value("subresource", "")};
    CollectFields(entry.at("fieldsV1"), Pointer(), managers[manager]);
  }
  return managers;
}

}  // namespace penstock::protocol::kube::fake
