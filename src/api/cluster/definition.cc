// The parts that all definitions have, and the schemas of Kubernetes' own types.
#include "api/cluster/definition.h"

#include <nlohmann/json.hpp>

#include "base/core/json_text.h"

namespace penstock::api::internal {

using Json = nlohmann::ordered_json;

namespace {

constexpr char kOpen[] = "x-kubernetes-preserve-unknown-fields";
constexpr char kIntOrText[] = "x-kubernetes-int-or-string";

/// A condition as metav1.Condition has it.
Json ConditionsSchema() {
  Json condition = SchemaOfType("object");
  condition["required"] = {"lastTransitionTime", "message", "reason", "status", "type"};
  Json& properties = condition["properties"];
  properties["type"] = {{"type", "string"}, {"maxLength", 316}};
  properties["status"] = {{"type", "string"}, {"enum", {"True", "False", "Unknown"}}};
  properties["reason"] = {{"type", "string"}, {"minLength", 1}, {"maxLength", 1024}};
  properties["message"] = {{"type", "string"}, {"maxLength", 32768}};
  properties["lastTransitionTime"] = {{"type", "string"}, {"format", "date-time"}};
  properties["observedGeneration"] = {{"type", "integer"}, {"format", "int64"}, {"minimum", 0}};
  Json list = SchemaOfType("array");
  list["items"] = std::move(condition);
  return list;
}

}  // namespace

Json SchemaOfType(std::string_view type) { return {{"type", type}}; }

Json SchemaOfTexts() { return {{"type", "array"}, {"items", SchemaOfType("string")}}; }

Json SchemaOfMap(std::string_view type) {
  return {{"type", "object"}, {"additionalProperties", SchemaOfType(type)}};
}

Json SchemaOfOpenMap() { return {{"type", "object"}, {kOpen, true}}; }

Json SchemaOfOpenMaps() { return {{"type", "array"}, {"items", SchemaOfOpenMap()}}; }

Json SchemaOfNumberOrText() {
  Json schema = {{kIntOrText, true}};
  schema["anyOf"] = {SchemaOfType("integer"), SchemaOfType("string")};
  return schema;
}

Json SchemaOfQuantity() {
  Json schema = SchemaOfNumberOrText();
  schema["pattern"] =
      R"(^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$)";
  return schema;
}

Json SchemaOfResources() {
  const Json quantities = {{"type", "object"}, {"additionalProperties", SchemaOfQuantity()}};
  Json schema = SchemaOfOpenMap();
  schema["properties"] = {{"limits", quantities}, {"requests", quantities}};
  return schema;
}

Json SchemaOfTolerations() {
  Json list = SchemaOfOpenMaps();
  for (const char* key : {"key", "operator", "value", "effect"})
    list["items"]["properties"][key] = SchemaOfType("string");
  list["items"]["properties"]["tolerationSeconds"] = {{"type", "integer"}, {"format", "int64"}};
  return list;
}

Json StatusSchema(const std::vector<std::string>& states) {
  Json schema = SchemaOfOpenMap();
  schema["description"] = "What the operator reports of the object.";
  schema["required"] = {"state"};
  schema["properties"] = {{"state", {{"type", "string"}, {"enum", states}}},
                          {"namespace", SchemaOfType("string")},
                          {"conditions", ConditionsSchema()}};
  return schema;
}

ResourceDefinition MakeDefinition(const DefinitionNames& names, Json spec, Json status,
                                  const Json& validations) {
  Json schema = SchemaOfType("object");
  schema["description"] = names.description;
  if (!validations.empty()) schema["x-kubernetes-validations"] = validations;
  schema["properties"] = {{"apiVersion", SchemaOfType("string")},
                          {"kind", SchemaOfType("string")},
                          {"metadata", SchemaOfType("object")},
                          {"spec", std::move(spec)},
                          {"status", std::move(status)}};
  Json version = {{"name", names.version}, {"served", true}, {"storage", true}};
  version["subresources"] = {{"status", Json::object()}};
  for (const auto& column : names.columns)
    version["additionalPrinterColumns"].push_back(
        {{"name", column[0]}, {"type", column[1]}, {"jsonPath", column[2]}});
  version["schema"] = {{"openAPIV3Schema", std::move(schema)}};
  const std::string name = std::string(names.plural) + "." + std::string(names.group);
  Json all_names = {{"kind", names.kind},
                    {"listKind", std::string(names.kind) + "List"},
                    {"plural", names.plural},
                    {"singular", names.singular}};
  if (!names.short_names.empty()) all_names["shortNames"] = names.short_names;
  Json versions = Json::array();
  versions.push_back(std::move(version));
  Json definition = {{"apiVersion", "apiextensions.k8s.io/v1"},
                     {"kind", "CustomResourceDefinition"},
                     {"metadata", {{"name", name}}}};
  definition["spec"] = {{"group", names.group},
                        {"names", std::move(all_names)},
                        {"scope", names.namespaced ? "Namespaced" : "Cluster"},
                        {"versions", std::move(versions)}};
  return {name, base::JsonText(definition)};
}

}  // namespace penstock::api::internal
