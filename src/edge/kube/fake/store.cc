// Optimistic concurrency, subresources and resourceVersions as an API server has them.
#include "edge/kube/fake/store.h"

#include <algorithm>
#include <utility>

#include "base/core/strings.h"

namespace penstock::edge::kube::fake {
namespace {

constexpr std::size_t kMostHistory = 100'000;

Reply NotFound(const Place& place) {
  return Failure(404, "NotFound", place.collection.substr(place.collection.rfind('/') + 1) + " \"" + place.name + "\" not found");
}

Reply Conflict(const std::string& why) { return Failure(409, "Conflict", "Operation cannot be fulfilled: " + why); }

std::string VersionOf(const Json& object) { return object.value("/metadata/resourceVersion"_json_pointer, std::string()); }

// Groups of Kubernetes itself have a scheme; custom resources know no strategic merge.
bool IsBuiltIn(const std::string& collection) {
  const auto parts = base::Split(collection, '/');  // "", "apis", group, …
  if (parts.size() < 3 || parts[1] == "api") return true;
  return parts[2].find('.') == std::string::npos || parts[2].ends_with(".k8s.io");
}

std::string KindOf(const std::vector<Json>& items) { return items.empty() ? "List" : items.front().value("kind", "") + "List"; }

}  // namespace

std::optional<Place> PlaceOf(std::string_view path) {
  std::vector<std::string> parts = base::Split(path, '/');
  const std::size_t head = parts.size() > 1 && parts[1] == "api" ? 3 : 4;
  if (parts.size() <= head || !parts[0].empty()) return std::nullopt;
  Place place;
  std::size_t at = head;
  if (parts[at] == "namespaces" && parts.size() > at + 2) {
    place.namespace_name = parts[at + 1];
    at += 2;
  }
  place.collection = base::Join(std::span(parts).first(head), "/") + "/" + parts[at];
  if (parts.size() > at + 1) place.name = parts[at + 1];
  if (parts.size() > at + 2) place.subresource = parts[at + 2];
  return place;
}

Reply Failure(int status, std::string reason, std::string message) {
  return {status, Json{{"kind", "Status"},
                       {"apiVersion", "v1"},
                       {"metadata", Json::object()},
                       {"status", "Failure"},
                       {"message", std::move(message)},
                       {"reason", std::move(reason)},
                       {"code", status}}};
}

bool Store::HasStatus(const Place& place) const { return with_status.contains(place.collection.substr(place.collection.rfind('/') + 1)); }

Json Store::Described(Entry entry) const {
  entry.object["metadata"]["managedFields"] = ManagedFieldsOf(entry.managers);
  return std::move(entry.object);
}

Reply Store::Get(const Place& place) const {
  const auto found = objects_.find(KeyOf(place));
  if (found == objects_.end()) return NotFound(place);
  return {200, Described(found->second)};
}

const Json* Store::Find(const Place& place) const {
  const auto found = objects_.find(KeyOf(place));
  return found == objects_.end() ? nullptr : &found->second.object;
}

std::vector<std::string> Store::ManagersOf(const Place& place, const std::string& pointer) const {
  std::vector<std::string> names;
  const auto found = objects_.find(KeyOf(place));
  if (found == objects_.end()) return names;
  for (const auto& [manager, owned] : found->second.managers) {
    if (owned.contains(pointer)) names.push_back(manager.name);
  }
  return names;
}

std::vector<Json> Store::Matching(const std::string& collection, const Selector& selector) const {
  std::vector<Json> matching;
  for (const auto& [key, entry] : objects_) {
    if (key.collection == collection && selector.Matches(entry.object)) matching.push_back(Described(entry));
  }
  return matching;
}

// A continue token is "<version>:<index>".
Reply Store::List(const Place& place, const std::map<std::string, std::string>& query) {
  std::vector<Json> all = Matching(place.collection, SelectorOf(place, query));
  const std::string kind = KindOf(all);
  std::size_t first = 0;
  std::int64_t at_version = version_;
  if (const auto token = query.find("continue"); token != query.end() && !token->second.empty()) {
    const auto parts = base::Split(token->second, ':');
    at_version = base::ParseInt(parts[0]).value_or(0);
    if (at_version < oldest_ || parts.size() != 2)
      return Failure(410, "Expired", "The provided continue parameter is too old to display a consistent list result.");
    first = std::min<std::size_t>(all.size(), base::ParseUint(parts[1]).value_or(0));
  }
  std::size_t limit = all.size();
  if (const auto given = query.find("limit"); given != query.end()) limit = base::ParseUint(given->second).value_or(0);
  if (limit == 0) limit = all.size();
  Json items = Json::array();
  std::size_t next = first;
  for (; next < all.size() && items.size() < limit; ++next) {
    all[next].erase("kind");
    all[next].erase("apiVersion");
    items.push_back(std::move(all[next]));
  }
  Json metadata = {{"resourceVersion", std::to_string(at_version)}};
  if (next < all.size()) metadata["continue"] = std::to_string(at_version) + ":" + std::to_string(next);
  const auto parts = base::Split(place.collection, '/');
  const std::string api_version = parts[1] == "api" ? "v1" : parts[2] + "/" + parts[3];
  return {200, Json{{"kind", kind}, {"apiVersion", api_version}, {"metadata", std::move(metadata)}, {"items", std::move(items)}}};
}

// Writes an object that differs from what is there, with all that the server adds.
Reply Store::Write(const Place& place, Json object, Managers managers) {
  const Key key = KeyOf(place);
  const auto found = objects_.find(key);
  Json before = found == objects_.end() ? Json() : found->second.object;
  Json& metadata = object["metadata"];
  if (!metadata.is_object()) metadata = Json::object();
  metadata.erase("managedFields");
  metadata["name"] = place.name;
  if (!place.namespace_name.empty()) metadata["namespace"] = place.namespace_name;
  if (before.is_null()) {
    const std::string number = std::to_string(next_uid_++);
    metadata["uid"] = uid_prefix + std::string(12 - std::min<std::size_t>(12, number.size()), '0') + number;
    metadata["creationTimestamp"] = base::FormatTime(clock_.Wall()).substr(0, 19) + "Z";
  } else {
    metadata["uid"] = before["metadata"]["uid"];
    metadata["creationTimestamp"] = before["metadata"]["creationTimestamp"];
    metadata["resourceVersion"] = before["metadata"]["resourceVersion"];
    if (object == before && managers == found->second.managers) return {200, Described(found->second)};
  }
  metadata["resourceVersion"] = std::to_string(++version_);
  Entry& entry = objects_[key];
  entry = {object, std::move(managers)};
  history_.push_back({version_, place.collection, before, Described(entry)});
  if (history_.size() > kMostHistory) {
    oldest_ = history_.front().version;
    history_.pop_front();
  }
  return {before.is_null() ? 201 : 200, Described(entry)};
}

Json Store::WithinSubresource(const Place& place, const Json& before, Json object) const {
  if (place.subresource == "status") {
    Json changed = before;
    if (object.contains("status")) changed["status"] = object["status"];
    if (IsBuiltIn(place.collection) && object.contains("metadata")) changed["metadata"] = object["metadata"];
    return changed;
  }
  if (!HasStatus(place) || before.is_null()) return object;
  object.erase("status");
  if (before.contains("status")) object["status"] = before["status"];
  return object;
}

Reply Store::WriteAs(const Place& place, const Entry& before, Json object, const std::string& manager) {
  if (const std::string version = VersionOf(object); !version.empty() && version != VersionOf(before.object))
    return Conflict("the object has been modified; please apply your changes to the latest version and try again");
  object = WithinSubresource(place, before.object, std::move(object));
  Managers managers = OwnChanges(before.object, object, before.managers, {manager, "Update", place.subresource});
  return Write(place, std::move(object), std::move(managers));
}

Reply Store::Create(const Place& place, Json object, const std::string& manager) {
  if (objects_.contains(KeyOf(place))) {
    return Failure(409, "AlreadyExists",
                   place.collection.substr(place.collection.rfind('/') + 1) + " \"" + place.name + "\" already exists");
  }
  Managers managers = OwnChanges(Json::object(), object, {}, {manager, "Update", ""});
  return Write(place, std::move(object), std::move(managers));
}

Reply Store::Replace(const Place& place, Json object, const std::string& manager) {
  const auto found = objects_.find(KeyOf(place));
  if (found == objects_.end()) return NotFound(place);
  return WriteAs(place, found->second, std::move(object), manager);
}

Reply Store::Apply(const Place& place, const Json& wanted, const std::string& manager, bool force) {
  if (manager.empty()) return Failure(422, "Invalid", "fieldManager: Required value: is required for apply patch");
  if (!wanted.contains("apiVersion") || !wanted.contains("kind")) return Failure(400, "BadRequest", "apply patch lacks apiVersion or kind");
  const auto found = objects_.find(KeyOf(place));
  if (found == objects_.end() && !place.subresource.empty()) return NotFound(place);
  Entry before;
  before.object = {{"apiVersion", wanted["apiVersion"]}, {"kind", wanted["kind"]}, {"metadata", Json::object()}};
  if (found != objects_.end()) before = found->second;
  // What the path does not reach is as though it had not been applied.
  Json reached = wanted;
  if (place.subresource == "status" && !IsBuiltIn(place.collection)) {
    reached = {{"status", wanted.value("status", Json::object())}};
  } else if (place.subresource.empty() && HasStatus(place)) {
    reached.erase("status");
  }
  Applied applied = ApplyFields(before.object, before.managers, reached, {manager, "Apply", place.subresource}, force);
  if (!applied.conflicts.empty()) return Conflict("Apply failed with conflicts: " + base::Join(applied.conflicts, ", "));
  return Write(place, std::move(applied.object), std::move(applied.managers));
}

Reply Store::Patch(const Place& place, std::string_view content_type, const Json& patch, const std::string& manager, bool force) {
  if (place.subresource == "status" && !HasStatus(place))
    return Failure(404, "NotFound", "the server could not find the requested resource");
  if (content_type == kApplyPatch) return Apply(place, patch, manager, force);
  const auto found = objects_.find(KeyOf(place));
  if (found == objects_.end()) return NotFound(place);
  Json object = found->second.object;
  if (content_type == kMergePatch) {
    object.merge_patch(patch);
  } else if (content_type == kStrategicMergePatch && IsBuiltIn(place.collection)) {
    object = StrategicMerge(object, patch);
  } else if (content_type == kJsonPatch) {
    try {
      object = object.patch(patch);
    } catch (const Json::exception& error) { return Failure(422, "Invalid", error.what()); }
  } else {
    return Failure(415, "UnsupportedMediaType", "the body of the request was in an unknown format - " + std::string(content_type));
  }
  return WriteAs(place, found->second, std::move(object), manager);
}

Reply Store::Delete(const Place& place) {
  const auto found = objects_.find(KeyOf(place));
  if (found == objects_.end()) return NotFound(place);
  history_.push_back({++version_, place.collection, Described(found->second), Json()});
  objects_.erase(found);
  return {200, Json{{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Success"}}};
}

const Change* Store::After(std::int64_t version) const {
  const auto next = std::ranges::upper_bound(history_, version, {}, &Change::version);
  return next == history_.end() ? nullptr : &*next;
}

void Store::ForgetHistory() {
  oldest_ = ++version_;
  history_.clear();
}

}  // namespace penstock::edge::kube::fake
