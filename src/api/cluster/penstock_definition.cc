// The definition of Penstock objects, from the description of their fields.
#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "api/cluster/definition.h"
#include "api/cluster/penstock_descriptions.h"
#include "api/cluster/penstock_fields.h"

namespace penstock::api {

namespace {

using base::Value;

constexpr std::string_view kDrivers = "drivers";
/// What base::ParseDuration reads.
constexpr char kDuration[] = R"(^(([0-9]+\.?[0-9]*|\.[0-9]+)(h|m|s|ms|us|µs|ns))+$)";

/// What the server can refuse before the operator reports it (internal::CheckDriver).
nlohmann::ordered_json RulesOfDriver() {
  nlohmann::ordered_json rules = nlohmann::ordered_json::array();
  rules.push_back(
      {{"rule",
        "!has(self.default) || !self.default || "
        "((!has(self.nodeSelector) || size(self.nodeSelector) == 0) && !has(self.nodeAffinity))"},
       {"message", "a default driver is for all other nodes: it must have no selector"}});
  return rules;
}

std::string_view DescriptionOf(std::string_view path) {
  const bool of_driver = path.starts_with(kDrivers);
  if (of_driver) path.remove_prefix(std::min(path.size(), kDrivers.size() + 3));  // "[]."
  const auto& descriptions = of_driver ? DriverDescriptions() : PenstockDescriptions();
  const auto found = descriptions.find(path);
  return found == descriptions.end() ? "" : found->second;
}

/// Visits the fields of a spec that has its initial values. The schema has no defaults, which would
/// replace what a translated resource says; descriptions have them.
class SchemaVisitor {
 public:
  static constexpr bool kReads = false;

  SchemaVisitor(nlohmann::ordered_json& schema, std::string where)
      : schema_(schema), where_(std::move(where)) {
    schema_ = internal::SchemaOfOpenMap();
  }

  void operator()(std::string_view key, const std::string& value,
                  const base::FieldRules& rules = {}) {
    Put(key, internal::SchemaOfType("string"), rules);
    if (rules.filled) Property(key)["minLength"] = 1;
    if (!value.empty()) Default(key, value);
  }
  void operator()(std::string_view key, bool value, const base::FieldRules& rules = {}) {
    Put(key, internal::SchemaOfType("boolean"), rules);
    if (value) Default(key, "true");
  }
  void operator()(std::string_view key, int value, const base::FieldRules& rules = {}) {
    Put(key, internal::SchemaOfType("integer"), rules);
    Default(key, std::to_string(value));
    Property(key)["minimum"] = rules.least;
    Property(key)["maximum"] = rules.most;
  }
  void operator()(std::string_view key, base::Duration value, const base::FieldRules& rules = {}) {
    nlohmann::ordered_json schema = internal::SchemaOfType("string");
    schema["pattern"] = kDuration;
    Put(key, std::move(schema), rules);
    Default(key, base::FormatDuration(value));
  }
  void operator()(std::string_view key, const std::vector<std::string>&,
                  const base::FieldRules& rules = {}) {
    Put(key, internal::SchemaOfTexts(), rules);
  }
  void operator()(std::string_view key, const std::map<std::string, std::string>&,
                  const base::FieldRules& rules = {}) {
    Put(key, internal::SchemaOfMap("string"), rules);
  }
  template <typename T, std::size_t N>
  void Named(std::string_view key, T, const base::Names<T, N>& names) {
    std::vector<std::string> words;
    for (const auto& [value, name] : names) words.emplace_back(name);
    Word(key, "", words);
  }
  template <typename T>
  void Struct(std::string_view key, const T& value) {
    Put(key, Below(key, value), {});
  }
  template <typename T>
  void Items(std::string_view key, const std::vector<T>&) {
    nlohmann::ordered_json list = internal::SchemaOfType("array");
    list["x-kubernetes-list-type"] = "map";
    list["x-kubernetes-list-map-keys"] = {"name"};
    const T initial;
    list["items"] = Below(std::string(key) + "[]", initial);
    if (key == kDrivers) list["items"]["x-kubernetes-validations"] = RulesOfDriver();
    Put(key, std::move(list), {});
  }
  void Part(std::string_view key, const KubeJson&, Value::Kind kind) {
    const std::string path = where_ + std::string(key);
    Put(key,
        path.ends_with(".tolerations") ? internal::SchemaOfTolerations()
        : path.ends_with(".resources") ? internal::SchemaOfResources()
        : kind == Value::Kind::kList   ? internal::SchemaOfOpenMaps()
                                       : internal::SchemaOfOpenMap(),
        {});
  }
  void Word(std::string_view key, const std::string&, const std::vector<std::string>& words) {
    Put(key, {{"type", "string"}, {"enum", words}}, {});
  }
  void NumberOrPercent(std::string_view key, const std::string&) {
    nlohmann::ordered_json schema = internal::SchemaOfNumberOrText();
    schema["pattern"] = "^([0-9]+%?)?$";
    Put(key, std::move(schema), {});
  }
  void Configuration(std::string_view key, const NodeConfig&) {
    Put(key, internal::SchemaOfOpenMap(), {});
  }

 private:
  nlohmann::ordered_json& Property(std::string_view key) {
    return schema_["properties"][std::string(key)];
  }
  void Put(std::string_view key, nlohmann::ordered_json schema, const base::FieldRules& rules) {
    nlohmann::ordered_json& property = Property(key);
    property["description"] = DescriptionOf(where_ + std::string(key));
    for (auto& [name, part] : schema.items()) property[name] = part;
    if (rules.required || rules.filled) schema_["required"].push_back(std::string(key));
  }
  void Default(std::string_view key, const std::string& value) {
    nlohmann::ordered_json& description = Property(key)["description"];
    description = description.get<std::string>() + " Default: " + value + ".";
  }
  template <typename T>
  nlohmann::ordered_json Below(std::string_view key, const T& value) {
    nlohmann::ordered_json schema;
    SchemaVisitor visitor(schema, where_ + std::string(key) + ".");
    VisitFields(visitor, value);
    return schema;
  }

  nlohmann::ordered_json& schema_;
  std::string where_;
};

}  // namespace

ResourceDefinition PenstockDefinition() {
  nlohmann::ordered_json spec;
  SchemaVisitor visitor(spec, "");
  const PenstockSpec initial;
  VisitFields(visitor, initial);
  spec["description"] = "What is wanted of the accelerators of the cluster.";
  return internal::MakeDefinition(
      {.group = "penstock.io",
       .version = "v1alpha1",
       .kind = "Penstock",
       .plural = "penstocks",
       .singular = "penstock",
       .columns = {{"Status", "string", ".status.state"},
                   {"Age", "date", ".metadata.creationTimestamp"}},
       .description = "The accelerators of a cluster, and the agents that serve them."},
      std::move(spec), internal::StatusSchema({"ignored", "ready", "notReady"}),
      nlohmann::ordered_json::array());
}

}  // namespace penstock::api
