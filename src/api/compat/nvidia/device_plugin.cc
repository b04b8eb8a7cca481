// Translates the device plugin's file, flags and environment to a NodeConfig: reads each setting by
// its type; device_plugin_settings.cc determines its effect.
#include "api/compat/nvidia/device_plugin.h"

#include <algorithm>
#include <array>
#include <utility>

#include "api/compat/nvidia/device_plugin_reader.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"
#include "base/yaml.h"

namespace penstock::api::compat {

namespace {

using base::MapReader;
using base::Value;
using internal::ApplySetting;
using internal::Context;
using internal::GivenSetting;
using internal::Kind;
using internal::KindOf;
using internal::MapAt;
using internal::Notes;

std::vector<std::string> SplitList(const std::string& text) {
  std::vector<std::string> items;
  for (const std::string& item : base::Split(text, ','))
    if (const auto trimmed = base::Trim(item); !trimmed.empty()) items.emplace_back(trimmed);
  return items;
}

/// Go's strconv.ParseBool.
std::optional<bool> ParseBool(std::string_view text) {
  static constexpr std::array<std::string_view, 6> kTrue = {"1", "t", "T", "TRUE", "true", "True"};
  static constexpr std::array<std::string_view, 6> kFalse = {"0",     "f",     "F",
                                                             "FALSE", "false", "False"};
  if (std::ranges::find(kTrue, text) != kTrue.end()) return true;
  if (std::ranges::find(kFalse, text) != kFalse.end()) return false;
  return std::nullopt;
}

base::Status CheckDuration(const std::string& text) {
  if (text == "infinite") return {};
  const auto parsed = base::ParseDuration(text);
  return parsed.ok() ? base::Status() : base::Status(parsed.error());
}

/// Reads a string, or a list of strings and numbers.
std::vector<std::string> ReadList(const Value& value, const GivenSetting& given,
                                  const Context& context) {
  if (value.kind == Value::Kind::kString) return SplitList(value.text);
  std::vector<std::string> items;
  if (value.kind != Value::Kind::kList) {
    context.Problem(
        given, "is " + std::string(Describe(value.kind)) + " where a string or a list is expected");
    return items;
  }
  for (const Value& item : *value.list) {
    if (item.kind == Value::Kind::kString || item.kind == Value::Kind::kInt) {
      items.push_back(item.text);
    } else {
      context.Problem(
          {.name = given.name, .in_file = true, .mark = item.mark},
          "an item is " + std::string(Describe(item.kind)) + " where a string is expected");
    }
  }
  return items;
}

/// Takes one key out of its map. Returns false if the key is absent or wrong; a wrong key is a
/// problem.
bool ReadKey(MapReader& reader, std::string_view key, Kind kind, const Context& context,
             GivenSetting& given) {
  const Value* value = kind == Kind::kList || kind == Kind::kDuration ? reader.Any(key) : nullptr;
  if (value != nullptr && value->kind == Value::Kind::kNull) return false;
  if (kind == Kind::kList) {
    if (value == nullptr) return false;
    const std::size_t before = context.notes.problems.size();
    given.list = ReadList(*value, given, context);
    return context.notes.problems.size() == before;
  }
  if (kind == Kind::kDuration) {
    if (value == nullptr) return false;
    const bool number = value->kind == Value::Kind::kInt ||
                        value->kind == Value::Kind::kFloat;  // nanoseconds, as in JSON
    given.text =
        number
            ? std::to_string(static_cast<std::int64_t>(std::clamp(value->number, 0.0, 1e18))) + "ns"
            : value->text;
    const base::Status read = CheckDuration(given.text);
    if (!read.ok()) reader.Problem(key, read.error().message() + ", or \"infinite\"");
    return read.ok();
  }
  if (kind == Kind::kBool) {
    const auto on = reader.Bool(key);
    given.on = on.value_or(false);
    return on.has_value();
  }
  auto text = reader.String(key);
  if (!text) return false;
  given.text = *std::move(text);
  return true;
}

/// Reads the keys of one map ("flags.plugin") in the order of the table.
void ReadSection(MapReader& reader, std::string_view section, const Context& context) {
  for (const PluginOption& option : PluginOptions()) {
    const auto dot = option.key.rfind('.');
    if (dot == std::string_view::npos || option.key.substr(0, dot) != section) continue;
    const std::string_view leaf = option.key.substr(dot + 1);
    GivenSetting given{.name = std::string(option.key), .in_file = true, .mark = reader.mark(leaf)};
    if (ReadKey(reader, leaf, *KindOf(NameOf(option)), context, given))
      ApplySetting(context, NameOf(option), given);
  }
}

/// Returns the section to which a misplaced key belongs, because users often nest keys wrongly.
/// Empty for a key that no section has.
std::string HomeOf(std::string_view leaf) {
  static constexpr std::array<std::string_view, 9> kOthers = {
      "sharing.timeSlicing",
      "sharing.mps",
      "sharing.timeSlicing.renameByDefault",
      "sharing.timeSlicing.failRequestsGreaterThanOne",
      "sharing.timeSlicing.resources",
      "flags.plugin",
      "flags.gfd",
      "resources.gpus",
      "resources.mig"};
  const auto ends = [&](std::string_view key) { return key.substr(key.rfind('.') + 1) == leaf; };
  for (const PluginOption& option : PluginOptions())
    if (!option.key.empty() && ends(option.key)) return std::string(option.key);
  const auto other = std::ranges::find_if(kOthers, ends);
  return other == kOthers.end() ? "" : std::string(*other);
}

/// Ends a section: reports unknown keys as problems. `own` contains the section's keys that are not
/// in the table.
void Finish(MapReader& reader, const Value& map, const std::vector<std::string_view>& own,
            const Context& context) {
  for (const auto& entry : map.map ? *map.map : Value::Map()) {
    if (std::ranges::find(own, entry.key) != own.end()) continue;
    const std::string home = HomeOf(entry.key), here = reader.Path(entry.key);
    const bool known = std::ranges::any_of(PluginOptions(),
                                           [&](const auto& option) { return option.key == here; });
    if (home.empty() || known) continue;
    (void)reader.Any(entry.key);
    context.notes.problems.Tolerate(
        entry.mark, here + ": belongs here: " + home,
        here + ": is ignored here, as by NVIDIA's plugin; it counts as " + home);
  }
  reader.Finish();
}

void ReadFile(const Value& document, const Context& context) {
  Notes& notes = context.notes;
  MapReader top(document, "", notes.problems);
  if (const auto version = top.String("version"); version && !version->empty() && *version != "v1")
    top.Problem("version", "is \"" + *version + "\"; this program reads \"v1\"");
  const Value& flags_map = MapAt(top, "flags");
  MapReader flags(flags_map, "flags", notes.problems);
  ReadSection(flags, "flags", context);
  for (const char* part : {"plugin", "gfd"}) {
    const std::string section = std::string("flags.") + part;
    const Value& map = MapAt(flags, part);
    MapReader reader(map, section, notes.problems);
    ReadSection(reader, section, context);
    Finish(reader, map, {}, context);
  }
  Finish(flags, flags_map, {"plugin", "gfd"}, context);
  internal::ReadResources(top, context);
  internal::ReadSharing(top, context);
  const Value& imex_map = MapAt(top, "imex");
  MapReader imex(imex_map, "imex", notes.problems);
  ReadSection(imex, "imex", context);
  Finish(imex, imex_map, {}, context);
  Finish(top, document, {"version", "flags", "resources", "sharing", "imex"}, context);
}

void TakeGiven(const Given& given, const Context& context) {
  GivenSetting setting{.name = given.where, .text = given.value};
  const auto kind = KindOf(given.flag);
  if (!kind) return context.Problem(setting, "is not a setting of the device plugin");
  switch (*kind) {
    case Kind::kBool:
      if (const auto on = ParseBool(given.value)) {
        setting.on = *on;
        break;
      }
      return context.Problem(setting, "\"" + given.value + "\" is none of true, false");
    case Kind::kList: setting.list = SplitList(given.value); break;
    case Kind::kDuration:
      if (const base::Status read = CheckDuration(given.value); !read.ok())
        return context.Problem(setting, read.error().message());
      break;
    default: break;
  }
  ApplySetting(context, given.flag, setting);
}

/// Whether a section is Penstock's: both kinds of document have sections of this name.
bool IsOurs(const Value& document, std::string_view section,
            std::initializer_list<std::string_view> keys) {
  const Value* map = document.Find(section);
  return map != nullptr && std::ranges::any_of(keys, [map](std::string_view key) {
           return map->Find(key) != nullptr;
         });
}

/// The exporter's version has always been a number; a file without a version is recognized by its
/// other keys.
bool IsExporters(const Value& document) {
  const Value* version = document.Find("version");
  for (const char* key : {"flags", "resources", "sharing", "imex"})
    if (document.Find(key) != nullptr) return false;
  if (version != nullptr) return version->kind == Value::Kind::kInt;
  return document.Find("metrics") != nullptr || document.Find("collection") != nullptr ||
         document.Find("collections") != nullptr;
}

}  // namespace

std::string_view NameOf(const PluginOption& option) {
  return option.flags.empty() ? option.environment.front() : option.flags.front();
}

Document Recognise(std::string_view text) {
  static constexpr std::array<std::string_view, 15> kOurs = {
      "apiVersion",   "kind",       "node", "paths",     "allocators",
      "doors",        "health",     "http", "labels",    "cluster",
      "devicePlugin", "containers", "cdi",  "telemetry", "usage"};
  static constexpr std::array<std::string_view, 5> kPlugins = {"version", "flags", "resources",
                                                               "sharing", "imex"};
  base::Problems unread{"", base::ReadingMode::kLenient};
  const auto document = base::ParseYamlOrJson(text, unread);
  if (document.ok() && document->map) {
    const auto count = [&](const auto& keys) {
      return std::ranges::count_if(
          keys, [&](std::string_view key) { return document->Find(key) != nullptr; });
    };
    if (document->Find("apiVersion") != nullptr || document->Find("kind") != nullptr)
      return Document::kNodeConfig;
    if (IsExporters(*document)) return Document::kExporter;
    if (IsOurs(*document, "sharing", {"rules", "policy"}) ||
        IsOurs(*document, "resources", {"names", "perModel"}))
      return Document::kNodeConfig;
    return count(kOurs) > count(kPlugins) ? Document::kNodeConfig : Document::kDevicePlugin;
  }
  // The document cannot be parsed: decide by the first words of its lines.
  return ("\n" + std::string(text)).find("\napiVersion:") != std::string::npos
             ? Document::kNodeConfig
             : Document::kDevicePlugin;
}

base::Result<Translation> TranslateDevicePlugin(std::string_view text, std::string_view file,
                                                const std::vector<Given>& given,
                                                const NodeConfig& base, base::ReadingMode reading) {
  base::Problems problems{std::string(file), reading};
  Notes notes{problems};
  Translation translation{.config = base};
  const Context context{translation.config, notes};
  if (const auto document = base::ParseYamlOrJson(text, problems); document.ok())
    ReadFile(*document, context);
  for (const Given& one : given) TakeGiven(one, context);
  internal::ApplyXids(context);
  internal::ApplyMps(context);
  internal::ApplyImex(context);
  std::vector<std::string> errors;
  if (!problems.empty()) errors.push_back(problems.ToError().message());
  errors.insert(errors.end(), notes.given.begin(), notes.given.end());
  if (!errors.empty()) return base::Error(base::Code::kInvalidArgument, base::Join(errors, "\n"));
  translation.not_yet = std::move(notes.not_yet);
  translation.remarks = problems.Remarks();
  translation.remarks.insert(translation.remarks.end(), notes.remarks.begin(), notes.remarks.end());
  return translation;
}

}  // namespace penstock::api::compat
