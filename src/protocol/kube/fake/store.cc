// Implements optimistic concurrency, subresources and resourceVersions as an API server does.
#include "protocol/kube/fake/store.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/core/strings.h"

namespace penstock::protocol::kube::fake {
namespace {

constexpr std::size_t kMostHistory = 100'000;
constexpr char kNamespaces[] = "/api/v1/namespaces";
constexpr char kPods[] = "/api/v1/pods", kBudgets[] = "/apis/policy/v1/poddisruptionbudgets";
constexpr std::int64_t kGrace = 30;  // seconds, of a pod that names no other
const Json::json_pointer kFinalizers("/metadata/finalizers");

constexpr std::array<Kind, 20> kKinds = {
    {{.collection = "/api/v1/nodes", .kind = "Node", .status = true},
     {.collection = "/api/v1/pods", .kind = "Pod", .status = true},
     {.collection = "/api/v1/configmaps", .kind = "ConfigMap"},
     {.collection = "/api/v1/events", .kind = "Event"},
     {.collection = "/api/v1/namespaces", .kind = "Namespace"},
     {.collection = "/apis/apps/v1/daemonsets",
      .kind = "DaemonSet",
      .status = true,
      .generation = true},
     {.collection = "/apis/coordination.k8s.io/v1/leases", .kind = "Lease"},
     {.collection = "/apis/penstock.io/v1alpha1/nodestates", .kind = "NodeState"},
     {.collection = "/apis/nfd.k8s-sigs.io/v1alpha1/nodefeatures", .kind = "NodeFeature"},
     {.collection = "/api/v1/services", .kind = "Service"},
     {.collection = "/apis/node.k8s.io/v1/runtimeclasses", .kind = "RuntimeClass"},
     {.collection = "/apis/monitoring.coreos.com/v1/servicemonitors", .kind = "ServiceMonitor"},
     {.collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      .kind = "CustomResourceDefinition",
      .status = true},
     {.collection = "/apis/resource.k8s.io/v1/resourceclaims",
      .kind = "ResourceClaim",
      .status = true},
     {.collection = "/apis/policy/v1/poddisruptionbudgets",
      .kind = "PodDisruptionBudget",
      .status = true,
      .generation = true},
     {.collection = "/apis/nvidia.com/v1/clusterpolicies",
      .kind = "ClusterPolicy",
      .status = true,
      .generation = true},
     {.collection = "/apis/nvidia.com/v1alpha1/nvidiadrivers",
      .kind = "NVIDIADriver",
      .status = true,
      .generation = true},
     {.collection = "/apis/nvidia.com/v1alpha1/gpuclusters",
      .kind = "GPUCluster",
      .status = true,
      .generation = true},
     {.collection = "/apis/amd.com/v1alpha1/deviceconfigs",
      .kind = "DeviceConfig",
      .status = true,
      .generation = true},
     {.collection = "/apis/penstock.io/v1alpha1/penstocks",
      .kind = "Penstock",
      .status = true,
      .generation = true}}};

Reply NotFound(const Place& place) { return Failure(404, "NotFound", Named(place) + " not found"); }

Reply Conflict(const Place& place, const std::string& why) {
  return Failure(409, "Conflict", "Operation cannot be fulfilled on " + Named(place) + ": " + why);
}

Reply Modified(const Place& place) {
  return Conflict(place,
                  "the object has been modified; please apply your changes to the latest version "
                  "and try again");
}

/// Of an object that was deleted and waits: deletionTimestamp alone may also be written by a test.
bool IsMarked(const Json& object) {
  return object.contains("/metadata/deletionGracePeriodSeconds"_json_pointer);
}

Json FinalizersOf(const Json& object) { return object.value(kFinalizers, Json::array()); }

/// Seconds that a pod has to end (registry/core/pod/strategy.go, CheckGracefulDelete).
std::int64_t GraceOf(const Place& place, const Json& object) {
  const std::string phase = object.value("/status/phase"_json_pointer, "");
  const bool runs = place.collection == kPods && phase != "Succeeded" && phase != "Failed" &&
                    !object.value("/spec/nodeName"_json_pointer, "").empty();
  return runs ? object.value("/spec/terminationGracePeriodSeconds"_json_pointer, kGrace) : 0;
}

/// `Pod "x"`, `DaemonSet.apps "x"`: as refusals of preconditions name an object.
std::string KindNamed(const Place& place) {
  const auto parts = base::Split(place.collection, '/');
  return std::string(KindOf(place.collection)->kind) + (parts.size() == 5 ? "." + parts[2] : "") +
         " \"" + place.name + "\"";
}

Reply ImmutableUid(const Place& place, const std::string& uid) {
  return Failure(422, "Invalid",
                 std::string(KindOf(place.collection)->kind) + " \"" + place.name +
                     "\" is invalid: metadata.uid: Invalid value: \"" + uid +
                     "\": field is immutable");
}

/// Of what a server checks, what fields of two managers together can make. Empty: nothing.
std::string WhyInvalid(const Place& place, const Json& object) {
  std::set<std::string> names;
  if (place.collection != "/api/v1/services") return "";
  const Json ports = object.value("/spec/ports"_json_pointer, Json::array());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string name = ports[i].value("name", "");
    if (!names.insert(name).second)
      return "Service \"" + place.name + "\" is invalid: spec.ports[" + std::to_string(i) +
             "].name: Duplicate value: \"" + name + "\"";
  }
  return "";
}

bool HasStatus(const Place& place) {
  const Kind* kind = KindOf(place.collection);
  return kind != nullptr && kind->status;
}

std::string VersionOf(const Json& object) {
  return object.value("/metadata/resourceVersion"_json_pointer, std::string());
}

// Kubernetes' own groups have a scheme; custom resources do not support strategic merge.
bool IsBuiltIn(const std::string& collection) {
  const auto parts = base::Split(collection, '/');  // "", "apis", group, …
  if (parts.size() < 3 || parts[1] == "api") return true;
  return parts[2].find('.') == std::string::npos || parts[2].ends_with(".k8s.io");
}

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

const Kind* KindOf(std::string_view collection) {
  const auto found = std::ranges::find(kKinds, collection, &Kind::collection);
  return found == kKinds.end() ? nullptr : &*found;
}

Json ResourcesOf(std::string_view group_version) {
  Json resources = Json::array();
  for (const Kind& kind : kKinds) {
    const std::size_t slash = kind.collection.rfind('/');
    if (kind.collection.substr(0, slash) != group_version) continue;
    resources.push_back({{"name", kind.collection.substr(slash + 1)}, {"kind", kind.kind}});
  }
  return resources.empty() ? Json() : resources;
}

std::string Named(const Place& place) {
  const auto parts = base::Split(place.collection, '/');
  std::string text = parts.back();
  if (parts.size() == 5) text += "." + parts[2];
  return place.name.empty() ? text : text + " \"" + place.name + "\"";
}

Reply PageNotFound() { return {404, "404 page not found\n"}; }

Reply Failure(int status, std::string reason, std::string message) {
  return {status, Json{{"kind", "Status"},
                       {"apiVersion", "v1"},
                       {"metadata", Json::object()},
                       {"status", "Failure"},
                       {"message", std::move(message)},
                       {"reason", std::move(reason)},
                       {"code", status}}};
}

Json Store::Described(const Entry& entry) {
  Json object = entry.object;
  object["metadata"]["managedFields"] =
      ManagedFieldsOf(entry.managers, object.value("apiVersion", Json()));
  return object;
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
    if (key.collection == collection && selector.Matches(entry.object))
      matching.push_back(Described(entry));
  }
  return matching;
}

// A list continues in the state of its first page. A list of any version (0) comes from a cache,
// which has no pages.
Reply Store::List(const Place& place, const std::map<std::string, std::string>& query) {
  const auto value = [&query](const char* key) {
    const auto found = query.find(key);
    return found == query.end() ? std::string() : found->second;
  };
  std::vector<Json> rest;
  std::int64_t at_version = version_;
  if (const std::string token = value("continue"); token.empty()) {
    rest = Matching(place.collection, SelectorOf(place, query));
  } else {
    const auto page = pages_.find(token);
    if (page == pages_.end())
      return Failure(
          410, "Expired",
          "The provided continue parameter is too old to display a consistent list result.");
    std::tie(at_version, rest) = page->second;
  }
  std::size_t limit =
      value("resourceVersion") == "0" ? 0 : base::ParseUint(value("limit")).value_or(0);
  if (limit == 0) limit = rest.size();
  Json items = Json::array();
  for (Json& item : std::span(rest).first(std::min(limit, rest.size()))) {
    item.erase("kind");
    item.erase("apiVersion");
    items.push_back(std::move(item));
  }
  Json metadata = {{"resourceVersion", std::to_string(at_version)}};
  if (items.size() < rest.size()) {
    const std::string token = "page-" + std::to_string(pages_.size());
    rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(items.size()));
    pages_[token] = {at_version, std::move(rest)};
    metadata["continue"] = token;
  }
  const auto parts = base::Split(place.collection, '/');
  const std::string api_version = parts[1] == "api" ? "v1" : parts[2] + "/" + parts[3];
  const std::string kind = std::string(KindOf(place.collection)->kind) + "List";
  return {200, Json{{"kind", kind},
                    {"apiVersion", api_version},
                    {"metadata", std::move(metadata)},
                    {"items", std::move(items)}}};
}

void Store::DropFields(const std::string& collection, Json& object) const {
  for (const auto& [of, pointer] : dropped) {
    const Json::json_pointer field(pointer);
    if (of == collection && object.contains(field))
      object[field.parent_pointer()].erase(field.back());
  }
}

// Writes an object that differs from the stored one, with everything that the server adds.
Reply Store::Write(const Place& place, Json object, Managers managers, bool dry_run) {
  const Key key = KeyOf(place);
  const auto found = objects_.find(key);
  Json before = found == objects_.end() ? Json() : found->second.object;
  DropFields(place.collection, object);
  if (const std::string why = WhyInvalid(place, object); !why.empty())
    return Failure(422, "Invalid", why);
  Json& metadata = object["metadata"];
  if (!metadata.is_object()) metadata = Json::object();
  metadata.erase("managedFields");
  metadata["name"] = place.name;
  if (!place.namespace_name.empty()) metadata["namespace"] = place.namespace_name;
  if (before.is_null()) {
    const std::string number = std::to_string(next_uid_++);
    metadata["uid"] =
        uid_prefix + std::string(12 - std::min<std::size_t>(12, number.size()), '0') + number;
    metadata["creationTimestamp"] = TimeNow();
  } else {
    metadata["uid"] = before["metadata"]["uid"];
    metadata["creationTimestamp"] = before["metadata"]["creationTimestamp"];
    metadata["resourceVersion"] = before["metadata"]["resourceVersion"];
    if (IsMarked(before) && !IsMarked(object))
      for (const char* field : {"deletionTimestamp", "deletionGracePeriodSeconds"})
        metadata[field] = before["metadata"][field];
    if (object == before && managers == found->second.managers)
      return {200, Described(found->second)};
  }
  if (dry_run)
    return {before.is_null() ? 201 : 200, Described({std::move(object), std::move(managers)})};
  if (IsMarked(before) && !FinalizersOf(before).empty() && FinalizersOf(object).empty()) {
    Erase(place);
    return {200, Described({std::move(object), std::move(managers)})};
  }
  if (KindOf(place.collection)->generation) {
    const bool changed = before.is_null() || IsMarked(object) != IsMarked(before) ||
                         before.value("spec", Json()) != object.value("spec", Json());
    const std::int64_t last =
        before.is_null() ? 0 : before.value("/metadata/generation"_json_pointer, std::int64_t{0});
    metadata["generation"] = changed ? last + 1 : last;
  }
  metadata["resourceVersion"] = std::to_string(++version_);
  const int status = before.is_null() ? 201 : 200;
  Entry& entry = objects_[key];
  entry = {std::move(object), std::move(managers)};
  Json written = Described(entry);
  history_.push_back({version_, place.collection, std::move(before), written});
  if (history_.size() > kMostHistory) {
    oldest_ = history_.front().version;
    history_.pop_front();
  }
  return {status, std::move(written)};
}

Json Store::WithinSubresource(const Place& place, const Json& before, Json object) const {
  if (place.subresource == "status") {
    Json changed = before;
    if (object.contains("status")) changed["status"] = object["status"];
    if (IsBuiltIn(place.collection) && object.contains("metadata"))
      changed["metadata"] = object["metadata"];
    return changed;
  }
  if (!HasStatus(place) || before.is_null()) return object;
  object.erase("status");
  if (before.contains("status")) object["status"] = before["status"];
  return object;
}

Reply Store::WriteAs(const Place& place, const Entry& before, Json object,
                     const std::string& manager, bool dry_run) {
  if (const std::string version = VersionOf(object);
      !version.empty() && version != VersionOf(before.object))
    return Modified(place);
  object = WithinSubresource(place, before.object, std::move(object));
  const Json given = object.value("/metadata/managedFields"_json_pointer, Json());
  Managers managers =
      OwnChanges(before.object, object, given.is_array() ? ManagersIn(given) : before.managers,
                 {manager, "Update", place.subresource});
  return Write(place, std::move(object), std::move(managers), dry_run);
}

/// As the server's admission has it (plugin/pkg/admission/namespace/lifecycle): nothing new comes
/// into a namespace that is being deleted. Nothing: it may come.
std::optional<Reply> Store::WhyNotNew(const Place& place) const {
  if (place.namespace_name.empty() || objects_.contains(KeyOf(place))) return std::nullopt;
  const auto found = objects_.find({kNamespaces, "", place.namespace_name});
  if (found == objects_.end() || !found->second.object["metadata"].contains("deletionTimestamp"))
    return std::nullopt;
  return Failure(403, "Forbidden",
                 Named(place) + " is forbidden: unable to create new content in namespace " +
                     place.namespace_name + " because it is being terminated");
}

Reply Store::Create(const Place& place, Json object, const std::string& manager) {
  if (auto refused = WhyNotNew(place)) return *std::move(refused);
  if (objects_.contains(KeyOf(place)))
    return Failure(409, "AlreadyExists", Named(place) + " already exists");
  Managers managers = OwnChanges(Json::object(), object, {}, {manager, "Update", ""});
  return Write(place, std::move(object), std::move(managers));
}

Reply Store::Replace(const Place& place, Json object, const std::string& manager) {
  const auto found = objects_.find(KeyOf(place));
  if (found == objects_.end()) return NotFound(place);
  return WriteAs(place, found->second, std::move(object), manager);
}

Reply Store::Apply(const Place& place, const Json& wanted, const std::string& manager, bool force,
                   bool dry_run) {
  if (auto refused = WhyNotNew(place)) return *std::move(refused);
  const auto found = objects_.find(KeyOf(place));
  const std::string uid = wanted.value("/metadata/uid"_json_pointer, "");
  Entry before;
  before.object = {
      {"apiVersion", wanted["apiVersion"]}, {"kind", wanted["kind"]}, {"metadata", Json::object()}};
  if (found != objects_.end()) before = found->second;
  if (!uid.empty() && found == objects_.end())
    return Conflict(place, "uid mismatch: the provided object specified uid " + uid +
                               ", and no existing object was found");
  if (!uid.empty() && before.object["metadata"]["uid"] != uid) return ImmutableUid(place, uid);
  if (const std::string version = VersionOf(wanted);
      !version.empty() && version != VersionOf(before.object))
    return Modified(place);
  // Fields that the path does not reach are ignored.
  Json reached = wanted;
  if (HasStatus(place)) reached.erase("status");
  Applied applied =
      ApplyFields(before.object, before.managers, reached, {manager, "Apply", ""}, force);
  if (!applied.conflicts.empty()) {
    const std::size_t count = applied.conflicts.size();
    return Failure(409, "Conflict",
                   "Apply failed with " + std::to_string(count) +
                       (count == 1 ? " conflict: " : " conflicts: ") +
                       base::Join(applied.conflicts, ", "));
  }
  return Write(place, std::move(applied.object), std::move(applied.managers), dry_run);
}

Reply Store::Patch(const Place& place, std::string_view content_type, const Json& patch,
                   const std::string& manager, bool force, bool dry_run) {
  if (content_type == kApplyPatch) return Apply(place, patch, manager, force, dry_run);
  const auto found = objects_.find(KeyOf(place));
  if (found == objects_.end()) return NotFound(place);
  Json object = found->second.object;
  if (content_type == kMergePatch) {
    object.merge_patch(patch);
  } else {
    object = StrategicMerge(object, patch);
  }
  const bool is_newest = VersionOf(object) == VersionOf(found->second.object);
  if (const std::string uid = object.value("/metadata/uid"_json_pointer, "");
      is_newest && uid != found->second.object["metadata"]["uid"])
    return ImmutableUid(place, uid);
  return WriteAs(place, found->second, std::move(object), manager, dry_run);
}

std::string Store::TimeNow() const { return base::FormatTime(clock_.Wall()).substr(0, 19) + "Z"; }

/// A namespace is deleted once its content is gone, which no controller removes here.
Reply Store::Terminate(const Place& place, const Entry& entry) {
  Json object = entry.object;
  object["metadata"]["deletionTimestamp"] = TimeNow();
  object["status"]["phase"] = "Terminating";
  return Write(place, std::move(object), entry.managers);
}

Reply Store::Mark(const Place& place, const Entry& entry, std::int64_t grace, bool foreground) {
  Json object = entry.object;
  object["metadata"]["deletionTimestamp"] =
      base::FormatTime(clock_.Wall() + std::chrono::seconds(grace)).substr(0, 19) + "Z";
  object["metadata"]["deletionGracePeriodSeconds"] = grace;
  if (foreground) object[kFinalizers].push_back("foregroundDeletion");
  return Write(place, std::move(object), entry.managers);
}

Reply Store::Delete(const Place& place, const Deletion& deletion) {
  const auto found = objects_.find(KeyOf(place));
  if (found == objects_.end()) return NotFound(place);
  const Json& object = found->second.object;
  if (const std::string is = object["metadata"].value("uid", "");
      !deletion.uid.empty() && deletion.uid != is)
    return Failure(409, "Conflict",
                   "Operation cannot be fulfilled on " + KindNamed(place) +
                       ": the UID in the precondition (" + deletion.uid +
                       ") does not match the UID in record (" + is +
                       "). The object might have been deleted and then recreated");
  const Reply done = {200, Json{{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Success"}}};
  if (deletion.dry_run) return done;
  if (place.collection == kNamespaces) return Terminate(place, found->second);
  // Also of an object that waits for its dependents since an earlier deletion
  // (registry/generic/registry/store.go, deletionFinalizersForGarbageCollection).
  if (deletion.background) {
    Json finalizers = FinalizersOf(object);
    if (std::erase_if(finalizers.get_ref<Json::array_t&>(),
                      [](const Json& one) { return one == "foregroundDeletion"; }) > 0 &&
        finalizers.empty()) {
      Erase(place);
      return done;
    }
  }
  if (IsMarked(object)) return {200, Described(found->second)};
  const bool held = !FinalizersOf(object).empty();
  const std::int64_t grace = GraceOf(place, object);
  Reply marked = done;
  if (held || place.collection == kPods || deletion.foreground)
    marked = Mark(place, found->second, grace, !held && deletion.foreground);
  if (grace > 0) Mark(place, found->second, 0, false);
  if (!held) Erase(place);
  return marked;
}

void Store::Erase(const Place& place) {
  const auto found = objects_.find(KeyOf(place));
  if (found == objects_.end()) return;
  history_.push_back({++version_, place.collection, Described(found->second), Json()});
  objects_.erase(found);
}

/// pkg/registry/core/pod/storage/eviction.go: a pod that does not run needs no budget.
std::optional<Reply> Store::WhyNotEvicted(const Place& place, const Json& pod) {
  const std::string phase = pod.value("/status/phase"_json_pointer, "Pending");
  if (phase == "Pending" || phase == "Succeeded" || phase == "Failed" || IsMarked(pod))
    return std::nullopt;
  const Json labels = pod.value("/metadata/labels"_json_pointer, Json::object());
  for (Json& budget : Matching(kBudgets, {.namespace_name = place.namespace_name})) {
    const Json wanted = budget.value("/spec/selector/matchLabels"_json_pointer, Json::object());
    const bool covers = std::ranges::all_of(wanted.items(), [&labels](const auto& one) {
      return labels.value(one.key(), Json()) == one.value();
    });
    if (!covers) continue;
    const Json status = budget.value("status", Json::object());
    const auto allowed = status.value("disruptionsAllowed", std::int64_t{0});
    if (status.value("observedGeneration", std::int64_t{0}) < budget["metadata"]["generation"] ||
        allowed == 0)
      return Failure(429, "TooManyRequests",
                     "Cannot evict pod as it would violate the pod's disruption budget.");
    const Place at{kBudgets, place.namespace_name, budget["metadata"]["name"], "status"};
    Patch(at, kMergePatch, {{"status", {{"disruptionsAllowed", allowed - 1}}}}, "kube-apiserver",
          true, false);
  }
  return std::nullopt;
}

void Store::SayEvicted(const Place& place, const Entry& entry) {
  Json object = StrategicMerge(entry.object, {{"status",
                                               {{"conditions",
                                                 {{{"type", "DisruptionTarget"},
                                                   {"status", "True"},
                                                   {"reason", "EvictionByEvictionAPI"},
                                                   {"message", "Eviction API: evicting"},
                                                   {"lastTransitionTime", TimeNow()}}}}}}});
  Write(place, std::move(object), entry.managers);
}

Reply Store::Evict(const Place& place, const Deletion& deletion) {
  const auto found = objects_.find(KeyOf(place));
  if (found == objects_.end()) return NotFound(place);
  if (auto refused = WhyNotEvicted(place, found->second.object)) return *std::move(refused);
  const bool fits = deletion.uid.empty() || found->second.object["metadata"]["uid"] == deletion.uid;
  if (fits && !deletion.dry_run) SayEvicted(place, found->second);
  Reply done = Delete(place, deletion);
  if (done.status != 200) return done;
  return {201, Json{{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Success"}}};
}

const Change* Store::After(std::int64_t version) const {
  const auto next = std::ranges::upper_bound(history_, version, {}, &Change::version);
  return next == history_.end() ? nullptr : &*next;
}

void Store::ForgetHistory() {
  oldest_ = ++version_;
  history_.clear();
  pages_.clear();
}

}  // namespace penstock::protocol::kube::fake
