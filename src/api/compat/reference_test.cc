// Tests that the pages of docs/reference about vendors' resources match the tables of fields.
// PENSTOCK_UPDATE_GOLDEN=1 rewrites them.
#include "api/testing/reference.h"

#include <algorithm>
#include <filesystem>
#include <map>

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

std::string FateCell(const ResourceField& field) {
  std::string fate(
      internal::ToString(field.topic == nullptr ? FieldFate::kHonoured : field.topic->fate));
  for (const std::string_view word : field.unserved)
    fate +=
        ", `" + std::string(word) + "` " + std::string(internal::ToString(FieldFate::kNotServed));
  return fate;
}

std::string FieldRow(const ResourceField& field) {
  const std::string_view otherwise = field.unset.empty() ? field.schema_default : field.unset;
  return "| `" + field.path + "` | " + TypeCell(field) + " | " +
         (otherwise.empty() ? "" : "`" + std::string(otherwise) + "`") + " | " + FateCell(field) +
         " | ";
}

/// A row of field-tests.tsv.
struct TestsOfFields {
  std::string kind, field;
  std::vector<std::string> tests;
};

const std::vector<TestsOfFields>& AllTestsOfFields() {
  static const std::vector<TestsOfFields> rows = [] {
    std::vector<TestsOfFields> read;
    for (const std::string& line :
         base::Split(base::ReadSource("src/api/compat/testdata/field-tests.tsv"), '\n')) {
      if (line.empty() || line.starts_with('#')) continue;
      std::vector<std::string> cells = base::Split(line, '\t');
      EXPECT_EQ(cells.size(), 3u) << line;
      cells.resize(3);
      std::vector<std::string> tests = base::Split(cells[2], ',');
      for (std::string& test : tests) test = std::string(base::Trim(test));
      read.push_back({cells[0], cells[1], std::move(tests)});
    }
    return read;
  }();
  return rows;
}

/// The row of the field itself, or that of the longest path above it.
const TestsOfFields* RowOf(std::string_view kind, const ResourceField& field) {
  const TestsOfFields* best = nullptr;
  for (const TestsOfFields& row : AllTestsOfFields()) {
    if (row.kind != kind) continue;
    if (row.field == field.path) return &row;
    const bool above =
        row.field.ends_with('.') && field.topic == nullptr && field.path.starts_with(row.field);
    if (above && (best == nullptr || row.field.size() > best->field.size())) best = &row;
  }
  return best;
}

/// The tests of one field; without any of its own that of all fields of its kind.
std::string TestCell(std::string_view kind, const ResourceField& field) {
  const TestsOfFields* row = RowOf(kind, field);
  if (row == nullptr) return "`FieldEffects` | ";
  std::vector<std::string> names;
  for (const std::string& test : row->tests)
    names.push_back("`" + test.substr(test.find_last_of('/') + 1) + "`");
  return base::Join(names, ", ") + " | ";
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
                     (effects != nullptr ? " in a Penstock object | test |" : "") +
                     " what it does here |\n|---|---|---|---|---|" +
                     (effects != nullptr ? "---|---|\n" : "\n");
  for (const ResourceField& field : fields)
    if (field.type != FieldType::kMap)
      text += FieldRow(field) +
              (effects != nullptr ? PlacesCell(*effects, field) + TestCell(title, field) : "") +
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

/// The text without the ends of lines and what is after them.
std::string OnOneLine(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n';
    if (!blank || !line.ends_with(' ')) line += blank ? ' ' : c;
  }
  return line;
}

/// All tests in C++, as "(Suite, Name)".
std::string TestsInSource() {
  std::string all;
  const std::filesystem::path folder = base::SourceFolder();
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder / "src"))
    if (file.path().string().ends_with("_test.cc"))
      all += OnOneLine(base::ReadSource(file.path().lexically_relative(folder).string()));
  return all;
}

TEST(FieldReference, EachTestThatIsNamedExists) {
  const std::string source = TestsInSource();
  for (const TestsOfFields& row : AllTestsOfFields())
    for (const std::string& test : row.tests) {
      const auto in_file = test.find("::");
      if (in_file != std::string::npos) {
        EXPECT_NE(base::ReadSource("tests/" + test.substr(0, in_file))
                      .find("\ndef " + test.substr(in_file + 2) + "("),
                  std::string::npos)
            << test;
        continue;
      }
      const auto dot = test.find('.');
      EXPECT_NE(source.find("(" + test.substr(0, dot) + ", " + test.substr(dot + 1) + ")"),
                std::string::npos)
          << test;
    }
}

TEST(FieldReference, EachRowOfTestsIsOfFieldsOfItsKind) {
  const std::map<std::string, std::vector<ResourceField>> kinds = {
      {"ClusterPolicy", internal::ClusterPolicyFields()},
      {"NVIDIADriver", internal::NvidiaDriverFields()},
      {"DeviceConfig", internal::DeviceConfigFields()}};
  for (const TestsOfFields& row : AllTestsOfFields()) {
    ASSERT_TRUE(kinds.contains(row.kind)) << row.kind;
    EXPECT_TRUE(std::ranges::any_of(
        kinds.at(row.kind),
        [&](const ResourceField& field) { return RowOf(row.kind, field) == &row; }))
        << row.kind << " " << row.field;
  }
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
