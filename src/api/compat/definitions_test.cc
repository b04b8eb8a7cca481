// Tests the CustomResourceDefinitions: deploy/crds has a copy of each, and what those of vendors
// accept, ours accept. PENSTOCK_UPDATE_GOLDEN=1 rewrites the copies.
#include "api/compat/nvidia/definitions.h"

#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/compat/amd/definitions.h"
#include "api/compat/amd/device_config_fields.h"
#include "api/testing/yaml_text.h"
#include "base/core/json_text.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"
#include "base/testing/build_tree.h"
#include "base/yaml.h"

namespace penstock::api::compat {
namespace {

using testing::HasSubstr;
using Schema = nlohmann::ordered_json;

std::vector<ResourceDefinition> OfVendors() {
  std::vector<ResourceDefinition> all = NvidiaDefinitions();
  for (auto& one : AmdDefinitions()) all.push_back(std::move(one));
  return all;
}

std::vector<ResourceDefinition> AllDefinitions() {
  std::vector<ResourceDefinition> all = OfVendors();
  all.push_back(PenstockDefinition());
  return all;
}

const Schema& SchemaIn(const Schema& definition) {
  return definition.at("spec").at("versions").at(0).at("schema").at("openAPIV3Schema");
}

/// Follows a path ("spec.a.b[].c", "spec.labels{}"); null: the schema leaves it open.
const Schema* Step(const Schema* schema, const std::string& name) {
  const char* key = name == "[]" ? "items" : "additionalProperties";
  if (name == "[]" || name == "{}") return schema->contains(key) ? &schema->at(key) : nullptr;
  if (!schema->contains("properties")) return nullptr;
  const auto found = schema->at("properties").find(name);
  return found == schema->at("properties").end() ? nullptr : &*found;
}

struct Followed {
  const Schema* schema = nullptr;
  bool open = false;  ///< a map above it keeps unknown fields
};

Followed Follow(const Schema& schema, const std::string& path) {
  std::vector<std::string> steps;
  for (std::string step : base::Split(path, '.')) {
    std::vector<std::string> ends;
    while (step.ends_with("[]") || step.ends_with("{}")) {
      ends.insert(ends.begin(), step.substr(step.size() - 2));
      step.resize(step.size() - 2);
    }
    steps.push_back(step);
    steps.insert(steps.end(), ends.begin(), ends.end());
  }
  Followed at{&schema};
  for (const std::string& step : steps) {
    const Schema* next = Step(at.schema, step);
    if (next == nullptr)
      return {nullptr, at.schema->contains("x-kubernetes-preserve-unknown-fields")};
    at.schema = next;
  }
  return at;
}

TEST(Definitions, HaveACopyInDeploy) {
  for (const ResourceDefinition& definition : AllDefinitions()) {
    const auto dot = definition.name.find('.');
    const std::string file = "deploy/crds/" + definition.name.substr(dot + 1) + "_" +
                             definition.name.substr(0, dot) + ".yaml";
    const std::string yaml =
        "# Written from the tables of fields: build/dev/tests/api_compat_test "
        "with PENSTOCK_UPDATE_GOLDEN=1.\n" +
        YamlText(Schema::parse(definition.json));
    if (std::getenv("PENSTOCK_UPDATE_GOLDEN") != nullptr) {
      std::filesystem::create_directories(base::SourceFolder() / "deploy/crds");
      std::ofstream(base::SourceFolder() / file) << yaml;
    }
    EXPECT_TRUE(base::ReadSource(file) == yaml)
        << file << ": if this change is intended, run with PENSTOCK_UPDATE_GOLDEN=1";
    const auto document = base::ParseYaml(yaml, file);
    ASSERT_TRUE(document.ok()) << document.error().message();
    EXPECT_TRUE(base::JsonOf<nlohmann::ordered_json>(*document) == Schema::parse(definition.json))
        << file;
  }
}

/// A row of a vendor's testdata/definitions.tsv.
struct Fact {
  std::string resource, path, type, words, otherwise, required, least;
};

std::vector<Fact> FactsIn(const std::string& vendor) {
  std::vector<Fact> facts;
  for (const std::string& line : base::Split(
           base::ReadSource("src/api/compat/" + vendor + "/testdata/definitions.tsv"), '\n')) {
    const std::vector<std::string> cells = base::Split(line, '\t');
    if (cells.size() == 7)
      facts.push_back({cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6]});
  }
  return facts;
}

void ExpectToAccept(const Schema& schema, const Fact& fact) {
  const std::string place = fact.resource + " " + fact.path;
  const bool either = schema.contains("x-kubernetes-int-or-string");
  if (either) {
    EXPECT_TRUE(fact.type == "int-or-string" || fact.type == "string" || fact.type == "integer")
        << place;
  } else {
    EXPECT_EQ(schema.value("type", ""), fact.type) << place;
  }
  if (schema.contains("enum")) {
    for (const std::string& word : base::Split(fact.words, ','))
      EXPECT_THAT(schema.at("enum"), testing::Contains(word)) << place;
    EXPECT_EQ(base::Split(fact.words, ',').size(), schema.at("enum").size()) << place;
  } else {
    EXPECT_EQ(fact.words, "-") << place;
  }
  EXPECT_EQ(schema.contains("default") ? schema.at("default").dump() : "-", fact.otherwise)
      << place;
  for (const auto& name : schema.value("required", Schema::array()))
    EXPECT_THAT(base::Split(fact.required, ','), testing::Contains(name.get<std::string>()))
        << place;
  if (schema.contains("minimum")) {
    EXPECT_EQ(std::to_string(schema.at("minimum").get<int>()), fact.least) << place;
  }
}

/// Whether it is in a map that ours passes on as it is.
bool IsPassedOn(const std::string& path) {
  for (const char* map :
       {"podSecurityContext", "nodeAffinity", "kataManager.config.runtimeClasses"})
    if (path.find(map) != std::string::npos) return true;
  return false;
}

/// The number of facts about fields that have a schema here.
std::size_t CompareWithFacts(const std::string& vendor) {
  std::map<std::string, Schema> definitions;
  for (const ResourceDefinition& definition : OfVendors())
    definitions[definition.name.substr(0, definition.name.find('.'))] =
        Schema::parse(definition.json);
  std::size_t typed = 0;
  for (const Fact& fact : FactsIn(vendor)) {
    const Followed at = Follow(SchemaIn(definitions.at(fact.resource)), fact.path);
    EXPECT_TRUE(at.schema != nullptr || at.open || IsPassedOn(fact.path))
        << fact.resource << " " << fact.path << " would be pruned";
    if (at.schema == nullptr) continue;
    ++typed;
    ExpectToAccept(*at.schema, fact);
  }
  return typed;
}

TEST(Definitions, AcceptWhatNvidiasAccept) { EXPECT_GT(CompareWithFacts("nvidia"), 850u); }

TEST(Definitions, AcceptWhatAmdsAccept) { EXPECT_GT(CompareWithFacts("amd"), 270u); }

/// Of AMD's definition the test above has every field: ours has no others.
TEST(Definitions, HaveNoFieldThatAmdsLacks) {
  std::set<std::string> known;
  for (const Fact& fact : FactsIn("amd")) known.insert(fact.path);
  for (const internal::ResourceField& field : internal::DeviceConfigFields())
    EXPECT_TRUE(known.contains("spec." + field.path)) << field.path;
}

TEST(Definitions, LeaveAStatusOfAmdsOperatorValid) {
  const Schema schema = Schema::parse(AmdDefinitions().front().json);
  const Schema& status = SchemaIn(schema).at("properties").at("status");
  EXPECT_FALSE(status.contains("required"));
  EXPECT_TRUE(status.contains("x-kubernetes-preserve-unknown-fields"));
  EXPECT_EQ(schema.at("spec").at("scope"), "Namespaced");
}

/// Calls `take` with each schema of a definition.
void ForEachSchema(const Schema& schema, const std::string& path,
                   const std::function<void(const Schema&, const std::string&)>& take) {
  take(schema, path);
  if (schema.contains("properties"))
    for (const auto& [name, below] : schema.at("properties").items())
      ForEachSchema(below, path + "." + name, take);
  for (const char* key : {"items", "additionalProperties"})
    if (schema.contains(key)) ForEachSchema(schema.at(key), path + "[]", take);
}

TEST(Definitions, AreStructuralAndKeepUnknownFields) {
  for (const ResourceDefinition& definition : AllDefinitions()) {
    const Schema whole = Schema::parse(definition.json);
    ForEachSchema(SchemaIn(whole).at("properties").at("spec"), definition.name,
                  [](const Schema& one, const std::string& path) {
                    const bool either = one.contains("x-kubernetes-int-or-string");
                    EXPECT_TRUE(either != one.contains("type")) << path;
                    if (one.value("type", "") == "object") {
                      EXPECT_TRUE(one.contains("additionalProperties") ||
                                  one.contains("x-kubernetes-preserve-unknown-fields"))
                          << path;
                    }
                  });
  }
}

TEST(Definitions, ADurationHasTheFormThatIsRead) {
  const Schema whole = Schema::parse(PenstockDefinition().json);
  const Schema* timeout = Follow(SchemaIn(whole), "spec.drivers[].upgrade.loadTimeout").schema;
  ASSERT_NE(timeout, nullptr);
  const std::regex form(timeout->at("pattern").get<std::string>());
  for (const char* text : {"1h30m", "500ms", "1.5m", ".5s", "5.s", "10us", "10µs", "3ns", "0s", "",
                           "5", "s", ".s", "1.2.3s", "-1s", "1 s", "1d", "5 minutes"})
    EXPECT_EQ(std::regex_match(text, form), base::ParseDuration(text).ok()) << text;
}

TEST(Definitions, DescribeEveryFieldOfAPenstockObject) {
  const Schema schema = Schema::parse(PenstockDefinition().json);
  ForEachSchema(SchemaIn(schema).at("properties").at("spec"), "spec",
                [](const Schema& one, const std::string& path) {
                  const bool own = path.find("[]") == std::string::npos;
                  EXPECT_FALSE(own && one.value("description", "").empty() &&
                               path.find("resources.") == std::string::npos)
                      << path;
                  EXPECT_FALSE(one.contains("default")) << path;
                });
}

}  // namespace
}  // namespace penstock::api::compat
