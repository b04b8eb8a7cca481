// Tests that the pages of docs/reference about vendors' resources match the tables of fields.
// PENSTOCK_UPDATE_GOLDEN=1 rewrites them.
#include "api/testing/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/compat/testing/field_effects.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"
#include "base/yaml.h"

namespace penstock::api::compat {
namespace {

using internal::FieldType;
using internal::ResourceField;

constexpr std::string_view kAfter =
    "<!-- The tables below are written from the tables of fields: run "
    "build/dev/tests/api_compat_test with PENSTOCK_UPDATE_GOLDEN=1. -->\n";

std::string_view TypeName(FieldType type) {
  switch (type) {
    case FieldType::kMap:
    case FieldType::kOpenMap: return "map";
    case FieldType::kBool: return "boolean";
    case FieldType::kText: return "string";
    case FieldType::kDuration: return "duration";
    case FieldType::kInt: return "integer";
    case FieldType::kNumberOrPercent: return "number or percentage";
    case FieldType::kTexts: return "list of strings";
    case FieldType::kTextMap: return "map of strings";
    case FieldType::kBoolMap: return "map of booleans";
    case FieldType::kEnvironment: return "list of variables";
    case FieldType::kResources: return "requests and limits";
    case FieldType::kTolerations: return "list of tolerations";
    case FieldType::kRelabelings: return "list of relabelings";
    case FieldType::kMaps: return "list of maps";
  }
  return "";
}

std::string Cell(std::string_view text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? "\\|" : std::string(1, c);
  return cell;
}

std::string TypeCell(const ResourceField& field) {
  if (field.words.empty()) return std::string(TypeName(field.type));
  std::vector<std::string> words;
  for (const std::string_view word : field.words)
    words.push_back(word.empty() ? "empty" : "`" + std::string(word) + "`");
  return base::Join(words, ", ");
}

std::string TextCell(const ResourceField& field) {
  const internal::FieldTopic* topic = field.topic;
  if (!field.text.empty() || topic == nullptr) return Cell(field.text);
  if (topic->field == "spec") return "";
  if (!topic->gate.empty() && topic->gate != field.path)
    return "see `" + std::string(topic->gate) + "`";
  return Cell(topic->text);
}

std::string FieldRow(const ResourceField& field) {
  const std::string_view otherwise = field.unset.empty() ? field.schema_default : field.unset;
  return "| `" + field.path + "` | " + TypeCell(field) + " | " +
         (otherwise.empty() ? "" : "`" + std::string(otherwise) + "`") + " | " +
         std::string(internal::ToString(field.topic == nullptr ? FieldFate::kHonoured
                                                               : field.topic->fate)) +
         " | ";
}

/// Where a translated object has the field.
std::string PlacesCell(const EffectTable& table, const ResourceField& field) {
  std::vector<std::string> places;
  for (const std::string& place : EffectOf(table, field).places)
    places.push_back("`" + place + "`");
  return base::Join(places, ", ") + " | ";
}

/// `effects`: of the kind; null: no object of it is translated.
std::string FieldTable(std::string_view title, std::string_view lead,
                       const std::vector<ResourceField>& fields, const EffectTable* effects) {
  std::string text = "\n### " + std::string(title) + "\n\n" + std::string(lead) +
                     "\n\n| field of `spec` | type | default | fate |" +
                     (effects != nullptr ? " in a Penstock object |" : "") +
                     " what it does here |\n|---|---|---|---|---|" +
                     (effects != nullptr ? "---|\n" : "\n");
  for (const ResourceField& field : fields)
    if (field.type != FieldType::kMap)
      text += FieldRow(field) + (effects != nullptr ? PlacesCell(*effects, field) : "") +
              TextCell(field) + " |\n";
  return text;
}

std::string TablesOfNvidia() {
  return FieldTable("ClusterPolicy", "The default is what the absence of the field means.",
                    internal::ClusterPolicyFields(), &ClusterPolicyEffects()) +
         FieldTable("NVIDIADriver",
                    "Each object is a driver of its own, if a ClusterPolicy has "
                    "driver.useNvidiaDriverCRD, or if there is no ClusterPolicy but a Penstock "
                    "object. Which nodes it has, and how it is upgraded: "
                    "[drivers](../drivers.md).",
                    internal::NvidiaDriverFields(), &NvidiaDriverEffects()) +
         FieldTable("GPUCluster",
                    "Devices are not allocated by ResourceClaims yet: use a ClusterPolicy or a "
                    "Penstock object instead.",
                    internal::GpuClusterFields(), nullptr);
}

/// Expects that the page is its own text and these tables.
void ExpectTables(const std::string& path, const std::string& tables) {
  const std::string page = base::ReadSource(path);
  const auto after = page.find(kAfter);
  ASSERT_NE(after, std::string::npos) << path << " lacks the line after which the tables begin";
  const std::string wanted = page.substr(0, after + kAfter.size()) + tables;
  if (std::getenv("PENSTOCK_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(base::SourceFolder() / path) << wanted;
    return;
  }
  EXPECT_TRUE(page == wanted)
      << path
      << " does not match the tables: run this test with PENSTOCK_UPDATE_GOLDEN=1 and review the "
         "difference";
}

TEST(ClusterPolicyReference, IsWhatTheTablesOfFieldsSay) {
  ExpectTables("docs/reference/cluster-policy.md", TablesOfNvidia());
}

TEST(DeviceConfigReference, IsWhatTheTableOfFieldsSays) {
  ExpectTables("docs/reference/device-config.md",
               FieldTable("DeviceConfig", "The default is what the absence of the field means.",
                          internal::DeviceConfigFields(), &DeviceConfigEffects()));
}

TEST(ClusterPolicyReference, HasAnExampleOfAPenstockObject) {
  const auto document = base::ParseYaml(ExampleOf("cluster-policy.md"), "example");
  ASSERT_TRUE(document.ok()) << document.error().message();
  const auto spec =
      ParsePenstock(base::JsonOf<nlohmann::ordered_json>(*document).dump(), "example");
  ASSERT_TRUE(spec.ok()) << spec.error().message();
  EXPECT_EQ(spec->node.telemetry.interval, std::chrono::seconds(5));
}

}  // namespace
}  // namespace penstock::api::compat
