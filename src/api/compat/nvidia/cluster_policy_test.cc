// Tests what becomes of ClusterPolicy objects: each file in testdata/cluster-policy has a copy of
// its translation beside it. PENSTOCK_UPDATE_GOLDEN=1 rewrites the copies.
#include "api/compat/nvidia/cluster_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/cluster/kube_json.h"
#include "api/compat/nvidia/resource_fields.h"
#include "base/testing/build_tree.h"
#include "base/yaml.h"

namespace penstock::api::compat {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using Json = nlohmann::ordered_json;

std::filesystem::path Samples() {
  return base::SourceFolder() / "src/api/compat/nvidia/testdata/cluster-policy";
}

std::string JsonOfYaml(const std::string& yaml) {
  const auto document = base::ParseYaml(yaml, "sample");
  EXPECT_TRUE(document.ok()) << document.error().message();
  return document.ok() ? api::internal::JsonOf(*document).dump() : "null";
}

/// A ClusterPolicy with this spec, in YAML.
std::string PolicyWith(const std::string& spec) {
  return JsonOfYaml("apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n" +
                    spec);
}

PolicyTranslation Translated(const std::string& spec) {
  const auto translation = TranslateClusterPolicy(PolicyWith(spec));
  EXPECT_TRUE(translation.ok()) << translation.error().message();
  return translation.ok() ? *translation : PolicyTranslation{};
}

std::string PolicyMessage(const std::string& spec) {
  const auto translation = TranslateClusterPolicy(PolicyWith(spec));
  EXPECT_FALSE(translation.ok());
  return translation.ok() ? "" : translation.error().message();
}

std::string GoldenOf(const PolicyTranslation& translation) {
  Json golden = {{"spec", Json::parse(ToJson(translation.spec))}, {"answers", Json::array()}};
  for (const FieldAnswer& answer : translation.answers)
    golden["answers"].push_back({{"field", answer.field},
                                 {"fate", internal::ToString(answer.fate)},
                                 {"text", answer.text}});
  return golden.dump(2) + "\n";
}

TEST(ClusterPolicy, TranslatesEachSampleAsItsCopySays) {
  int samples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(Samples())) {
    if (entry.path().extension() != ".yaml") continue;
    ++samples;
    const std::string name = entry.path().filename();
    const std::string relative = "src/api/compat/nvidia/testdata/cluster-policy/" + name;
    const auto translation = TranslateClusterPolicy(JsonOfYaml(base::ReadSource(relative)));
    ASSERT_TRUE(translation.ok()) << name << ": " << translation.error().message();
    const std::filesystem::path copy = std::filesystem::path(entry.path()).replace_extension(".json");
    const std::string golden = GoldenOf(*translation);
    if (std::getenv("PENSTOCK_UPDATE_GOLDEN") != nullptr) {
      std::ofstream(copy) << golden;
      continue;
    }
    std::ifstream in(copy);
    const std::string wanted{std::istreambuf_iterator<char>(in), {}};
    EXPECT_EQ(golden, wanted)
        << copy << ": if this change is intended, run with PENSTOCK_UPDATE_GOLDEN=1";
    const auto again = ParsePenstock(R"({"apiVersion": "penstock.io/v1alpha1", "kind": "Penstock",
        "spec": )" + ToJson(translation->spec) + "}", name);
    ASSERT_TRUE(again.ok()) << name << ": " << again.error().message();
    EXPECT_EQ(ToJson(*again), ToJson(translation->spec));
  }
  EXPECT_GT(samples, 5);
}

}  // namespace
}  // namespace penstock::api::compat
