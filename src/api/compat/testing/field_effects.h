// What each field of a vendor's resource changes of a Penstock object, found by translating the
// resource with the field and without it. For tests only.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/compat/amd/device_config.h"
#include "api/compat/amd/device_config_fields.h"
#include "api/compat/nvidia/cluster_policy.h"
#include "api/compat/nvidia/nvidia_driver.h"
#include "api/compat/nvidia/operand_fields.h"

namespace penstock::api::compat {

/// What becomes of an object.
struct ObjectOutcome {
  nlohmann::json spec;  ///< of a Penstock object
  std::vector<FieldAnswer> answers;
};

/// Fields that take effect only beside others. A map around a field is set in any case, so that the
/// definition's defaults apply.
struct NeededFields {
  std::string_view fields;  ///< one, or with a '.' at the end all below it
  nlohmann::json spec;      ///< what is set besides
};

/// A kind of resource, with what its table of fields does not say.
struct EffectTable {
  std::vector<internal::ResourceField> fields;
  std::vector<NeededFields> needed;
  /// Values that ask for something, of fields whose type does not say which ones do.
  std::map<std::string, nlohmann::json> values;
  ObjectOutcome (*translate)(const nlohmann::json& spec) = nullptr;
};

/// What one field does.
struct FieldEffect {
  std::vector<std::string> places;   ///< of a Penstock object that differ: "agent.labels"
  std::vector<FieldAnswer> answers;  ///< that there are only with the field
};

namespace effects {

using internal::FieldType;
using internal::ResourceField;
using nlohmann::json;

inline json SpecOf(const PenstockSpec& spec) { return json::parse(ToJson(spec)); }

inline std::string ObjectWith(const char* version, const char* kind, const json& spec) {
  return json{
      {"apiVersion", version}, {"kind", kind}, {"metadata", {{"name", "changed"}}}, {"spec", spec}}
      .dump();
}

template <typename Translation>
bool IsTranslated(const Translation& translation, const json& spec) {
  EXPECT_TRUE(translation.ok()) << spec << ": " << translation.error().message();
  return translation.ok();
}

inline ObjectOutcome OfClusterPolicy(const json& spec) {
  const auto policy = TranslateClusterPolicy(ObjectWith("nvidia.com/v1", "ClusterPolicy", spec));
  if (!IsTranslated(policy, spec)) return {};
  return {SpecOf(policy->spec), policy->answers};
}

inline ObjectOutcome OfNvidiaDriver(const json& spec) {
  const auto object =
      TranslateNvidiaDriver(ObjectWith("nvidia.com/v1alpha1", "NVIDIADriver", spec));
  if (!IsTranslated(object, spec)) return {};
  PenstockSpec around;
  around.drivers = {object->driver};
  return {SpecOf(around), object->answers};
}

inline ObjectOutcome OfDeviceConfig(const json& spec) {
  const auto config =
      TranslateDeviceConfig(ObjectWith("amd.com/v1alpha1", "DeviceConfig", spec), nullptr);
  if (!IsTranslated(config, spec)) return {};
  return {SpecOf(config->spec), config->answers};
}

inline json VariableOf(const char* name, const char* value) {
  return json::array({{{"name", name}, {"value", value}}});
}

inline json& At(json& spec, std::string path) {
  std::ranges::replace(path, '.', '/');
  return spec[json::json_pointer("/" + path)];
}

/// A word that is neither the definition's default nor what a chart sets anyway.
inline json TextFor(const ResourceField& field) {
  for (const std::string_view word : field.words)
    if (word != field.schema_default && std::ranges::find(field.usual, word) == field.usual.end())
      return word;
  return field.path.ends_with("magePullPolicy") ? "Never" : "changed";
}

/// A value that asks for something.
inline json ValueFor(const EffectTable& table, const ResourceField& field) {
  if (const auto known = table.values.find(field.path); known != table.values.end())
    return known->second;
  const auto otherwise = internal::DefaultOf(field);
  switch (field.type) {
    case FieldType::kBool: return !(otherwise && otherwise->boolean);
    case FieldType::kInt: return field.least.value_or(0) + 7;
    case FieldType::kNumberOrPercent: return 7;
    case FieldType::kDuration: return "7s";
    case FieldType::kTexts: return {"changed"};
    case FieldType::kTextMap: return {{"changed", "a"}};
    case FieldType::kBoolMap: return {{"changed", true}};
    case FieldType::kEnvironment: return VariableOf("CHANGED", "a");
    case FieldType::kResources: return {{"limits", {{"cpu", "1"}}}};
    case FieldType::kTolerations: return json::array({{{"key", "changed"}}});
    case FieldType::kRelabelings: return json::array({{{"action", "drop"}}});
    case FieldType::kMaps: return json::array({{{"name", "changed"}}});
    case FieldType::kOpenMap: return {{"runAsUser", 7}};
    default: return TextFor(field);
  }
}

inline bool IsGate(const ResourceField& field) {
  return field.topic != nullptr && field.topic->gate == field.path;
}

/// What an object without the field has around it.
inline json BaseFor(const EffectTable& table, const ResourceField& field) {
  json base = json::object();
  for (const NeededFields& needed : table.needed)
    if (needed.fields == field.path || needed.fields.empty() ||
        (needed.fields.ends_with('.') && field.path.starts_with(needed.fields)))
      base.merge_patch(needed.spec);
  if (field.topic != nullptr && !field.topic->gate.empty())
    At(base, std::string(field.topic->gate)) = true;
  if (IsGate(field)) {
    At(base, field.path) = false;
  } else if (field.path.find('.') != std::string::npos) {
    At(base, field.path) = nullptr;
  }
  return base;
}

using Steps = std::vector<std::string>;

/// Where two documents differ. What is only in one of them counts as a whole, unless it is a map or
/// a list of one.
inline void AddDifferences(const json& one, const json& other, const Steps& at,
                           std::vector<Steps>& found) {
  if (one == other) return;
  const auto fits = [](const json& value, const json& beside) {
    return value.type() == beside.type() || (value.is_null() && beside.size() == 1);
  };
  const json& shape = one.is_null() ? other : one;
  if (!shape.is_structured() || !(fits(one, other) || fits(other, one))) return found.push_back(at);
  const auto below = [&](const std::string& step, const json& left, const json& right) {
    Steps next = at;
    next.push_back(step);
    AddDifferences(left, right, next, found);
  };
  if (shape.is_object()) {
    std::set<std::string> keys;
    for (const json* document : {&one, &other})
      if (document->is_object())
        for (const auto& [key, value] : document->items()) keys.insert(key);
    const auto in = [](const json& map, const std::string& key) {
      return map.is_object() && map.contains(key) ? map.at(key) : json();
    };
    for (const std::string& key : keys) below(key, in(one, key), in(other, key));
    return;
  }
  for (std::size_t i = 0; i < std::max(one.size(), other.size()); ++i)
    below(std::to_string(i), i < one.size() ? one[i] : json(),
          i < other.size() ? other[i] : json());
}

inline void AddKeys(const json& value, std::set<std::string>& keys) {
  if (!value.is_structured()) return;
  for (const auto& [key, item] : value.items()) {
    if (value.is_object()) keys.insert(key);
    AddKeys(item, keys);
  }
}

/// "services[].monitorLabels", without what stems from the value of the field.
inline std::string NameOfPlace(const Steps& steps, const json& value) {
  std::set<std::string> own;
  AddKeys(value, own);
  std::string name;
  for (const std::string& step : steps) {
    if (own.contains(step)) break;
    const bool index = step.find_first_not_of("0123456789") == std::string::npos;
    name += index ? "[]" : (name.empty() ? "" : ".") + step;
  }
  while (name.ends_with("[]")) name.resize(name.size() - 2);
  return name;
}

}  // namespace effects

/// A field of `table`, which is no map of fields.
inline FieldEffect EffectOf(const EffectTable& table, const internal::ResourceField& field) {
  const nlohmann::json value =
      effects::IsGate(field) ? nlohmann::json(true) : effects::ValueFor(table, field);
  nlohmann::json with = effects::BaseFor(table, field);
  const ObjectOutcome before = table.translate(with);
  effects::At(with, field.path) = value;
  const ObjectOutcome after = table.translate(with);
  std::vector<effects::Steps> differences;
  effects::AddDifferences(before.spec, after.spec, {}, differences);
  std::set<std::string> places;
  for (const effects::Steps& steps : differences) places.insert(effects::NameOfPlace(steps, value));
  FieldEffect effect{{places.begin(), places.end()}, {}};
  for (const FieldAnswer& answer : after.answers)
    if (std::ranges::find(before.answers, answer) == before.answers.end())
      effect.answers.push_back(answer);
  return effect;
}

inline const EffectTable& ClusterPolicyEffects() {
  using effects::VariableOf;
  static const EffectTable table = {
      .fields = internal::ClusterPolicyFields(),
      .needed = {{"driver.", {{"driver", {{"version", "580"}}}}},
                 {"driver.rdma.useHostMofed", {{"driver", {{"rdma", {{"enabled", true}}}}}}},
                 {"dcgmExporter.serviceMonitor.",
                  {{"dcgmExporter", {{"serviceMonitor", {{"enabled", true}}}}}}},
                 {"dcgmExporter.podLabelAllowlistRegex",
                  {{"dcgmExporter", {{"enablePodLabels", true}}}}},
                 {"dcgmExporter.hpcJobMapping.directory",
                  {{"dcgmExporter", {{"hpcJobMapping", {{"enabled", true}}}}}}}},
      .values = {{"hostPaths.driverInstallDir", "/changed"},
                 {"hostPaths.kubeletRootDir", "/changed"},
                 {"driver.args", {"init", "changed"}},  // in place of all, of which it is the first
                 {"toolkit.env", VariableOf("CONTAINERD_SOCKET", "/changed")},
                 {"toolkit.installDir", "/changed"},
                 {"devicePlugin.env", VariableOf("DEVICE_ID_STRATEGY", "index")},
                 {"devicePlugin.args", {"--device-id-strategy=index"}},
                 {"devicePlugin.mps.root", "/changed"},
                 {"gfd.env", VariableOf("GFD_NO_TIMESTAMP", "true")},
                 {"gfd.args", {"--no-timestamp"}},
                 {"dcgmExporter.env", VariableOf("DCGM_EXPORTER_INTERVAL", "7000")},
                 {"dcgmExporter.args", {"--collect-interval=7000"}},
                 {"dcgmExporter.service.type", "NodePort"},
                 {"dcgmExporter.service.internalTrafficPolicy", "Local"},
                 {"dcgmExporter.hpcJobMapping.directory", "/changed"}},
      .translate = effects::OfClusterPolicy};
  return table;
}

inline const EffectTable& NvidiaDriverEffects() {
  using nlohmann::json;
  static const json exists = json::array(
      {{{"matchExpressions", json::array({{{"key", "changed"}, {"operator", "Exists"}}})}}});
  static const EffectTable table = {
      .fields = internal::NvidiaDriverFields(),
      .needed = {{"", {{"version", "580"}}},  // there is none without it
                 {"rdma.useHostMofed", {{"rdma", {{"enabled", true}}}}}},
      .values = {{"nodeAffinity",
                  {{"requiredDuringSchedulingIgnoredDuringExecution",
                    {{"nodeSelectorTerms", exists}}}}}},
      .translate = effects::OfNvidiaDriver};
  return table;
}

inline const EffectTable& DeviceConfigEffects() {
  static const EffectTable table = {
      .fields = internal::DeviceConfigFields(),
      .needed = {{"", {{"driver", {{"enable", false}}}}},
                 {"metricsExporter.", {{"metricsExporter", {{"enable", true}}}}},
                 {"metricsExporter.nodePort", {{"metricsExporter", {{"serviceType", "NodePort"}}}}},
                 {"configManager.", {{"configManager", {{"enable", true}}}}}},
      .values = {{"devicePlugin.devicePluginArguments", {{"resource_naming_strategy", "mixed"}}},
                 {"devicePlugin.nodeLabellerArguments", {"firmware"}},
                 {"devicePlugin.upgradePolicy.upgradeStrategy", "OnDelete"},
                 {"devicePlugin.kubeletSocketPath", "/changed/device-plugins"},
                 {"metricsExporter.podResourceAPISocketPath", "/changed/pod-resources"}},
      .translate = effects::OfDeviceConfig};
  return table;
}

}  // namespace penstock::api::compat
