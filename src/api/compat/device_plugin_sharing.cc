// The device plugin's sections `resources` and `sharing`: checked in full, answered "not yet" by name. Changes no configuration.
#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>

#include "api/compat/device_plugin_reader.h"
#include "base/strings.h"

namespace penstock::api::compat::internal {

namespace {

using base::MapReader;
using base::Value;

constexpr std::string_view kPrefix = "nvidia.com/";
constexpr std::string_view kWholeGpus = "nvidia.com/gpu";
constexpr std::size_t kLongestResource = 63;
constexpr std::int64_t kMostReplicas = 100'000;  // users ask for one for each MiB

const Value kNothing;

bool IsDigits(std::string_view text) {
  return !text.empty() && text.size() <= 9 && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "b1028956-cfa2-0990-bf4a-5da9abb51763".
bool IsUuid(std::string_view text) {
  const auto parts = base::Split(text, '-');
  constexpr std::array<std::size_t, 5> kLengths = {8, 4, 4, 4, 12};
  if (parts.size() != kLengths.size()) return false;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].size() != kLengths[i] ||
        !std::all_of(parts[i].begin(), parts[i].end(), [](unsigned char c) { return std::isxdigit(c) != 0; }))
      return false;
  return true;
}

bool IsGpuUuid(std::string_view text) { return text.starts_with("GPU-") && IsUuid(text.substr(4)); }

/// "MIG-<uuid>", or "MIG-GPU-<uuid>/3/0" as old drivers have it.
bool IsMigUuid(std::string_view text) {
  if (!text.starts_with("MIG-")) return false;
  const auto parts = base::Split(text.substr(4), '/');
  return (parts.size() == 1 && IsUuid(parts[0])) || (parts.size() == 3 && IsGpuUuid(parts[0]) && IsDigits(parts[1]) && IsDigits(parts[2]));
}

/// An index ("0"), a partition's ("0:1"), a UUID.
bool IsDeviceRef(std::string_view text) {
  const auto parts = base::Split(text, ':');
  const bool index = parts.size() <= 2 && std::all_of(parts.begin(), parts.end(), [](const auto& part) { return IsDigits(part); });
  return index || IsGpuUuid(text) || IsMigUuid(text);
}

bool IsSubdomain(std::string_view name) {
  const auto labels = base::Split(name, '.');
  return std::all_of(labels.begin(), labels.end(), [](const std::string& label) {
    const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    return !label.empty() && plain(label.front()) && plain(label.back()) &&
           std::all_of(label.begin(), label.end(), [&](char c) { return plain(c) || c == '-'; });
  });
}

/// The full name of a resource, with its prefix; empty where the value is missing or wrong, which is a problem.
std::string ReadResourceName(MapReader& reader, std::string_view key) {
  const auto text = reader.String(key);
  if (!text) return "";
  const std::string full = text->starts_with(kPrefix) ? *text : std::string(kPrefix) + *text;
  if (!IsSubdomain(std::string_view(full).substr(kPrefix.size()))) {
    reader.Problem(key, "\"" + *text + "\" is no name of a resource: after nvidia.com/ come lower-case letters, digits, '-' and '.'");
  } else if (full.size() > kLongestResource) {
    reader.Problem(key, "\"" + full + "\" is longer than 63 characters");
  } else {
    return full;
  }
  return "";
}

/// all, a number of devices, or a list of references. True where it means all of them.
bool ReadDevices(MapReader& reader, Notes& notes) {
  static constexpr std::string_view kForms = "all, a number of devices, or a list of indices (0, \"0:1\") and UUIDs (GPU-..., MIG-...)";
  const Value* devices = reader.Any("devices");
  if (devices == nullptr || devices->kind == Value::Kind::kNull) return true;
  if (devices->kind == Value::Kind::kString && devices->text == "all") return true;
  if (devices->kind == Value::Kind::kInt && devices->integer > 0) return false;
  if (devices->kind != Value::Kind::kList) {
    reader.Problem("devices", (devices->text.empty() ? "" : "\"" + devices->text + "\" ") + "is none of " + std::string(kForms));
    return false;
  }
  if (devices->list->empty()) reader.Problem("devices", "is empty; write \"all\" to mean all of them");
  for (const Value& item : *devices->list) {
    const bool index = item.kind == Value::Kind::kInt && item.integer >= 0;
    if (!index && !(item.kind == Value::Kind::kString && IsDeviceRef(item.text)))
      notes.problems.Add(item.mark, reader.Path("devices") + ": " + (item.text.empty() ? "an item" : "\"" + item.text + "\"") +
                                        " is no device: write an index (0), a partition's (\"0:1\") or a UUID (GPU-..., MIG-...)");
  }
  return false;
}

struct Strategy {
  std::string_view key;   ///< "timeSlicing"
  std::string_view verb;  ///< "sharing it by time-slicing"
};

/// One entry of `resources`. `seen`: names whose devices were all named already.
void ReadReplicated(const Value& item, const std::string& where, const Strategy& strategy, std::map<std::string, bool>& seen,
                    Notes& notes) {
  MapReader reader(item, where, notes.problems);
  for (const char* key : {"name", "replicas"}) reader.Require(key);
  const std::string name = ReadResourceName(reader, "name");
  const std::string rename = ReadResourceName(reader, "rename");
  const bool all = ReadDevices(reader, notes);
  const auto replicas = reader.Int("replicas", 1, kMostReplicas);
  reader.Finish();
  if (!name.empty()) {
    const auto [before, first] = seen.try_emplace(name, all);
    if (!first && (all || before->second))
      reader.Problem("name", "\"" + name + "\" is listed twice, and one of the two means all its devices");
  }
  if (!replicas || *replicas == 1 || name.empty()) return;
  notes.not_yet.push_back(where + ": " + std::string(strategy.verb) + " is not to be had yet; " + std::to_string(*replicas) +
                          " replicas of " + name + (rename.empty() ? "" : " as " + rename) +
                          " are asked for, and each device is offered whole, once");
}

bool ReadStrategy(MapReader& sharing, const Strategy& strategy, Notes& notes) {
  const Value* map = sharing.Map(strategy.key);
  if (map == nullptr) return false;
  const std::string where = "sharing." + std::string(strategy.key);
  MapReader reader(*map, where, notes.problems);
  if (const auto old = reader.String("strategy"); old && !old->empty())
    reader.Problem("strategy", "\"" + *old + "\" is unknown; the plugin knows no strategies either: leave the key out");
  (void)reader.Bool("renameByDefault");
  (void)reader.Bool("failRequestsGreaterThanOne");
  reader.Require("resources");
  if (const Value* list = reader.List("resources")) {
    if (list->list->empty()) reader.Problem("resources", "is empty; leave \"" + std::string(strategy.key) + "\" out to share nothing");
    std::map<std::string, bool> seen;
    for (std::size_t i = 0; i < list->list->size(); ++i)
      ReadReplicated((*list->list)[i], where + ".resources[" + std::to_string(i) + "]", strategy, seen, notes);
  }
  reader.Finish();
  return true;
}

/// Patterns over products or profiles, and the resource each is to be offered as. `usual`: the name that a pattern has anyway.
void ReadPatterns(MapReader& resources, std::string_view key, Notes& notes) {
  const Value* list = resources.List(key);
  if (list == nullptr) return;
  for (std::size_t i = 0; i < list->list->size(); ++i) {
    const std::string where = "resources." + std::string(key) + "[" + std::to_string(i) + "]";
    MapReader reader((*list->list)[i], where, notes.problems);
    for (const char* required : {"pattern", "name"}) reader.Require(required);
    const auto pattern = reader.String("pattern");
    if (pattern && pattern->empty()) reader.Problem("pattern", "is empty; write \"*\" to mean all");
    const std::string name = ReadResourceName(reader, "name");
    reader.Finish();
    if (!pattern || name.empty()) continue;
    const bool usual = key == "gpus" ? name == kWholeGpus : name == std::string(kPrefix) + "mig-" + *pattern;
    if (!usual)
      notes.not_yet.push_back(where + ": naming resources is not to be had yet; devices like \"" + *pattern + "\" are not offered as " +
                              name + " but under their usual names");
  }
}

}  // namespace

const Value& MapAt(MapReader& reader, std::string_view key) {
  const Value* map = reader.Map(key);
  return map != nullptr ? *map : kNothing;
}

void ReadResources(MapReader& top, Notes& notes) {
  MapReader resources(MapAt(top, "resources"), "resources", notes.problems);
  ReadPatterns(resources, "gpus", notes);
  ReadPatterns(resources, "mig", notes);
  resources.Finish();
}

void ReadSharing(MapReader& top, Notes& notes) {
  MapReader sharing(MapAt(top, "sharing"), "sharing", notes.problems);
  const bool slices = ReadStrategy(sharing, {"timeSlicing", "sharing by time-slicing"}, notes);
  const bool mps = ReadStrategy(sharing, {"mps", "sharing through MPS"}, notes);
  if (slices && mps) notes.remarks.push_back("sharing.timeSlicing: has no effect beside sharing.mps");
  sharing.Finish();
}

}  // namespace penstock::api::compat::internal
