// Stores the document as nlohmann's ordered JSON; the only file that uses it. The parts that are
// edited are validated once, on reading.
#include "hook/runtime/bundle.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/core/json_text.h"
#include "hook/runtime/nvidia/request.h"

namespace penstock::hook::runtime {
namespace {

using Json = nlohmann::ordered_json;
using Type = nlohmann::detail::value_t;

constexpr int kMaxDepth = 64;

/// The environment of hooks whose specification sets none.
constexpr const char* kHookPath =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Locations that are read or written, parents first. An absent value or null counts as empty.
struct Place {
  const char* pointer;
  Type type;
  Type items = Type::discarded;  ///< type of its elements; discarded: any
};
constexpr Place kPlaces[] = {{"", Type::object},
                             {"/annotations", Type::object, Type::string},
                             {"/mounts", Type::array, Type::object},
                             {"/process", Type::object},
                             {"/process/env", Type::array, Type::string},
                             {"/process/user", Type::object},
                             {"/process/user/additionalGids", Type::array},
                             {"/process/capabilities", Type::object},
                             {"/process/capabilities/bounding", Type::array},
                             {"/hooks", Type::object, Type::array},
                             {"/linux", Type::object},
                             {"/linux/devices", Type::array, Type::object},
                             {"/linux/resources", Type::object},
                             {"/linux/resources/devices", Type::array, Type::object},
                             {"/linux/netDevices", Type::object}};

/// Whether brackets nest so deeply that writing the tree could exhaust the stack.
bool IsTooDeep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

const Json* Find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

/// Finds "/process/env"; null if a member on the way is absent.
const Json* FindPlace(const Json& root, std::string_view pointer) {
  const Json* at = &root;
  while (at != nullptr && !pointer.empty()) {
    const auto end = std::min(pointer.find('/', 1), pointer.size());
    at = Find(*at, std::string(pointer.substr(1, end - 1)).c_str());
    pointer.remove_prefix(end);
  }
  return at;
}

std::string_view Name(Type type) {
  return type == Type::object ? "an object" : type == Type::array ? "a list" : "a string";
}

std::optional<std::string> WhyNot(const Json& root, const Place& place) {
  const Json* value = FindPlace(root, place.pointer);
  if (value == nullptr) return std::nullopt;
  const std::string where = *place.pointer == '\0' ? "the whole" : place.pointer;
  if (value->type() != place.type)
    return where + " is " + value->type_name() + " where " + std::string(Name(place.type)) +
           " is expected";
  if (place.items == Type::discarded) return std::nullopt;
  for (const Json& item : *value)
    if (item.type() != place.items && !(item.is_null() && place.items == Type::array))
      return "an item of " + where + " is " + item.type_name() + " where " +
             std::string(Name(place.items)) + " is expected";
  return std::nullopt;
}

/// The text of a string; empty for anything else.
std::string Text(const Json& object, const char* key) {
  const Json* value = Find(object, key);
  return value != nullptr && value->is_string() ? value->get_ref<const std::string&>()
                                                : std::string();
}

/// A member to write to, created if absent.
Json& Open(Json& object, const char* key, Type type) {
  Json& value = object[key];
  if (value.is_null()) value = Json(type);
  return value;
}

Json& OpenPlace(Json& root, std::string_view first, const char* second, Type type) {
  return Open(Open(root, std::string(first).c_str(), Type::object), second, type);
}

/// As filepath.Clean, then counts slashes: mounts of outer folders come first.
std::ptrdiff_t Depth(const std::string& path) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    const auto part = std::string_view(path).substr(begin, end - begin);
    if (part == ".." && !parts.empty())
      parts.pop_back();
    else if (!part.empty() && part != ".")
      parts.push_back(part);
    begin = end + 1;
  }
  return std::max<std::ptrdiff_t>(1, static_cast<std::ptrdiff_t>(parts.size()));
}

void AddEnvironment(Json& root, const std::vector<std::string>& environment) {
  if (environment.empty()) return;
  const auto name_of = [](const std::string& entry) { return entry.substr(0, entry.find('=')); };
  std::unordered_map<std::string, std::string> wanted;
  for (const std::string& entry : environment) wanted[name_of(entry)] = entry;
  Json& old = OpenPlace(root, "process", "env", Type::array);
  Json joined = Json::array();
  // libc and the container could read different values of a duplicate name: the first occurrence
  // gets the new value, the others are removed.
  std::unordered_map<std::string, bool> placed;
  for (Json& entry : old) {
    const std::string name = name_of(entry.get_ref<const std::string&>());
    const auto found = wanted.find(name);
    if (found == wanted.end()) {
      joined.push_back(std::move(entry));
    } else if (!std::exchange(placed[name], true)) {
      joined.push_back(found->second);
    }
  }
  for (const std::string& entry : environment)
    if (const std::string name = name_of(entry); !std::exchange(placed[name], true))
      joined.push_back(wanted[name]);
  old = std::move(joined);
}

/// The process's own id, which a device file gets if its specification names none; nothing for
/// root.
std::optional<std::uint32_t> IdOfProcess(const Json& root, const char* key) {
  const Json* id = FindPlace(root, std::string("/process/user/") + key);
  if (id == nullptr || !id->is_number_unsigned() || id->get<std::uint32_t>() == 0)
    return std::nullopt;
  return id->get<std::uint32_t>();
}

void RemoveBy(Json& list, const char* key, const std::string& value) {
  list.erase(std::remove_if(list.begin(), list.end(),
                            [&](const Json& item) { return Text(item, key) == value; }),
             list.end());
}

void AddUnlessThere(Json& list, Json item) {
  if (std::ranges::find(list, item) == list.end()) list.push_back(std::move(item));
}

void AddDevice(Json& root, const api::cdi::DeviceNode& node) {
  Json device = {{"path", node.path}, {"type", node.type}};
  if (node.type != "p")
    device.update({{"major", node.major.value_or(0)}, {"minor", node.minor.value_or(0)}});
  if (node.file_mode) device["fileMode"] = *node.file_mode;
  if (const auto uid = node.uid ? node.uid : IdOfProcess(root, "uid")) device["uid"] = *uid;
  if (const auto gid = node.gid ? node.gid : IdOfProcess(root, "gid")) device["gid"] = *gid;
  Json& devices = OpenPlace(root, "linux", "devices", Type::array);
  RemoveBy(devices, "path", node.path);
  devices.push_back(std::move(device));

  if ((node.type != "b" && node.type != "c") || node.permissions == "none") return;
  Json& resources = OpenPlace(root, "linux", "resources", Type::object);
  AddUnlessThere(Open(resources, "devices", Type::array),
                 {{"allow", true},
                  {"type", node.type},
                  {"major", node.major.value_or(0)},
                  {"minor", node.minor.value_or(0)},
                  {"access", node.permissions.empty() ? "rwm" : node.permissions}});
}

void AddMounts(Json& root, const std::vector<api::cdi::Mount>& added) {
  if (added.empty()) return;
  Json& mounts = Open(root, "mounts", Type::array);
  for (const api::cdi::Mount& mount : added) {
    RemoveBy(mounts, "destination", mount.container_path);
    Json entry = {{"destination", mount.container_path}};
    if (!mount.type.empty()) entry["type"] = mount.type;
    entry["source"] = mount.host_path;
    if (!mount.options.empty()) entry["options"] = mount.options;
    mounts.push_back(std::move(entry));
  }
  std::vector<std::pair<std::ptrdiff_t, Json>> sorted;
  for (Json& mount : mounts)
    sorted.emplace_back(Depth(Text(mount, "destination")), std::move(mount));
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < sorted.size(); ++i) mounts[i] = std::move(sorted[i].second);
}

void AddHook(Json& root, const api::cdi::Hook& hook) {
  Json entry = {{"path", hook.path}};
  if (!hook.args.empty()) entry["args"] = hook.args;
  entry["env"] = hook.env.empty() ? std::vector<std::string>{kHookPath} : hook.env;
  if (hook.timeout) entry["timeout"] = *hook.timeout;
  AddUnlessThere(OpenPlace(root, "hooks", hook.name.c_str(), Type::array), std::move(entry));
}

void SetIntelRdt(Json& root, const api::cdi::IntelRdt& rdt) {
  Json entry = Json::object();
  const std::pair<const char*, const std::string*> texts[] = {
      {"closID", &rdt.clos_id},
      {"l3CacheSchema", &rdt.l3_cache_schema},
      {"memBwSchema", &rdt.memory_bandwidth_schema}};
  for (const auto& [key, text] : texts)
    if (!text->empty()) entry[key] = *text;
  if (!rdt.schemata.empty()) entry["schemata"] = rdt.schemata;
  const std::pair<const char*, bool> switches[] = {{"enableMonitoring", rdt.enable_monitoring},
                                                   {"enableCMT", rdt.enable_cmt},
                                                   {"enableMBM", rdt.enable_mbm}};
  for (const auto& [key, on] : switches)
    if (on) entry[key] = true;
  Open(root, "linux", Type::object)["intelRdt"] = std::move(entry);
}

/// CRI-O copies a pod author's annotations into every container of the pod
/// (internal/factory/container, SpecAddAnnotations), and sets this annotation, which the copy
/// cannot replace: the kubelet's annotations of the container, as JSON. In a pod's sandbox
/// container, which every engine creates first, it contains the pod's annotations, so none count
/// there. Other engines pass on only the kubelet's annotations.
constexpr const char* kCrioAnnotations = "io.kubernetes.cri-o.Annotations";
constexpr const char* kContainerTypes[] = {"io.kubernetes.cri-o.ContainerType",
                                           "io.kubernetes.cri.container-type"};

RuntimeFacts::Annotations OwnAnnotations(const RuntimeFacts& facts) {
  const auto get = [&facts](const char* key) {
    const auto found = facts.annotations.find(key);
    return found == facts.annotations.end() ? std::string() : found->second;
  };
  for (const char* type : kContainerTypes)
    if (get(type) == "sandbox") return {};
  if (!facts.OfCrio()) return facts.annotations;
  const Json given = base::ParseJson<Json>(get(kCrioAnnotations));
  RuntimeFacts::Annotations own;
  if (given.is_object())
    for (const auto& [key, value] : given.items())
      if (value.is_string()) own[key] = value.get_ref<const std::string&>();
  return own;
}

bool IsReplaced(const Json& hook) { return IsReplacedHook(Text(hook, "path")); }

}  // namespace

struct Bundle::Tree {
  Json root;
};

Bundle::Bundle(std::unique_ptr<Tree> tree) : tree_(std::move(tree)) {}
Bundle::Bundle(Bundle&&) noexcept = default;
Bundle& Bundle::operator=(Bundle&&) noexcept = default;
Bundle::~Bundle() = default;

Result<Bundle> Bundle::Parse(std::string_view text, const std::string& file) {
  if (IsTooDeep(text))
    return Error(Code::kInvalidArgument,
                 file + " nests deeper than " + std::to_string(kMaxDepth) + " levels");
  Json root = base::ParseJson<Json>(text);
  if (root.is_discarded())
    return Error(Code::kInvalidArgument,
                 file + " is not JSON; it is written by the container engine");
  for (const Place& place : kPlaces)
    if (const auto why = WhyNot(root, place))
      return Error(Code::kInvalidArgument, file + ": " + *why);
  auto tree = std::make_unique<Tree>();
  tree->root = std::move(root);
  return Bundle(std::move(tree));
}

RuntimeFacts Bundle::facts() const {
  RuntimeFacts facts;
  const auto each = [this](const char* pointer, const auto& take) {
    if (const Json* place = FindPlace(tree_->root, pointer))
      for (const Json& item : *place) take(item);
  };
  each("/process/env", [&facts](const Json& item) {
    const std::string& entry = item.get_ref<const std::string&>();
    if (const auto equals = entry.find('='); equals != std::string::npos)
      facts.environment[entry.substr(0, equals)] = entry.substr(equals + 1);
  });
  each("/mounts", [&facts](const Json& item) {
    facts.mounts.push_back({Text(item, "source"), Text(item, "destination")});
  });
  each("/process/capabilities/bounding", [&facts](const Json& item) {
    facts.privileged = facts.privileged || item == "CAP_SYS_ADMIN";
  });
  each("/hooks/prestart",
       [&facts](const Json& item) { facts.gpus_hook = facts.gpus_hook || IsReplaced(item); });
  if (const Json* annotations = FindPlace(tree_->root, "/annotations"))
    for (const auto& [key, value] : annotations->items())
      facts.annotations[key] = value.get_ref<const std::string&>();
  facts.own_annotations = OwnAnnotations(facts);
  return facts;
}

bool Bundle::RemoveStaleHooks() {
  if (FindPlace(tree_->root, "/hooks/prestart") == nullptr) return false;
  Json& hooks = tree_->root["hooks"]["prestart"];
  const auto left = std::remove_if(hooks.begin(), hooks.end(), IsReplaced);
  const bool found = left != hooks.end();
  hooks.erase(left, hooks.end());
  return found;
}

void Bundle::Apply(const api::cdi::CdiEdits& edits) {
  Json& root = tree_->root;
  AddEnvironment(root, edits.env);
  for (const api::cdi::DeviceNode& node : edits.nodes) AddDevice(root, node);
  for (const api::cdi::NetDevice& device : edits.net_devices)
    OpenPlace(root, "linux", "netDevices",
              Type::object)[device.host_interface] = {{"name", device.name}};
  AddMounts(root, edits.mounts);
  for (const api::cdi::Hook& hook : edits.hooks) AddHook(root, hook);
  if (edits.intel_rdt) SetIntelRdt(root, *edits.intel_rdt);
  for (const std::uint32_t gid : edits.additional_gids)
    if (gid != 0)
      AddUnlessThere(
          Open(OpenPlace(root, "process", "user", Type::object), "additionalGids", Type::array),
          gid);
}

std::string Bundle::ToText() const { return base::JsonText(tree_->root); }

}  // namespace penstock::hook::runtime
