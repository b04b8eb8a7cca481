// Tests that selectors choose what Kubernetes' own would choose.
#include "api/cluster/label_selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api {
namespace {

using testing::HasSubstr;

const ObjectLabels kLabels = {{"app", "a"}, {"tier", "x"}, {"cores", "8"}};

bool Chosen(std::string_view text) {
  const auto selector = LabelSelector::Parse(text);
  EXPECT_TRUE(selector.ok()) << text << ": " << selector.error().message();
  return selector.ok() && selector->Matches(kLabels);
}

TEST(LabelSelector, ReadsTheFormsOfTheCommandLine) {
  for (const char* text :
       {"", "app=a", "app==a", "app", "!legacy", "app!=b", "other!=b", "tier in (x, y)",
        "tier notin (y)", "app=a,tier in (x,y),!legacy", " app = a , tier "})
    EXPECT_TRUE(Chosen(text)) << text;
  for (const char* text :
       {"app=b", "legacy", "!app", "app!=a", "tier in (y)", "tier notin (x,y)", "app=a,tier=y"})
    EXPECT_FALSE(Chosen(text)) << text;
}

TEST(LabelSelector, NamesThePartThatItCannotRead) {
  for (const char* text : {"app=a,,b", "app in x", "app in (x", "in (x)", "a b", "=x", "a=b=c",
                           "app near (x)", "!", "app=not a value"}) {
    const auto selector = LabelSelector::Parse(text);
    ASSERT_FALSE(selector.ok()) << text;
    EXPECT_THAT(selector.error().message(), HasSubstr("is no requirement of labels")) << text;
  }
}

bool Affine(const std::string& terms, std::string_view node = "n1") {
  const auto affinity = NodeAffinity::Parse(
      {R"({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": )" + terms +
       "}}"});
  EXPECT_TRUE(affinity.ok()) << affinity.error().message();
  return affinity.ok() && affinity->Matches(kLabels, node);
}

TEST(NodeAffinity, NeedsOneTermOfWhichAllRulesMatch) {
  const std::string wrong = R"({"matchExpressions": [{"key": "gone", "operator": "Exists"}]})";
  const std::string right =
      R"({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]},
                               {"key": "cores", "operator": "Gt", "values": ["4"]},
                               {"key": "gone", "operator": "DoesNotExist"},
                               {"key": "tier", "operator": "NotIn", "values": ["z"]}]})";
  EXPECT_TRUE(Affine("[" + wrong + "," + right + "]"));
  EXPECT_FALSE(Affine("[" + wrong + "]"));
  EXPECT_FALSE(Affine("[]"));
  EXPECT_FALSE(Affine("[{}]"));
  EXPECT_FALSE(Affine(R"([{"matchExpressions": [{"key": "app", "operator": "Lt",
                                                 "values": ["4"]}]}])"));
}

TEST(NodeAffinity, ComparesTheNameOfTheNode) {
  const std::string one = R"([{"matchFields": [{"key": "metadata.name", "operator": "In",
                                                "values": ["n1"]}]}])";
  EXPECT_TRUE(Affine(one, "n1"));
  EXPECT_FALSE(Affine(one, "n2"));
}

TEST(NodeAffinity, ChoosesAllNodesIfItRequiresNothing) {
  for (const char* text :
       {"", "{}", R"({"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]})"}) {
    const auto affinity = NodeAffinity::Parse({text});
    ASSERT_TRUE(affinity.ok()) << text;
    EXPECT_TRUE(affinity->Matches({}, "n"));
  }
}

TEST(NodeAffinity, ReportsWhatIsNotOfItsForm) {
  for (const char* text :
       {"[]", R"({"requiredDuringSchedulingIgnoredDuringExecution": {}})",
        R"({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms":
            [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]}})"})
    EXPECT_FALSE(NodeAffinity::Parse({text}).ok()) << text;
}

}  // namespace
}  // namespace penstock::api
