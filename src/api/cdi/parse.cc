// Parses a specification from JSON or YAML and reports each deviation from the format with its
// place in the file. The engines' own reader is Go's, through sigs.k8s.io/yaml: it reads every file
// as YAML, and accepts plain numbers and booleans where a text is expected.
#include <charconv>
#include <limits>
#include <set>
#include <utility>

#include "api/cdi/check.h"
#include "base/core/document.h"
#include "base/core/strings.h"
#include "base/yaml.h"

namespace penstock::api::cdi {

namespace {

using base::MapReader;
using base::Problems;
using base::Value;

std::string At(const std::string& list, std::size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

/// Returns the shortest text of a number, as Go writes it.
std::string ShortestText(double number) {
  char buffer[64];
  const auto end = std::to_chars(std::begin(buffer), std::end(buffer), number).ptr;
  return {buffer, end};
}

/// Returns a text, also of a scalar of another type; nothing if an engine would read a different
/// text than is written.
std::optional<std::string> TextOf(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull: return "";
    case Value::Kind::kString: return value.text;
    case Value::Kind::kInt:
      return value.text == std::to_string(value.integer) ? std::optional(value.text) : std::nullopt;
    case Value::Kind::kFloat:
      return value.text == ShortestText(value.number) ? std::optional(value.text) : std::nullopt;
    case Value::Kind::kBool:
      return value.text == "true" || value.text == "false" ? std::optional(value.text)
                                                           : std::nullopt;
    default: return std::nullopt;
  }
}

/// Returns a number by the rules of YAML 1.1, which engines read: 0660 is octal.
std::optional<std::int64_t> IntegerOf(const Value& value) {
  if (value.kind != Value::Kind::kInt) return std::nullopt;
  if (value.text.size() > 1 && value.text.front() == '0' &&
      value.text.find_first_not_of("01234567") == std::string::npos)
    return base::ParseInt(value.text, 8);
  return value.integer;
}

/// Builds a specification and collects its problems. If reading a key reported a problem, the rules
/// report nothing more about it.
class Reader {
 public:
  explicit Reader(Problems& problems) : problems_(problems) {}

  Spec ReadSpec(const Value& document);

  /// Adds the findings of the rules, each with its position in the document.
  void Notify(const std::vector<internal::SpecProblem>& findings, const Value& document);

 private:
  void Problem(const Value& value, const std::string& path, const std::string& message) {
    reported_.insert(path);
    problems_.Add(value.mark, path + ": " + message);
  }

  void ReadText(MapReader& map, std::string_view key, std::string& target);
  template <typename Integer>
  void ReadInteger(MapReader& map, std::string_view key, std::optional<Integer>& target);
  void ReadBool(MapReader& map, std::string_view key, bool& target);
  void ReadTexts(MapReader& map, std::string_view key, std::vector<std::string>& target);
  std::map<std::string, std::string> ReadAnnotations(MapReader& map);
  /// Reads each item of a list with a function that takes its map.
  template <typename Item>
  void ReadItems(MapReader& map, std::string_view key, std::vector<Item>& target,
                 void (Reader::*read)(MapReader&, Item&));

  void ReadDevice(MapReader& map, Device& device);
  void ReadEdits(MapReader& parent, CdiEdits& edits);
  void ReadNode(MapReader& map, DeviceNode& node);
  void ReadMount(MapReader& map, Mount& mount);
  void ReadHook(MapReader& map, Hook& hook);
  void ReadNetDevice(MapReader& map, NetDevice& device);
  void ReadIntelRdt(MapReader& map, IntelRdt& rdt);
  void ReadGroups(MapReader& map, std::vector<std::uint32_t>& groups);

  const Value* TakeMap(MapReader& map, std::string_view key);
  const Value* TakeList(MapReader& map, std::string_view key);

  Problems& problems_;
  std::set<std::string> reported_;
};

const Value* Reader::TakeMap(MapReader& map, std::string_view key) {
  const Value* value = map.Any(key);
  if (value == nullptr || value->kind == Value::Kind::kNull) return nullptr;
  if (value->kind == Value::Kind::kMap) return value;
  Problem(*value, map.Path(key),
          "is " + std::string(Describe(value->kind)) + " where a map is expected");
  return nullptr;
}

const Value* Reader::TakeList(MapReader& map, std::string_view key) {
  const Value* value = map.Any(key);
  if (value == nullptr || value->kind == Value::Kind::kNull) return nullptr;
  if (value->kind == Value::Kind::kList) return value;
  Problem(*value, map.Path(key),
          "is " + std::string(Describe(value->kind)) + " where a list is expected");
  return nullptr;
}

std::string WhyNoText(const Value& value) {
  std::string why = "is " + std::string(Describe(value.kind));
  if (value.text.empty()) return why + " where a string is expected";
  return why + " (" + value.text + ") where a string is expected; put it in quotes";
}

void Reader::ReadText(MapReader& map, std::string_view key, std::string& target) {
  const Value* value = map.Any(key);
  if (value == nullptr || value->kind == Value::Kind::kNull) return;
  if (auto text = TextOf(*value)) {
    target = *std::move(text);
  } else {
    Problem(*value, map.Path(key), WhyNoText(*value));
  }
}

template <typename Integer>
void Reader::ReadInteger(MapReader& map, std::string_view key, std::optional<Integer>& target) {
  const Value* value = map.Any(key);
  if (value == nullptr || value->kind == Value::Kind::kNull) return;
  const auto number = IntegerOf(*value);
  if (!number) {
    Problem(*value, map.Path(key),
            "is " + std::string(Describe(value->kind)) + " where an integer is expected");
  } else if (!std::in_range<Integer>(*number)) {
    Problem(*value, map.Path(key),
            "is " + value->text + ", outside of " +
                std::to_string(std::numeric_limits<Integer>::min()) + " to " +
                std::to_string(std::numeric_limits<Integer>::max()));
  } else {
    target = static_cast<Integer>(*number);
  }
}

void Reader::ReadBool(MapReader& map, std::string_view key, bool& target) {
  const Value* value = map.Any(key);
  if (value == nullptr || value->kind == Value::Kind::kNull) return;
  if (value->kind == Value::Kind::kBool) {
    target = value->boolean;
  } else {
    Problem(*value, map.Path(key),
            "is " + std::string(Describe(value->kind)) + " where a boolean is expected");
  }
}

void Reader::ReadTexts(MapReader& map, std::string_view key, std::vector<std::string>& target) {
  const Value* list = TakeList(map, key);
  if (list == nullptr) return;
  for (const Value& item : *list->list) {
    auto text = TextOf(item);
    if (!text) Problem(item, At(map.Path(key), target.size()), WhyNoText(item));
    target.push_back(std::move(text).value_or(""));
  }
}

void Reader::ReadGroups(MapReader& map, std::vector<std::uint32_t>& groups) {
  const Value* list = TakeList(map, "additionalGids");
  if (list == nullptr) return;
  for (const Value& item : *list->list) {
    const auto number = item.kind == Value::Kind::kNull ? 0 : IntegerOf(item);
    if (number && std::in_range<std::uint32_t>(*number)) {
      groups.push_back(static_cast<std::uint32_t>(*number));
    } else {
      Problem(item, At(map.Path("additionalGids"), groups.size()), "must be a numeric group ID");
      groups.push_back(0);
    }
  }
}

std::map<std::string, std::string> Reader::ReadAnnotations(MapReader& map) {
  std::map<std::string, std::string> annotations;
  const Value* value = TakeMap(map, "annotations");
  if (value == nullptr) return annotations;
  for (const Value::Entry& entry : *value->map) {
    auto text = TextOf(entry.value);
    if (!text)
      Problem(entry.value, map.Path("annotations") + "." + entry.key, WhyNoText(entry.value));
    annotations[entry.key] = std::move(text).value_or("");
  }
  return annotations;
}

template <typename Item>
void Reader::ReadItems(MapReader& map, std::string_view key, std::vector<Item>& target,
                       void (Reader::*read)(MapReader&, Item&)) {
  const Value* list = TakeList(map, key);
  if (list == nullptr) return;
  for (const Value& value : *list->list) {
    const std::string path = At(map.Path(key), target.size());
    target.emplace_back();
    if (value.kind != Value::Kind::kMap) {
      Problem(value, path, "is " + std::string(Describe(value.kind)) + " where a map is expected");
      continue;
    }
    MapReader item(value, path, problems_);
    (this->*read)(item, target.back());
    item.Finish();
  }
}

void Reader::ReadNode(MapReader& map, DeviceNode& node) {
  ReadText(map, "path", node.path);
  ReadText(map, "hostPath", node.host_path);
  ReadText(map, "type", node.type);
  ReadInteger(map, "major", node.major);
  ReadInteger(map, "minor", node.minor);
  ReadInteger(map, "fileMode", node.file_mode);
  ReadText(map, "permissions", node.permissions);
  ReadInteger(map, "uid", node.uid);
  ReadInteger(map, "gid", node.gid);
}

void Reader::ReadMount(MapReader& map, Mount& mount) {
  ReadText(map, "hostPath", mount.host_path);
  ReadText(map, "containerPath", mount.container_path);
  ReadTexts(map, "options", mount.options);
  ReadText(map, "type", mount.type);
}

void Reader::ReadHook(MapReader& map, Hook& hook) {
  ReadText(map, "hookName", hook.name);
  ReadText(map, "path", hook.path);
  ReadTexts(map, "args", hook.args);
  ReadTexts(map, "env", hook.env);
  ReadInteger(map, "timeout", hook.timeout);
}

void Reader::ReadNetDevice(MapReader& map, NetDevice& device) {
  ReadText(map, "hostInterfaceName", device.host_interface);
  ReadText(map, "name", device.name);
}

void Reader::ReadIntelRdt(MapReader& map, IntelRdt& rdt) {
  ReadText(map, "closID", rdt.clos_id);
  ReadText(map, "l3CacheSchema", rdt.l3_cache_schema);
  ReadText(map, "memBwSchema", rdt.memory_bandwidth_schema);
  ReadTexts(map, "schemata", rdt.schemata);
  ReadBool(map, "enableMonitoring", rdt.enable_monitoring);
  ReadBool(map, "enableCMT", rdt.enable_cmt);
  ReadBool(map, "enableMBM", rdt.enable_mbm);
}

void Reader::ReadEdits(MapReader& parent, CdiEdits& edits) {
  const Value* value = TakeMap(parent, "containerEdits");
  if (value == nullptr) return;
  MapReader map(*value, parent.Path("containerEdits"), problems_);
  ReadTexts(map, "env", edits.env);
  ReadItems(map, "deviceNodes", edits.nodes, &Reader::ReadNode);
  ReadItems(map, "netDevices", edits.net_devices, &Reader::ReadNetDevice);
  ReadItems(map, "hooks", edits.hooks, &Reader::ReadHook);
  ReadItems(map, "mounts", edits.mounts, &Reader::ReadMount);
  if (const Value* rdt = TakeMap(map, "intelRdt")) {
    MapReader rdt_map(*rdt, map.Path("intelRdt"), problems_);
    ReadIntelRdt(rdt_map, edits.intel_rdt.emplace());
    rdt_map.Finish();
  }
  ReadGroups(map, edits.additional_gids);
  map.Finish();
}

void Reader::ReadDevice(MapReader& map, Device& device) {
  ReadText(map, "name", device.name);
  device.annotations = ReadAnnotations(map);
  ReadEdits(map, device.edits);
}

Spec Reader::ReadSpec(const Value& document) {
  Spec spec;
  MapReader map(document, "", problems_);
  ReadText(map, "cdiVersion", spec.version);
  ReadText(map, "kind", spec.kind);
  spec.annotations = ReadAnnotations(map);
  ReadItems(map, "devices", spec.devices, &Reader::ReadDevice);
  ReadEdits(map, spec.edits);
  map.Finish();
  if (spec.version.empty() && reported_.count("cdiVersion") == 0)
    Problem(document, "cdiVersion", "is missing");
  if (spec.version.starts_with('v')) spec.version.erase(0, 1);
  return spec;
}

/// Returns the mark of the value at a path, or of the value that would contain it.
base::Mark MarkOf(const Value& document, std::string_view path) {
  const Value* value = &document;
  while (!path.empty()) {
    const auto end = std::min(path.find_first_of(".[", 1), path.size());
    const std::string_view step = path.substr(0, end);
    path.remove_prefix(end);
    const Value* below = nullptr;
    if (step.front() == '[') {
      const auto index = base::ParseUint(step.substr(1, step.size() - 2));
      if (index && value->list && *index < value->list->size()) below = &(*value->list)[*index];
    } else {
      below = value->Find(step.front() == '.' ? step.substr(1) : step);
    }
    if (below == nullptr) break;
    value = below;
  }
  return value->mark;
}

void Reader::Notify(const std::vector<internal::SpecProblem>& findings, const Value& document) {
  const auto is_reported = [this](const std::string& path) {
    for (std::size_t end = path.size(); end != std::string::npos && end > 0;
         end = path.find_last_of(".[", end - 1))
      if (reported_.count(path.substr(0, end)) != 0) return true;
    return false;
  };
  for (const auto& finding : findings)
    if (!is_reported(finding.path))
      problems_.Add(MarkOf(document, finding.path), finding.path + ": " + finding.message);
}

/// Text that looks like JSON is parsed as JSON, so that what is legal there (tabs) is accepted.
base::Result<Value> ParseDocument(std::string_view text, std::string_view file) {
  if (base::Trim(text).starts_with("{"))
    if (auto json = base::ParseJson(text, file); json.ok()) return json;
  return base::ParseYaml(text, file);
}

}  // namespace

base::Result<Spec> Parse(std::string_view text, std::string_view file) {
  ASSIGN(const Value document, ParseDocument(text, file));
  Problems problems{std::string(file)};
  if (document.kind != Value::Kind::kMap) {
    problems.Add(document.mark, document.kind == Value::Kind::kNull
                                    ? "is empty; a CDI specification is expected"
                                    : "is " + std::string(Describe(document.kind)) +
                                          " where a CDI specification is expected");
    return problems.ToError();
  }
  Reader reader(problems);
  Spec spec = reader.ReadSpec(document);
  reader.Notify(internal::Inspect(spec), document);
  if (!problems.empty()) return problems.ToError();
  return spec;
}

}  // namespace penstock::api::cdi
