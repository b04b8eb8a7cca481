// Translates the device plugin's sections `resources` and `sharing` to rules. Settings that the
// plugin reads and then ignores (names, devices: DisableResourceNamingInConfig in
// api/config/v1/config.go) take effect here, unless PluginFiles says otherwise.
#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "api/compat/nvidia/device_plugin_reader.h"
#include "api/config/node_config_check.h"
#include "base/core/strings.h"

namespace penstock::api::compat::internal {

namespace {

using base::MapReader;
using base::Value;

constexpr std::string_view kPrefix = "nvidia.com/";
constexpr std::string_view kMigPrefix = "nvidia.com/mig-";
constexpr std::string_view kSharedSuffix = ".shared";
constexpr std::size_t kLongestResource = 63;
constexpr std::int64_t kMaxDevices = 1024;
constexpr std::size_t kMostEntries = 1000;
constexpr bool kExactNames = true;  // for maps that the plugin reads with functions of its own
                                    // (UnmarshalJSON in api/config/v1)

const Value kNothing;

bool IsDigits(std::string_view text) {
  return !text.empty() && text.size() <= 9 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// "b1028956-cfa2-0990-bf4a-5da9abb51763".
bool IsUuid(std::string_view text) {
  const auto parts = base::Split(text, '-');
  constexpr std::array<std::size_t, 5> kLengths = {8, 4, 4, 4, 12};
  if (parts.size() != kLengths.size()) return false;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].size() != kLengths[i] ||
        !std::ranges::all_of(parts[i], [](unsigned char c) { return std::isxdigit(c) != 0; }))
      return false;
  return true;
}

bool IsGpuUuid(std::string_view text) { return text.starts_with("GPU-") && IsUuid(text.substr(4)); }

/// "MIG-<uuid>", or "MIG-GPU-<uuid>/3/0" from old drivers.
bool IsMigUuid(std::string_view text) {
  if (!text.starts_with("MIG-")) return false;
  const auto parts = base::Split(text.substr(4), '/');
  return (parts.size() == 1 && IsUuid(parts[0])) ||
         (parts.size() == 3 && IsGpuUuid(parts[0]) && IsDigits(parts[1]) && IsDigits(parts[2]));
}

/// "0:1": the indices of a GPU and of its MIG device.
bool IsMigIndex(std::string_view text) {
  const auto parts = base::Split(text, ':');
  return parts.size() == 2 && IsDigits(parts[0]) && IsDigits(parts[1]);
}

bool IsSubdomain(std::string_view name) {
  const auto labels = base::Split(name, '.');
  return std::ranges::all_of(labels, [](const std::string& label) {
    const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    return !label.empty() && plain(label.front()) && plain(label.back()) &&
           std::ranges::all_of(label, [&](char c) { return plain(c) || c == '-'; });
  });
}

/// Returns the full name of a resource, with its prefix; empty if the value is missing or wrong,
/// which is a problem.
std::string ReadResourceName(MapReader& reader, std::string_view key) {
  const auto text = reader.String(key);
  if (!text) return "";
  std::string full = text->starts_with(kPrefix) ? *text : std::string(kPrefix) + *text;
  if (!IsSubdomain(std::string_view(full).substr(kPrefix.size()))) {
    reader.Problem(key, "\"" + *text +
                            "\" is not a resource name: after nvidia.com/ only lower-case letters, "
                            "digits, '-' and '.' are allowed");
  } else if (full.size() > kLongestResource) {
    reader.Problem(key, "\"" + full + "\" is longer than 63 characters");
  } else {
    return full;
  }
  return "";
}

/// The devices that an entry applies to.
struct Devices {
  std::vector<std::string> list;  ///< GPUs; empty: all
  int most = 0;                   ///< 0: all matching devices
  bool all() const { return list.empty() && most == 0; }
};

void ReadDevice(const Value& item, MapReader& reader, base::Problems& problems, Devices& devices) {
  const bool text = item.kind == Value::Kind::kString;
  if ((item.kind == Value::Kind::kInt && item.integer >= 0) ||
      (text && (IsDigits(item.text) || IsGpuUuid(item.text) || IsMigIndex(item.text) ||
                IsMigUuid(item.text)))) {
    devices.list.push_back(item.kind == Value::Kind::kInt ? std::to_string(item.integer)
                                                          : item.text);
  } else {
    problems.Add(item.mark, reader.Path("devices") + ": " +
                                (item.text.empty() ? "an item" : "\"" + item.text + "\"") +
                                " is not a device: write an index (0), a partition's (\"0:1\") or "
                                "a UUID (GPU-..., MIG-...)");
  }
}

/// Reads `all`, a number of devices, or a list of references.
Devices ReadDevices(MapReader& reader, base::Problems& problems) {
  static constexpr std::string_view kForms =
      "all, a number of devices, or a list of indices (0, \"0:1\") and UUIDs (GPU-..., MIG-...)";
  Devices devices;
  const Value* value = reader.Any("devices");
  if (value == nullptr || value->kind == Value::Kind::kNull ||
      (value->kind == Value::Kind::kString && value->text == "all"))
    return devices;
  if (value->kind == Value::Kind::kInt && value->integer > 0 && value->integer <= kMaxDevices) {
    devices.most = static_cast<int>(value->integer);
  } else if (value->kind != Value::Kind::kList) {
    reader.Problem("devices", (value->text.empty() ? "" : "\"" + value->text + "\" ") +
                                  "is none of " + std::string(kForms));
  } else if (value->list->empty()) {
    reader.Problem("devices", "is empty; write \"all\" to mean all of them");
  } else {
    for (const Value& item : *value->list) ReadDevice(item, reader, problems, devices);
  }
  return devices;
}

/// `timeSlicing` or `mps`, whose sections have the same keys.
struct Strategy {
  std::string_view key;  ///< "timeSlicing"
  ShareStrategy strategy = ShareStrategy::kNone;
  bool renames = false;
  bool single = false;  ///< failRequestsGreaterThanOne
};

/// A rule, and its place in the file.
struct Placed {
  SharingRule rule;
  std::string where;
  base::Mark mark;
};

/// Whether a key that NVIDIA's plugin reads and ignores is ignored here, too.
bool IsIgnored(const std::string& key, PluginFiles files, Notes& notes) {
  const bool ignored = files == PluginFiles::kAsNvidia;
  notes.remarks.push_back(
      key + (ignored ? ": is ignored, as by NVIDIA's plugin (devicePlugin.configFiles: as-nvidia)"
                     : ": takes effect here; NVIDIA's plugin ignores it, and so does "
                       "devicePlugin.configFiles: as-nvidia"));
  return ignored;
}

/// Returns the name of an entry's shares; empty if they keep the resource's name.
std::string NewName(MapReader& reader, const Strategy& strategy, const std::string& name,
                    const std::string& rename) {
  if (!rename.empty()) return rename == name ? "" : rename;
  if (!strategy.renames || name.empty() || name.ends_with(kSharedSuffix)) return "";
  std::string shared = name + std::string(kSharedSuffix);
  if (shared.size() > kLongestResource)
    reader.Problem("name", "\"" + shared + "\" (renameByDefault) is longer than 63 characters");
  return shared;
}

/// Reads one entry of `resources`; returns nothing if it is wrong.
std::optional<Placed> ReadEntry(const Value& item, const std::string& where,
                                const Strategy& strategy, PluginFiles files, Notes& notes) {
  MapReader reader(item, where, notes.problems, kExactNames);
  for (const char* key : {"name", "replicas"}) reader.Require(key);
  const std::string name = ReadResourceName(reader, "name");
  const auto replicas = reader.Int("replicas", 1, kMaxReplicas);
  const bool shared = replicas.value_or(1) > 1;
  const auto counts = [&](const char* key, std::string_view preset) {
    const Value* value = reader.Any(key);
    const bool given =
        value != nullptr && value->kind != Value::Kind::kNull && value->text != preset;
    return given && (!shared || !IsIgnored(where + "." + key, files, notes));
  };
  const std::string rename = counts("rename", "") ? ReadResourceName(reader, "rename") : "";
  const Devices devices =
      counts("devices", "all") ? ReadDevices(reader, notes.problems) : Devices{};
  reader.Finish();
  if (!replicas || name.empty()) return std::nullopt;
  Placed placed{{.resource = name, .devices = devices.list, .most = devices.most},
                where,
                reader.mark("name")};
  if (shared) {
    placed.rule.strategy = strategy.strategy;
    placed.rule.replicas = static_cast<int>(*replicas);
    placed.rule.rename = NewName(reader, strategy, name, rename);
    placed.rule.fail_requests_greater_than_one = strategy.single;
  } else if (!rename.empty()) {
    notes.remarks.push_back(
        where +
        ".rename: has no effect with replicas: 1; whole devices are named by resources.gpus");
  }
  return placed;
}

/// Adds a rule. Of two rules for all devices of a resource, the plugin makes the shares of both,
/// which are those of the larger one.
void Add(Placed placed, std::vector<Placed>& rules, Notes& notes) {
  const auto same = std::ranges::find_if(rules, [&placed](const Placed& other) {
    const SharingRule &a = other.rule, &b = placed.rule;
    return a.resource == b.resource && a.rename == b.rename && a.devices.empty() &&
           b.devices.empty() && a.most == 0 && b.most == 0;
  });
  if (same == rules.end() || !notes.problems.lenient()) return rules.push_back(std::move(placed));
  notes.remarks.push_back(placed.where + ": applies to the same devices as " + same->where +
                          "; the one with more replicas counts, as with NVIDIA's plugin");
  if (placed.rule.replicas > same->rule.replicas) *same = std::move(placed);
}

/// How many entries of a list are read: none of a list that is too long, which is a problem. Rules
/// are compared with each other.
std::size_t EntriesOf(const Value& list, MapReader& reader, std::string_view key) {
  const std::size_t size = list.list->size();
  if (size <= kMostEntries) return size;
  reader.Problem(key, "has " + std::to_string(size) + " entries; at most " +
                          std::to_string(kMostEntries) + " are read");
  return 0;
}

/// Reads all entries of a strategy, in the file's order. A map without entries is a problem.
std::vector<Placed> ReadStrategy(const Value& map, Strategy strategy, PluginFiles files,
                                 Notes& notes) {
  const std::string where = "sharing." + std::string(strategy.key);
  MapReader reader(map, where, notes.problems, kExactNames);
  if (const Value* old = reader.Any("strategy"); old != nullptr && !old->text.empty())
    notes.problems.Tolerate(
        old->mark,
        where + ".strategy: \"" + old->text +
            "\" is unknown; the plugin knows no strategies either: leave the key out",
        where + ".strategy: is ignored, as by NVIDIA's plugin");
  strategy.renames = reader.Bool("renameByDefault").value_or(false);
  strategy.single = reader.Bool("failRequestsGreaterThanOne").value_or(strategy.single);
  reader.Require("resources");
  std::vector<Placed> rules;
  if (const Value* list = reader.List("resources")) {
    if (list->list->empty())
      reader.Problem("resources",
                     "is empty; leave \"" + std::string(strategy.key) + "\" out to share nothing");
    for (std::size_t i = 0, n = EntriesOf(*list, reader, "resources"); i < n; ++i)
      if (auto rule = ReadEntry((*list->list)[i], base::Item(where + ".resources", i), strategy,
                                files, notes))
        Add(*std::move(rule), rules, notes);
  }
  reader.Finish();
  return rules;
}

void Replace(std::string& text, const std::string& what, const std::string& with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

/// Checks the rules with src/api's checks, and reports problems in the terms and with the places of
/// this file.
void CheckRules(const NodeConfig& config, const std::vector<Placed>& placed, Notes& notes) {
  const auto in_plugin_terms = [&](std::string text) {
    for (std::size_t i = 0; i < placed.size(); ++i)
      Replace(text, base::Item("sharing.rules", i), placed[i].where);
    for (std::size_t i = 0; i < notes.names_at.size(); ++i)
      Replace(text, base::Item("resources.names", i), notes.names_at[i]);
    return text;
  };
  api::internal::CheckSharing(config, [&](std::string_view key, const std::string& message) {
    for (std::size_t i = 0; i < placed.size(); ++i)
      if (key.starts_with(base::Item("sharing.rules", i)))
        notes.problems.Add(placed[i].mark,
                           in_plugin_terms(std::string(key)) + ": " + in_plugin_terms(message));
  });
}

/// Reads one entry of `resources.gpus` or `resources.mig`: pattern and full name. Returns nothing
/// if it is wrong.
std::optional<ResourceRule> ReadPattern(const Value& item, const std::string& where, Notes& notes) {
  MapReader reader(item, where, notes.problems, kExactNames);
  for (const char* required : {"pattern", "name"}) reader.Require(required);
  const auto pattern = reader.String("pattern");
  if (pattern && pattern->empty()) reader.Problem("pattern", "is empty; write \"*\" to mean all");
  const std::string name = ReadResourceName(reader, "name");
  reader.Finish();
  return pattern && !pattern->empty() && !name.empty() ? std::optional(ResourceRule{*pattern, name})
                                                       : std::nullopt;
}

void AddGpuPattern(const ResourceRule& rule, const std::string& where, const Context& context) {
  std::vector<ResourceRule>& rules = context.config.resources;
  const auto before = std::ranges::find_if(rules, [&](const ResourceRule& other) {
    return other.pattern == "*" || other.pattern == rule.pattern;
  });
  if (before == rules.end()) {
    rules.push_back(rule);
    context.notes.names_at.push_back(where);
  } else {
    context.notes.remarks.push_back(where + ": never takes effect, because \"" + before->pattern +
                                    "\" comes before it; put this one first");
  }
}

}  // namespace

const Value& MapAt(MapReader& reader, std::string_view key) {
  const Value* map = reader.Map(key);
  return map != nullptr ? *map : kNothing;
}

void ReadResources(MapReader& top, const Context& context) {
  Notes& notes = context.notes;
  MapReader resources(MapAt(top, "resources"), "resources", notes.problems);
  const PluginFiles files = context.config.plugin_files;
  const Value* gpus = resources.List("gpus");
  if (gpus != nullptr && !gpus->list->empty() && IsIgnored("resources.gpus", files, notes))
    gpus = nullptr;
  if (const Value* list = gpus) {
    context.config.resources.clear();
    for (std::size_t i = 0, n = EntriesOf(*list, resources, "gpus"); i < n; ++i) {
      const std::string where = base::Item("resources.gpus", i);
      if (const auto rule = ReadPattern((*list->list)[i], where, notes))
        AddGpuPattern(*rule, where, context);
    }
  }
  if (const Value* list = resources.List("mig")) {
    std::vector<std::string> differ;
    for (std::size_t i = 0, n = EntriesOf(*list, resources, "mig"); i < n; ++i) {
      const std::string where = base::Item("resources.mig", i);
      const auto rule = ReadPattern((*list->list)[i], where, notes);
      if (rule && rule->name != std::string(kMigPrefix) + rule->pattern)
        differ.push_back(where + ": MIG devices have the name of their profile, so no \"" +
                         rule->pattern + "\" can be named " + rule->name);
    }
    if (files != PluginFiles::kAsNvidia)
      notes.not_yet.insert(notes.not_yet.end(), differ.begin(), differ.end());
    else if (!differ.empty())
      IsIgnored("resources.mig", files, notes);
  }
  resources.Finish();
}

void ReadSharing(MapReader& top, const Context& context) {
  Notes& notes = context.notes;
  const PluginFiles files = context.config.plugin_files;
  MapReader sharing(MapAt(top, "sharing"), "sharing", notes.problems);
  const Value* slices = sharing.Map("timeSlicing");
  const Value* mps = sharing.Map("mps");
  if (sharing.Has("timeSlicing"))
    sharing.Require("timeSlicing");  // without a value, the plugin does not start; with mps, it
                                     // does
  sharing.Finish();
  // The strategy that does not apply is read, too, to report its mistakes, but without its remarks
  // and "not yet" messages.
  std::vector<Placed> rules;
  if (slices != nullptr) {
    const std::size_t not_yet = notes.not_yet.size(), remarks = notes.remarks.size();
    rules = ReadStrategy(*slices, {.key = "timeSlicing", .strategy = ShareStrategy::kTimeSlicing},
                         files, notes);
    if (mps != nullptr) {
      notes.not_yet.resize(not_yet);
      notes.remarks.resize(remarks);
      notes.remarks.emplace_back("sharing.timeSlicing: has no effect with sharing.mps");
    }
  }
  if (mps != nullptr)
    rules = ReadStrategy(*mps, {.key = "mps", .strategy = ShareStrategy::kServer, .single = true},
                         files, notes);
  if (slices == nullptr && mps == nullptr) return;
  context.config.sharing.rules.clear();
  for (const Placed& placed : rules) context.config.sharing.rules.push_back(placed.rule);
  CheckRules(context.config, rules, notes);
}

}  // namespace penstock::api::compat::internal
