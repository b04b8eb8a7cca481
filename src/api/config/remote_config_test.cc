#include "api/config/remote_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace penstock::api {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

api::ConfigMapConfig Where() {
  api::ConfigMapConfig where;
  where.name = "time-slicing-config";
  where.namespace_name = "gpu-operator";
  where.node_label = "nvidia.com/device-plugin.config";
  return where;
}

json Map(const json& data) {
  return {{"metadata", {{"name", "time-slicing-config"}}}, {"data", data}};
}

const json kTwo = Map({{"a100-40gb", "version: v1"}, {"tesla-t4", "version: v1 # t4"}});

void ExpectProblem(const RemoteConfig& remote, const std::string& part) {
  EXPECT_THAT(remote.problem, HasSubstr(part));
  EXPECT_THAT(remote.text, IsEmpty());
  EXPECT_THAT(remote.origin, HasSubstr("ConfigMap gpu-operator/time-slicing-config"));
}

TEST(ChooseConfig, TheNodesLabelNamesTheKey) {
  const RemoteConfig remote = ChooseConfig(Where(), "tesla-t4", &kTwo);
  EXPECT_EQ(remote.text, "version: v1 # t4");
  EXPECT_EQ(remote.origin,
            "ConfigMap gpu-operator/time-slicing-config, key tesla-t4 (label "
            "nvidia.com/device-plugin.config)");
  EXPECT_THAT(remote.problem, IsEmpty());
}

TEST(ChooseConfig, WithoutALabelTheDefaultCounts) {
  api::ConfigMapConfig where = Where();
  where.default_key = "a100-40gb";
  for (const char* none : {""}) {
    const RemoteConfig remote = ChooseConfig(where, none, &kTwo);
    EXPECT_EQ(remote.text, "version: v1");
    EXPECT_THAT(remote.origin, HasSubstr("key a100-40gb (default)"));
  }
  EXPECT_THAT(ChooseConfig(where, "tesla-t4", &kTwo).origin, HasSubstr("tesla-t4"))
      << "the label comes first";
}

TEST(ChooseConfig, FallBacksAreTriedInOrder) {
  const json one = Map({{"any", "x: 1"}}), named = Map({{"default", "x: 2"}, {"other", "x: 3"}}),
             both = Map({{"default", "x: 2"}});
  api::ConfigMapConfig where = Where();
  EXPECT_EQ(ChooseConfig(where, "", &one).text, "x: 1");
  EXPECT_THAT(ChooseConfig(where, "", &one).origin, HasSubstr("key any (fall-back \"single\")"));
  EXPECT_EQ(ChooseConfig(where, "", &named).text, "x: 2");
  EXPECT_THAT(ChooseConfig(where, "", &both).origin, HasSubstr("\"named\""));
  where.fallbacks = {"single", "named"};
  EXPECT_THAT(ChooseConfig(where, "", &both).origin, HasSubstr("\"single\""));
  where.fallbacks = {"empty", "named"};
  const RemoteConfig empty = ChooseConfig(where, "", &named);
  EXPECT_THAT(empty.text, IsEmpty());
  EXPECT_THAT(empty.problem, IsEmpty());
  EXPECT_EQ(empty.origin, "ConfigMap gpu-operator/time-slicing-config (fall-back \"empty\")");
  where.fallbacks = {};
  ExpectProblem(ChooseConfig(where, "", &one), "set its label");
}

TEST(ChooseConfig, TwoKeysWithoutADefaultAreAProblemThatSaysWhatToDo) {
  ExpectProblem(ChooseConfig(Where(), "", &kTwo),
                "2 keys (a100-40gb, tesla-t4) and nothing says which one is for this node: set its "
                "label nvidia.com/device-plugin.config");
}

TEST(ChooseConfig, AnUnknownKeyIsReportedWithTheOnesThereAre) {
  ExpectProblem(ChooseConfig(Where(), "a100-40g", &kTwo), "did you mean a100-40gb?");
  ExpectProblem(ChooseConfig(Where(), "h100", &kTwo), "it has a100-40gb, tesla-t4");
}

TEST(ChooseConfig, AConfigMapThatIsNotThereIsAProblem) {
  ExpectProblem(ChooseConfig(Where(), "any", nullptr), "there is no ConfigMap");
}

TEST(ChooseConfig, BinaryDataEmptyValuesAndEmptyConfigMapsAreProblems) {
  const json binary = {{"binaryData", {{"any", "AAAA"}}}, {"data", {{"other", "x: 1"}}}};
  ExpectProblem(ChooseConfig(Where(), "any", &binary), "binary data");
  for (const json& value : {json(""), json(" \n"), json(nullptr), json(3)}) {
    const json map = Map({{"any", value}});
    ExpectProblem(ChooseConfig(Where(), "any", &map), "is empty");
  }
  for (const json& map :
       {json::object(), json{{"data", nullptr}}, json{{"data", json::array()}}, json(3)})
    ExpectProblem(ChooseConfig(Where(), "", &map), "has no key");
}

// Cases from user issues, by repository and number.
TEST(ChooseConfig, DP364AKeyThatWasTakenAwayIsAProblemAndNoCrash) {
  const json before = Map({{"any", "x: 1"}, {"other", "x: 2"}}), after = Map({{"other", "x: 2"}});
  EXPECT_EQ(ChooseConfig(Where(), "any", &before).text, "x: 1");
  ExpectProblem(ChooseConfig(Where(), "any", &after), "there is no key any");
}

TEST(ChooseConfig, DP615ADefaultThatNamesNoKeyIsReportedByItsName) {
  api::ConfigMapConfig where = Where();
  where.default_key = "defualt";
  const json map = Map({{"default", "x: 1"}});
  ExpectProblem(ChooseConfig(where, "", &map), "no key defualt");
  ExpectProblem(ChooseConfig(where, "", &map), "cluster.config.default");
  ExpectProblem(ChooseConfig(where, "", &map), "did you mean default?");
}

TEST(ChooseConfig, GO412AndGO1144AnEditOfTheSameKeyIsAnotherRequest) {
  const json before = Map({{"any", "replicas: 2"}}), after = Map({{"any", "replicas: 4"}});
  EXPECT_FALSE(ChooseConfig(Where(), "any", &before) == ChooseConfig(Where(), "any", &after));
}

}  // namespace
}  // namespace penstock::api
