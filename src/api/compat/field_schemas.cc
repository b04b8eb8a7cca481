#include "api/compat/field_schemas.h"

#include <cctype>

#include <nlohmann/json.hpp>

#include "api/cluster/definition.h"
#include "base/core/strings.h"

namespace penstock::api::compat::internal {

using ApiJson = nlohmann::ordered_json;
using namespace api::internal;

namespace {

constexpr char kDurationPattern[] =
    "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$";

ApiJson EnvironmentSchema() {
  ApiJson list = SchemaOfOpenMaps();
  list["items"]["required"] = {"name"};
  list["items"]["properties"] = {{"name", SchemaOfType("string")},
                                 {"value", SchemaOfType("string")}};
  return list;
}

/// Actions are Prometheus', in lower case or capitalized.
ApiJson RelabelingsSchema() {
  ApiJson list = SchemaOfOpenMaps();
  ApiJson& properties = list["items"]["properties"];
  for (const char* key : {"regex", "replacement", "separator", "targetLabel"})
    properties[key] = SchemaOfType("string");
  properties["sourceLabels"] = SchemaOfTexts();
  properties["modulus"] = {{"type", "integer"}, {"format", "int64"}, {"minimum", 0}};
  properties["action"] = {{"type", "string"}, {"default", "replace"}};
  properties["action"]["enum"] = {"replace",   "Replace",   "keep",      "Keep",      "drop",
                                  "Drop",      "hashmod",   "HashMod",   "labelmap",  "LabelMap",
                                  "labeldrop", "LabelDrop", "labelkeep", "LabelKeep", "lowercase",
                                  "Lowercase", "uppercase", "Uppercase", "keepequal", "KeepEqual",
                                  "dropequal", "DropEqual"};
  return list;
}

/// May be null, which means not set: server-side apply leaves null where it takes the last field of
/// a map away.
ApiJson SectionSchema() {
  ApiJson schema = SchemaOfOpenMap();
  schema["nullable"] = true;
  return schema;
}

ApiJson SchemaOf(FieldType type) {
  switch (type) {
    case FieldType::kMap: return SectionSchema();
    case FieldType::kOpenMap: return SchemaOfOpenMap();
    case FieldType::kBool: return SchemaOfType("boolean");
    case FieldType::kText: return SchemaOfType("string");
    case FieldType::kDuration: return {{"type", "string"}, {"pattern", kDurationPattern}};
    case FieldType::kInt: return SchemaOfType("integer");
    case FieldType::kNumberOrPercent: return SchemaOfNumberOrText();
    case FieldType::kTexts: return SchemaOfTexts();
    case FieldType::kTextMap: return SchemaOfMap("string");
    case FieldType::kBoolMap: return SchemaOfMap("boolean");
    case FieldType::kEnvironment: return EnvironmentSchema();
    case FieldType::kResources: return SchemaOfResources();
    case FieldType::kTolerations: return SchemaOfTolerations();
    case FieldType::kRelabelings: return RelabelingsSchema();
    case FieldType::kMaps: return SchemaOfOpenMaps();
  }
  return {};
}

ApiJson DefaultIn(const ResourceField& field) {
  if (field.type == FieldType::kBool) return field.schema_default == "true";
  if (field.type == FieldType::kInt) return base::ParseInt(field.schema_default).value_or(0);
  return field.schema_default;
}

/// What many fields have in common is said once, at the field or the map that decides.
std::string DescriptionOf(const ResourceField& field) {
  if (field.topic == nullptr) return std::string(field.text);
  std::string fate(ToString(field.topic->fate));
  fate.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(fate.front())));
  if (!field.text.empty()) return fate + ". " + std::string(field.text);
  if (field.topic->field == "spec") return fate + ".";
  if (!field.topic->gate.empty() && field.topic->gate != field.path)
    return fate + "; see " + std::string(field.topic->gate) + ".";
  return fate + ". " + std::string(field.topic->text);
}

ApiJson SchemaOfField(const ResourceField& field) {
  ApiJson schema;
  if (const std::string text = DescriptionOf(field); !text.empty()) schema["description"] = text;
  const ApiJson type = SchemaOf(field.type);
  for (const auto& [key, value] : type.items()) schema[key] = value;
  if (!field.schema_default.empty()) schema["default"] = DefaultIn(field);
  if (!field.words.empty()) schema["enum"] = field.words;
  if (!field.pattern.empty()) schema["pattern"] = field.pattern;
  if (field.least) schema["minimum"] = *field.least;
  if (field.most) schema["maximum"] = *field.most;
  return schema;
}

}  // namespace

ApiJson SpecSchema(std::span<const ResourceField> fields) {
  ApiJson spec = SchemaOfOpenMap();
  for (const ResourceField& field : fields) {
    ApiJson* at = &spec;
    const std::vector<std::string> steps = base::Split(field.path, '.');
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) at = &(*at)["properties"][steps[i]];
    if (field.required) (*at)["required"].push_back(steps.back());
    const ApiJson schema = SchemaOfField(field);
    for (const auto& [key, value] : schema.items()) (*at)["properties"][steps.back()][key] = value;
  }
  return spec;
}

}  // namespace penstock::api::compat::internal
