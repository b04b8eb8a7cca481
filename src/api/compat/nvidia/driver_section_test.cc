// Tests that every field about a driver, of ClusterPolicy and NVIDIADriver, has the effect that it
// is documented to have, and no other one: fields are taken from the resources' tables, so that a
// new one needs an effect.
#include "api/compat/nvidia/driver_section.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/compat/nvidia/cluster_policy.h"
#include "api/compat/nvidia/nvidia_driver.h"

namespace penstock::api::compat {
namespace {

using internal::FieldType;
using internal::ResourceField;
using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;

/// A field below `driver` of a ClusterPolicy, or below `spec` of an NVIDIADriver → where a driver
/// of a Penstock object has it.
const std::map<std::string, std::string> kPlaces = {
    {"usePrecompiled", "/precompiled"},
    {"kernelModuleType", "/kernelModuleType"},
    {"repository", "/image/repository"},
    {"image", "/image/image"},
    {"version", "/image/version"},
    {"imagePullPolicy", "/image/imagePullPolicy"},
    {"imagePullSecrets", "/image/imagePullSecrets"},
    {"env", "/env"},
    {"args", "/args"},
    {"resources", "/resources"},
    {"hostNetwork", "/hostNetwork"},
    {"secretEnv", "/files/variables"},
    {"rdma.enabled", "/peerMemory"},
    {"rdma.useHostMofed", "/hostNetworkDriver"},
    {"startupProbe.initialDelaySeconds", "/startupProbe"},
    {"startupProbe.periodSeconds", "/startupProbe"},
    {"startupProbe.timeoutSeconds", "/startupProbe"},
    {"startupProbe.failureThreshold", "/startupProbe"},
    {"livenessProbe.initialDelaySeconds", "/livenessProbe"},
    {"livenessProbe.periodSeconds", "/livenessProbe"},
    {"livenessProbe.timeoutSeconds", "/livenessProbe"},
    {"livenessProbe.failureThreshold", "/livenessProbe"},
    {"readinessProbe.initialDelaySeconds", "/readinessProbe"},
    {"readinessProbe.periodSeconds", "/readinessProbe"},
    {"readinessProbe.timeoutSeconds", "/readinessProbe"},
    {"readinessProbe.failureThreshold", "/readinessProbe"},
    {"readinessProbe.successThreshold", "/readinessProbe"},
    {"upgradePolicy.autoUpgrade", "/upgrade/automatic"},
    {"upgradePolicy.maxParallelUpgrades", "/upgrade/maxParallel"},
    {"upgradePolicy.maxUnavailable", "/upgrade/maxUnavailable"},
    {"upgradePolicy.waitForCompletion.podSelector", "/upgrade/wait/podSelector"},
    {"upgradePolicy.waitForCompletion.timeoutSeconds", "/upgrade/wait/timeout"},
    {"upgradePolicy.podDeletion.force", "/upgrade/podDeletion/force"},
    {"upgradePolicy.podDeletion.deleteEmptyDir", "/upgrade/podDeletion/deleteEmptyDir"},
    {"upgradePolicy.podDeletion.timeoutSeconds", "/upgrade/podDeletion/timeout"},
    {"upgradePolicy.drain.enable", "/upgrade/drain/enable"},
    {"upgradePolicy.drain.force", "/upgrade/drain/force"},
    {"upgradePolicy.drain.deleteEmptyDir", "/upgrade/drain/deleteEmptyDir"},
    {"upgradePolicy.drain.timeoutSeconds", "/upgrade/drain/timeout"},
    {"upgradePolicy.drain.podSelector", "/upgrade/drain/podSelector"},
    {"manager.imagePullSecrets", "/image/imagePullSecrets"},
    {"manager.env", "/prepareEnv"},
    {"certConfig.name", "/files/certificates"},
    {"licensingConfig.secretName", "/files/licenseSecret"},
    {"licensingConfig.nlsEnabled", "/files/licenseToken"},
    {"kernelModuleConfig.name", "/files/moduleOptions"},
};

// What is only in one of them.
const std::map<std::string, std::string> kPolicyPlaces = {
    {"driver.repoConfig.configMapName", "/files/repositories"},
    {"driver.licensingConfig.configMapName", "/files/license"},
    {"driver.virtualTopology.config", "/files/topology"},
    {"daemonsets.labels", "/labels"},
    {"daemonsets.annotations", "/annotations"},
    {"daemonsets.tolerations", "/tolerations"},
    {"daemonsets.priorityClassName", "/priorityClassName"},
    {"daemonsets.podSecurityContext", "/podSecurityContext"},
};
const std::map<std::string, std::string> kObjectPlaces = {
    {"default", "/default"},
    {"nodeSelector", "/nodeSelector"},
    {"nodeAffinity", "/nodeAffinity"},
    {"driverType", "/type"},
    {"repoConfig.name", "/files/repositories"},
    {"licensingConfig.name", "/files/license"},
    {"virtualTopologyConfig.name", "/files/topology"},
    {"labels", "/labels"},
    {"annotations", "/annotations"},
    {"tolerations", "/tolerations"},
    {"priorityClassName", "/priorityClassName"},
    {"podSecurityContext", "/podSecurityContext"},
};

json TextFor(const ResourceField& field) {
  for (const std::string_view word : field.words)
    if (word != field.schema_default) return word;
  return field.path.ends_with("imagePullPolicy") ? "Never" : "changed";
}

json MapFor(const ResourceField& field) {
  if (!field.path.ends_with("ffinity")) return {{"runAsUser", 7}};
  const json exists = {{"key", "changed"}, {"operator", "Exists"}};
  return {{"requiredDuringSchedulingIgnoredDuringExecution",
           {{"nodeSelectorTerms", json::array({{{"matchExpressions", json::array({exists})}}})}}}};
}

/// A value that asks for something.
json ValueFor(const ResourceField& field) {
  const auto otherwise = internal::DefaultOf(field);
  switch (field.type) {
    case FieldType::kBool: return !(otherwise && otherwise->boolean);
    case FieldType::kInt: return field.least.value_or(0) + 7;
    case FieldType::kNumberOrPercent: return 7;
    case FieldType::kTexts: return {"changed"};
    case FieldType::kTextMap: return {{"changed", "a"}};
    case FieldType::kEnvironment: return json::array({{{"name", "CHANGED"}, {"value", "a"}}});
    case FieldType::kResources: return {{"limits", {{"cpu", "1"}}}};
    case FieldType::kTolerations: return json::array({{{"key", "changed"}}});
    case FieldType::kOpenMap: return MapFor(field);
    default: return TextFor(field);
  }
}

json PointerTo(const std::string& path, const json& spec, const json& value) {
  json changed = spec;
  std::string pointer = "/" + path;
  std::ranges::replace(pointer, '.', '/');
  changed[json::json_pointer(pointer)] = value;
  return changed;
}

json JsonOfDriver(const DriverSpec& driver) {
  PenstockSpec spec;
  spec.drivers = {driver};
  return json::parse(ToJson(spec)).at("drivers").at(0);
}

PolicyTranslation OfPolicy(const json& spec) {
  const json object = {{"apiVersion", "nvidia.com/v1"}, {"kind", "ClusterPolicy"}, {"spec", spec}};
  const auto translation = TranslateClusterPolicy(object.dump());
  EXPECT_TRUE(translation.ok()) << translation.error().message();
  return translation.ok() ? *translation : PolicyTranslation{};
}

json DriverOfPolicy(const json& spec) {
  const PolicyTranslation translation = OfPolicy(spec);
  EXPECT_EQ(translation.spec.drivers.size(), 1u);
  return translation.spec.drivers.empty() ? json() : JsonOfDriver(translation.spec.drivers[0]);
}

base::Result<DriverTranslation> TranslateObject(const json& spec) {
  return TranslateNvidiaDriver(json{
      {"apiVersion", "nvidia.com/v1alpha1"},
      {"kind", "NVIDIADriver"},
      {"metadata", {{"name", "blue"}}},
      {"spec", spec}}.dump());
}

json DriverOfObject(const json& spec) {
  const auto translation = TranslateObject(spec);
  EXPECT_TRUE(translation.ok()) << translation.error().message();
  return translation.ok() ? JsonOfDriver(translation->driver) : json();
}

/// Where two drivers differ.
std::vector<std::string> Differences(const json& one, const json& other) {
  std::vector<std::string> places;
  for (const json& change : json::diff(one, other)) places.push_back(change.at("path"));
  return places;
}

/// What is needed around a field. In a map that is set, the definition's defaults apply.
json BaseFor(const std::string& field) {
  json base = {{"version", "580"}};
  if (field.ends_with("useHostMofed")) {
    base["rdma"] = {{"enabled", true}};
  } else if (field.find('.') != field.npos) {
    base = PointerTo(field, base, nullptr);
  }
  return base;
}

TEST(DriverSection, EachFieldOfAClusterPolicyHasItsEffectOnTheDriver) {
  std::size_t changed = 0;
  for (const ResourceField& field : internal::ClusterPolicyFields()) {
    const bool section = field.path.starts_with("driver.");
    const bool switches =
        field.path == "driver.enabled" || field.path == "driver.useNvidiaDriverCRD";
    const bool pods = kPolicyPlaces.contains(field.path);
    if (field.type == FieldType::kMap || field.topic != nullptr || switches || !(section || pods))
      continue;
    const auto place = pods ? kPolicyPlaces.find(field.path) : kPlaces.find(field.path.substr(7));
    ASSERT_TRUE(pods || place != kPlaces.end()) << field.path << " has no documented effect";
    const json base = {{"driver", BaseFor(pods ? "" : field.path.substr(7))}};
    EXPECT_THAT(Differences(DriverOfPolicy(base),
                            DriverOfPolicy(PointerTo(field.path, base, ValueFor(field)))),
                ElementsAre(StartsWith(place->second)))
        << field.path;
    ++changed;
  }
  EXPECT_EQ(changed, kPlaces.size() + kPolicyPlaces.size());
}

TEST(DriverSection, EachFieldOfAnNvidiaDriverHasItsEffect) {
  std::size_t changed = 0;
  for (const ResourceField& field : internal::NvidiaDriverFields()) {
    if (field.type == FieldType::kMap || field.topic != nullptr) continue;
    auto place = kPlaces.find(field.path);
    if (place == kPlaces.end()) place = kObjectPlaces.find(field.path);
    ASSERT_NE(place, kObjectPlaces.end()) << field.path << " has no documented effect";
    const json base = BaseFor(field.path);
    EXPECT_THAT(Differences(DriverOfObject(base),
                            DriverOfObject(PointerTo(field.path, base, ValueFor(field)))),
                ElementsAre(StartsWith(place->second)))
        << field.path;
    ++changed;
  }
  EXPECT_EQ(changed, kPlaces.size() + kObjectPlaces.size());
}

TEST(DriverSection, HasTheValuesThatAreSet) {
  const json driver = DriverOfPolicy(json::parse(R"x({"driver": {
      "repository": "r", "image": "i", "version": "sha256:1", "imagePullSecrets": ["s"],
      "manager": {"imagePullSecrets": ["t", "s"], "env": [{"name": "DRAIN_USE_FORCE", "value": "true"}]},
      "env": [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "2"}],
      "startupProbe": {"periodSeconds": 10, "failureThreshold": 300},
      "livenessProbe": {}, "readinessProbe": {"successThreshold": 2},
      "licensingConfig": {"secretName": "license", "nlsEnabled": false},
      "upgradePolicy": {"maxParallelUpgrades": 0, "maxUnavailable": "", "waitForCompletion":
          {"podSelector": "job in (a, b)", "timeoutSeconds": 30},
          "podDeletion": {"timeoutSeconds": 9223372036854775807}}}})x"));
  EXPECT_EQ(driver.at("image"),
            json::parse(R"({"repository": "r", "image": "i", "version": "sha256:1",
                            "imagePullSecrets": ["s", "t"]})"));
  EXPECT_EQ(driver.at("env"), json::parse(R"([{"name": "A", "value": "2"},
                                              {"name": "B", "value": ""}])"));
  EXPECT_EQ(driver.at("prepareEnv")[0].at("value"), "true");
  EXPECT_EQ(driver.at("startupProbe"), json({{"periodSeconds", 10}, {"failureThreshold", 300}}));
  EXPECT_EQ(driver.at("livenessProbe"), json::object());
  EXPECT_EQ(driver.at("readinessProbe"), json({{"successThreshold", 2}}));
  EXPECT_EQ(driver.at("files").at("licenseToken"), false);
  const json upgrade = driver.at("upgrade");
  EXPECT_EQ(upgrade.at("maxParallel"), 0);
  EXPECT_EQ(upgrade.at("maxUnavailable"), "25%");
  EXPECT_EQ(upgrade.at("wait"), json({{"podSelector", "job in (a, b)"}, {"timeout", "30000ms"}}));
  EXPECT_THAT(upgrade.at("podDeletion").at("timeout").get<std::string>(), HasSubstr("000ms"));
}

TEST(DriverSection, TheTimesOfNvidiasChartAreNotWaitedFor) {
  const json usual = {{"initialDelaySeconds", 60},
                      {"periodSeconds", 10},
                      {"timeoutSeconds", 60},
                      {"failureThreshold", 120}};
  EXPECT_FALSE(DriverOfPolicy({{"driver", {{"startupProbe", usual}}}}).contains("startupProbe"));
  EXPECT_EQ(DriverOfPolicy({{"driver", {{"livenessProbe", usual}}}}).at("livenessProbe"), usual);
  json longer = usual;
  longer["failureThreshold"] = 121;
  EXPECT_EQ(DriverOfPolicy({{"driver", {{"startupProbe", longer}}}}).at("startupProbe"), longer);
}

TEST(DriverSection, ArgumentsFollowTheOneOfTheProgram) {
  const auto policy = [](const json& arguments) {
    return OfPolicy({{"driver", {{"args", arguments}}}});
  };
  EXPECT_THAT(policy({"init", "--x"}).spec.drivers[0].arguments, ElementsAre("--x"));
  EXPECT_THAT(policy({"init", "--x"}).answers, IsEmpty());
  EXPECT_THAT(policy({"--x"}).spec.drivers[0].arguments, ElementsAre("--x"));
  ASSERT_EQ(policy({"--x"}).answers.size(), 1u);
  EXPECT_EQ(policy({"--x"}).answers[0].field, "spec.driver.args");
  EXPECT_EQ(DriverOfObject({{"version", "1"}, {"args", {"--x"}}}).at("args"), json({"--x"}));
}

TEST(DriverSection, AClusterPolicysDriverIsForAllNodesAndHasNoName) {
  const PolicyTranslation translation =
      OfPolicy({{"daemonsets", {{"labels", {{"app", "x"}, {"team", "a"}}}}}});
  ASSERT_EQ(translation.spec.drivers.size(), 1u);
  const DriverSpec& driver = translation.spec.drivers[0];
  EXPECT_EQ(driver.name, "");
  EXPECT_TRUE(driver.fallback);
  EXPECT_EQ(driver.image, ImageParts{}) << "no image of NVIDIA's chart is assumed";
  EXPECT_EQ(driver.priority_class, "system-node-critical");
  EXPECT_THAT(driver.labels, ElementsAre(Pair("team", "a"))) << "pods are selected by app";
  EXPECT_FALSE(driver.upgrade.automatic);
  EXPECT_THAT(translation.no_driver_objects, HasSubstr("useNvidiaDriverCRD false"));
}

TEST(DriverSection, SaysWhatIsNotServedOfADriver) {
  const PolicyTranslation translation =
      OfPolicy({{"driver",
                 {{"imagePullPolicy", "Sometimes"},
                  {"manager", {{"image", "k8s-driver-manager"}}},
                  {"startupProbe", {{"successThreshold", 2}}}}},
                {"gds", {{"enabled", true}, {"image", "nvidia-fs"}}}});
  std::vector<std::pair<std::string, FieldFate>> fates;
  for (const FieldAnswer& answer : translation.answers)
    fates.emplace_back(answer.field, answer.fate);
  EXPECT_THAT(fates,
              ElementsAre(Pair("spec.driver.imagePullPolicy", FieldFate::kElsewhere),
                          Pair("spec.driver.startupProbe.successThreshold", FieldFate::kElsewhere),
                          Pair("spec.driver.manager.image", FieldFate::kOwnImage),
                          Pair("spec.gds.enabled", FieldFate::kNotServed)));
  EXPECT_EQ(translation.spec.drivers[0].image.pull_policy, "");
}

TEST(DriverSection, VariablesByWhichNvidiasInitContainerEvictsAreAnswered) {
  const json usual = json::parse(R"([{"name": "ENABLE_GPU_POD_EVICTION", "value": "true"},
      {"name": "ENABLE_AUTO_DRAIN", "value": "false"}, {"name": "DRAIN_USE_FORCE", "value": "false"},
      {"name": "DRAIN_POD_SELECTOR_LABEL", "value": ""}, {"name": "DRAIN_TIMEOUT_SECONDS",
      "value": "0s"}, {"name": "DRAIN_DELETE_EMPTYDIR_DATA", "value": "false"}])");
  EXPECT_THAT(OfPolicy({{"driver", {{"manager", {{"env", usual}}}}}}).answers, IsEmpty())
      << "earlier charts have these";
  const json other = json::parse(R"([{"name": "ENABLE_GPU_POD_EVICTION", "value": "false"},
      {"name": "FORCE_REINSTALL", "value": "true"}])");
  const auto answers = OfPolicy({{"driver", {{"manager", {{"env", other}}}}}}).answers;
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].field, "spec.driver.manager.env[ENABLE_GPU_POD_EVICTION]");
  EXPECT_EQ(answers[0].fate, FieldFate::kElsewhere);
  EXPECT_THAT(answers[0].text, HasSubstr("upgradePolicy.podDeletion"));
}

TEST(DriverSection, NvidiaDriverObjectsReplaceAClusterPolicysSection) {
  const PolicyTranslation translation =
      OfPolicy({{"driver",
                 {{"useNvidiaDriverCRD", true},
                  {"version", "580"},
                  {"repository", "not read"},
                  {"manager", {{"image", "k8s-driver-manager"}}},
                  {"upgradePolicy", {{"autoUpgrade", true}, {"drain", {{"enable", true}}}}}}}});
  EXPECT_THAT(translation.spec.drivers, IsEmpty());
  EXPECT_EQ(translation.no_driver_objects, "");
  ASSERT_EQ(translation.answers.size(), 1u);
  EXPECT_EQ(translation.answers[0].field, "spec.driver.useNvidiaDriverCRD");
  EXPECT_EQ(translation.answers[0].fate, FieldFate::kElsewhere);
  EXPECT_THAT(translation.answers[0].text, HasSubstr("Set here: driver.repository, driver.version, "
                                                     "driver.upgradePolicy.drain.enable."));
}

TEST(DriverSection, ReportsWhatCannotBeMeant) {
  const char* spec = R"({"version": "5 8", "repository": "r\n", "imagePullSecrets": ["A b"],
      "env": [{"name": "A=B"}], "secretEnv": "S S", "priorityClassName": "High!",
      "labels": {"a b": "c"}, "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}},
      "repoConfig": {"name": "/etc"}, "upgradePolicy": {"drain": {"podSelector": "a in b"}}})";
  const auto translation = TranslateObject(json::parse(spec));
  ASSERT_FALSE(translation.ok());
  EXPECT_THAT(
      translation.error().message(),
      AllOf(HasSubstr("NVIDIADriver blue: spec.version: \"5 8\" cannot be a part"),
            HasSubstr("spec.repository: \"r?\" cannot be a part"),
            HasSubstr("spec.imagePullSecrets: \"A b\" is not the name of a Secret"),
            HasSubstr("spec.env: \"A=B\" is not the name of an environment variable"),
            HasSubstr("spec.secretEnv: \"S S\" is not the name of a Secret"),
            HasSubstr("spec.priorityClassName: \"High!\""),
            HasSubstr("spec.labels: \"a b\" is not a label key"), HasSubstr("spec.nodeAffinity: "),
            HasSubstr("spec.repoConfig.name: \"/etc\" is not the name of a ConfigMap"),
            HasSubstr("spec.upgradePolicy.drain.podSelector: \"a in b\"")));
}

TEST(DriverSection, TheNameOfAnNvidiaDriverIsTheValueOfALabel) {
  const auto named = [](std::size_t characters) {
    return TranslateNvidiaDriver(json{
        {"apiVersion", "nvidia.com/v1alpha1"},
        {"kind", "NVIDIADriver"},
        {"metadata", {{"name", std::string(characters, 'a')}}},
        {"spec",
         {{"version", "580"}}}}.dump());
  };
  EXPECT_TRUE(named(63).ok());
  ASSERT_FALSE(named(64).ok());
  EXPECT_THAT(named(64).error().message(), HasSubstr("metadata.name: is the value of a label"));
}

TEST(DriverSection, AnNvidiaDriverNeedsAVersionUnlessTheImageHasOne) {
  const auto message = [](const json& spec) {
    const auto translation = TranslateObject(spec);
    return translation.ok() ? "" : translation.error().message();
  };
  EXPECT_THAT(
      message({{"image", "localhost:5000/driver"}}),
      HasSubstr("spec.version: is not set, and the image localhost:5000/driver has no tag"));
  EXPECT_EQ(message({{"image", "localhost:5000/driver:580-ubuntu22.04"}}), "");
  EXPECT_EQ(message({{"image", "r/driver@sha256:1"}}), "");
}

}  // namespace
}  // namespace penstock::api::compat
