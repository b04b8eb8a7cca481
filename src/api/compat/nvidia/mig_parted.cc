#include "api/compat/nvidia/mig_parted.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "base/core/document.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"
#include "base/yaml.h"

namespace penstock::api::compat {

namespace {

using base::MapReader;
using base::Problems;
using base::Value;

/// More than any machine has.
constexpr int kMaxDevices = 4096;
constexpr int kMaxCount = 1'000'000;

/// "0x233010DE" as device and vendor.
std::optional<std::pair<std::uint16_t, std::uint16_t>> ParseIds(std::string_view text) {
  constexpr std::size_t kLongest = std::string_view("0x233010DE").size();
  if (!text.starts_with("0x") || text.size() > kLongest) return std::nullopt;
  const auto number = base::ParseUint(text.substr(2), 16);
  if (!number) return std::nullopt;
  return std::pair(static_cast<std::uint16_t>(*number >> 16),
                   static_cast<std::uint16_t>(*number & 0xffff));
}

class Reader {
 public:
  Reader(Problems& problems, const ProfileNameReader& read_profile)
      : problems_(problems), read_profile_(read_profile) {}

  Layouts Read(const Value& document) {
    Layouts layouts;
    if (document.kind == Value::Kind::kNull) return layouts;
    MapReader top(document, "", problems_);
    top.Require("version");
    if (const auto version = top.String("version"); version && *version != "v1")
      top.Problem("version", "is \"" + *version + "\"; this program reads \"v1\"");
    if (const Value* configs = top.Map("mig-configs")) {
      if (configs->map->empty()) top.Problem("mig-configs", "needs at least one layout");
      for (const auto& entry : *configs->map)
        layouts.layouts.push_back(ReadLayout(entry.key, entry.value));
    } else if (top.Has("mig-configs") && Is(top.Any("mig-configs"), Value::Kind::kNull)) {
      top.Problem("mig-configs", "needs at least one layout");
    }
    top.Finish();
    return layouts;
  }

 private:
  static bool Is(const Value* value, Value::Kind kind) {
    return value != nullptr && value->kind == kind;
  }

  Layout ReadLayout(const std::string& name, const Value& value) {
    Layout layout{.name = name};
    const std::string where = "mig-configs." + name;
    if (value.kind != Value::Kind::kList || value.list->empty()) {
      problems_.Add(value.mark, where + ": is " + std::string(Describe(value.kind)) +
                                    (value.kind == Value::Kind::kList ? " without rules"
                                                                      : ", not a list of rules") +
                                    "; a rule has devices, mig-enabled and mig-devices");
      return layout;
    }
    base::ForEachMap(value, where, problems_, [&](const Value& rule, const std::string& place) {
      layout.rules.push_back(ReadRule(place, rule));
    });
    return layout;
  }

  LayoutRule ReadRule(const std::string& where, const Value& value) {
    LayoutRule rule;
    MapReader reader(value, where, problems_);
    ReadFilter(reader, rule);
    ReadDevices(reader, rule);
    reader.Require("mig-enabled");
    const auto enabled = reader.Bool("mig-enabled");
    rule.partitioned = enabled.value_or(false);
    const Value* parts = reader.Any("mig-devices");
    if (parts != nullptr && parts->kind != Value::Kind::kNull) {
      if (parts->kind == Value::Kind::kMap) {
        ReadParts(reader.Path("mig-devices"), *parts, rule);
      } else {
        reader.Problem("mig-devices", "is " + std::string(Describe(parts->kind)) +
                                          " where a map of profiles and numbers is expected, as in "
                                          "{\"1g.5gb\": 7}");
      }
      if (enabled == false && parts->kind == Value::Kind::kMap && !parts->map->empty())
        reader.Problem("mig-devices", "has parts although mig-enabled is false");
    } else if (enabled == true) {
      problems_.Add(reader.mark("mig-devices"),
                    reader.Path("mig-devices") +
                        ": is missing although mig-enabled is true; {} means no parts");
    }
    reader.Finish();
    return rule;
  }

  void ReadFilter(MapReader& reader, LayoutRule& rule) {
    const Value* filter = reader.Any("device-filter");
    if (filter == nullptr || filter->kind == Value::Kind::kNull) return;
    if (filter->kind == Value::Kind::kString) {
      if (!filter->text.empty()) AddModel(*filter, reader.Path("device-filter"), rule);
      return;
    }
    if (filter->kind != Value::Kind::kList)
      return reader.Problem("device-filter", "is " + std::string(Describe(filter->kind)) +
                                                 " where a string or a list is expected");
    for (std::size_t i = 0; i < filter->list->size(); ++i)
      AddModel((*filter->list)[i], base::Item(reader.Path("device-filter"), i), rule);
  }

  void AddModel(const Value& value, const std::string& where, LayoutRule& rule) {
    if (value.kind != Value::Kind::kString) {
      const bool number = value.kind == Value::Kind::kInt;
      return problems_.Add(value.mark, where + ": is " + std::string(Describe(value.kind)) +
                                           " where a string is expected" +
                                           (number ? "; write it in quotes" : ""));
    }
    const auto model = ParsePciModel(value.text);
    if (!model.ok()) return problems_.Add(value.mark, where + ": " + model.error().message());
    rule.models.push_back(*model);
  }

  void ReadDevices(MapReader& reader, LayoutRule& rule) {
    reader.Require("devices");
    const Value* devices = reader.Any("devices");
    if (devices == nullptr || devices->kind == Value::Kind::kNull) return;
    if (devices->kind == Value::Kind::kString && devices->text == "all") {
      rule.all_devices = true;
      return;
    }
    if (devices->kind != Value::Kind::kList)
      return reader.Problem("devices", "is " +
                                           (devices->kind == Value::Kind::kString
                                                ? "\"" + devices->text + "\""
                                                : std::string(Describe(devices->kind))) +
                                           "; it can be all, or a list of indices, as in [0, 1]");
    std::set<int> indices;
    for (std::size_t i = 0; i < devices->list->size(); ++i) {
      const Value& item = (*devices->list)[i];
      if (item.kind == Value::Kind::kInt && item.integer >= 0 && item.integer < kMaxDevices) {
        indices.insert(static_cast<int>(item.integer));
      } else {
        problems_.Add(item.mark, base::Item(reader.Path("devices"), i) +
                                     ": is no index of a device: indices are numbers from 0");
      }
    }
    rule.devices.assign(indices.begin(), indices.end());
  }

  void ReadParts(const std::string& where, const Value& value, LayoutRule& rule) {
    std::map<std::string, int> counts;
    std::map<std::string, std::string> spelled;
    bool counted = false;
    for (const auto& entry : *value.map) {
      const std::string place = where + "." + entry.key;
      const auto name = read_profile_(entry.key);
      if (!name.ok()) problems_.Add(entry.mark, place + ": " + name.error().message());
      const bool number = entry.value.kind == Value::Kind::kInt && entry.value.integer >= 0 &&
                          entry.value.integer <= kMaxCount;
      if (!number)
        problems_.Add(entry.value.mark, place + ": the number of parts is a number from 0");
      counted |= !number || entry.value.integer > 0;
      if (!name.ok()) continue;
      const auto [other, first] = spelled.emplace(*name, entry.key);
      if (!first)
        problems_.Add(entry.mark,
                      place + ": is the same profile as \"" + other->second + "\" above");
      if (number && entry.value.integer > 0) counts[*name] = static_cast<int>(entry.value.integer);
    }
    if (!value.map->empty() && !counted)
      problems_.Add(value.mark, where + ": all numbers are 0; {} means no parts");
    for (const auto& [profile, count] : counts) rule.parts.push_back({profile, count});
  }

  Problems& problems_;
  const ProfileNameReader& read_profile_;
};

}  // namespace

Result<Layouts> TranslateMigParted(std::string_view text, std::string_view file,
                                   const ProfileNameReader& read_profile) {
  Problems problems{std::string(file)};
  const auto document = base::ParseYamlOrJson(text, problems);
  if (!document.ok()) return document.error();
  Layouts layouts = Reader(problems, read_profile).Read(*document);
  if (!problems.empty()) return problems.ToError();
  return layouts;
}

bool LooksLikeMigParted(std::string_view text) {
  for (const std::string& line : base::Split(text, '\n'))
    if (line.starts_with("mig-configs:") || line.starts_with("\"mig-configs\":")) return true;
  base::Problems problems{"", base::ReadingMode::kLenient};
  const auto document = base::ParseYaml(text, problems);
  return document.ok() && document->Find("mig-configs") != nullptr;
}

std::string WriteMigParted(const Layouts& layouts) {
  using Json = nlohmann::ordered_json;
  Json configs = Json::object();
  for (const Layout& layout : layouts.layouts) {
    Json rules = Json::array();
    for (const LayoutRule& rule : layout.rules) {
      Json written = Json::object();
      for (const PciModel& model : rule.models) written["device-filter"].push_back(ToString(model));
      written["devices"] = rule.all_devices ? Json("all") : Json(rule.devices);
      written["mig-enabled"] = rule.partitioned;
      if (rule.partitioned) {
        Json parts = Json::object();
        for (const LayoutParts& one : rule.parts) parts[one.profile] = one.count;
        written["mig-devices"] = std::move(parts);
      }
      rules.push_back(std::move(written));
    }
    configs[layout.name] = std::move(rules);
  }
  return base::JsonText(Json{{"version", "v1"}, {"mig-configs", std::move(configs)}});
}

Result<PciModel> ParsePciModel(std::string_view text) {
  const auto parts = base::Split(text, ':');
  const auto device = ParseIds(parts.front());
  const auto subsystem = parts.size() == 2 ? ParseIds(parts[1]) : std::nullopt;
  if (!device || parts.size() > 2 || (parts.size() == 2 && !subsystem))
    return Error(Code::kInvalidArgument,
                 "\"" + std::string(text) +
                     "\" is no PCI id: write the ids of device and vendor, which `lspci -nn` shows "
                     "as [10de:2330], as \"0x233010DE\", and those of the subsystem after a colon");
  PciModel model{.vendor = device->second, .device = device->first};
  if (subsystem) model.subsystem = {.vendor = subsystem->second, .device = subsystem->first};
  return model;
}

std::string ToString(const PciModel& model) {
  const auto written = [](std::uint16_t device, std::uint16_t vendor) {
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "0x%04X%04X", device, vendor);
    return std::string(text.data());
  };
  std::string text = written(model.device, model.vendor);
  if (model.subsystem) text += ":" + written(model.subsystem->device, model.subsystem->vendor);
  return text;
}

}  // namespace penstock::api::compat
