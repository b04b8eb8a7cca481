// Tests that drivers are read, written and checked as a part of a Penstock object.
#include "api/cluster/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/cluster/penstock.h"

namespace penstock::api {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

Result<PenstockSpec> ParsedDrivers(const std::string& drivers, const PenstockSpec& base = {}) {
  return ParsePenstock(R"({"apiVersion": "penstock.io/v1alpha1", "kind": "Penstock",
                           "spec": {"drivers": )" +
                           drivers + "}}",
                       "Penstock p", {}, base);
}

constexpr char kDriver[] = R"json([{
  "name": "blue", "enabled": true, "default": false, "type": "vgpu",
  "image": {"repository": "nvcr.io/nvidia", "image": "driver", "version": "580.95.05",
            "imagePullPolicy": "Always", "imagePullSecrets": ["pull"]},
  "kernelModuleType": "open", "precompiled": true,
  "nodeSelector": {"pool": "blue"},
  "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}},
  "startupProbe": {"periodSeconds": 10}, "livenessProbe": {"periodSeconds": 30},
  "readinessProbe": {"periodSeconds": 5}, "args": ["--foo"],
  "env": [{"name": "HTTPS_PROXY", "value": "http://proxy"}],
  "prepareEnv": [{"name": "FORCE_REINSTALL", "value": "true"}],
  "files": {"repositories": "repo", "certificates": "certs", "moduleOptions": "options",
            "licenseSecret": "license", "license": "license-map", "licenseToken": false,
            "topology": "topology", "variables": "secret-env"},
  "peerMemory": true, "hostNetworkDriver": true,
  "resources": {"limits": {"memory": "200Mi"}},
  "tolerations": [{"operator": "Exists"}], "podSecurityContext": {"fsGroup": 7},
  "priorityClassName": "high", "labels": {"team": "gpu"}, "annotations": {"note": "any text"},
  "hostNetwork": true,
  "upgrade": {"automatic": true, "paused": true, "maxParallel": 4, "maxUnavailable": "10%",
    "wait": {"podSelector": "job in (a, b)", "timeout": "60000ms"},
    "podDeletion": {"force": true, "deleteEmptyDir": true, "timeout": "30000ms"},
    "drain": {"enable": true, "force": true, "deleteEmptyDir": true, "timeout": "40000ms",
              "podSelector": "!keep"},
    "canaries": {"nodeSelector": {"canary": "true"}, "count": "2", "soak": "600000ms"},
    "retries": {"count": 5, "first": "1000ms", "most": "9000ms"},
    "maxFailures": "3", "rollBack": false, "loadTimeout": "300000ms",
    "validationTimeout": "200000ms"}}])json";

TEST(Driver, HasADefaultForEveryFieldButItsName) {
  const auto parsed = ParsedDrivers(R"([{"name": "a"}])");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  DriverSpec wanted;
  wanted.name = "a";
  EXPECT_EQ(parsed->drivers.at(0), wanted);
  EXPECT_EQ(wanted.upgrade.max_unavailable, "25%");
}

TEST(Driver, WritesEveryFieldThatItReads) {
  const auto parsed = ParsedDrivers(kDriver);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  const DriverSpec& driver = parsed->drivers.at(0);
  EXPECT_EQ(driver.image.version, "580.95.05");
  EXPECT_THAT(driver.prepare_environment, ElementsAre(Pair("FORCE_REINSTALL", "true")));
  EXPECT_EQ(driver.files.module_options, "options");
  EXPECT_EQ(driver.upgrade.wait.timeout, seconds(60));
  EXPECT_EQ(driver.upgrade.drain.eviction.timeout, seconds(40));
  EXPECT_EQ(driver.upgrade.canaries.soak, minutes(10));
  EXPECT_FALSE(driver.upgrade.roll_back);
  EXPECT_EQ(nlohmann::json::parse(ToJson(*parsed)).at("drivers"), nlohmann::json::parse(kDriver));
}

TEST(Driver, ChangesTheDriverOfItsNameBelowIt) {
  const auto base = ParsedDrivers(kDriver);
  ASSERT_TRUE(base.ok());
  const auto parsed = ParsedDrivers(
      R"([{"name": "blue", "upgrade": {"paused": false, "retries": {"count": 0}}}, {"name": "red"}])",
      *base);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  ASSERT_EQ(parsed->drivers.size(), 2u);
  EXPECT_FALSE(parsed->drivers[0].upgrade.paused);
  EXPECT_EQ(parsed->drivers[0].upgrade.retries.count, 0);
  EXPECT_EQ(parsed->drivers[0].upgrade.retries.most, seconds(9));
  EXPECT_EQ(parsed->drivers[0].image.repository, "nvcr.io/nvidia");
}

TEST(Driver, ReportsAllMistakesAtOnceWithTheirPaths) {
  const auto parsed = ParsedDrivers(R"([
    {"name": "Blue", "type": "npu", "image": {"version": "5 8"}, "kernelModuleType": "shut",
     "default": true, "nodeSelector": {"a": "b"}, "files": {"repositories": "/etc"},
     "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}},
     "env": [{"name": "A=B"}],
     "upgrade": {"maxParallel": -1, "maxUnavailable": "101%", "maxFailures": "some",
                 "wait": {"podSelector": "a in b", "timeout": "soon"},
                 "retries": {"count": 101}, "drains": {}}},
    {"name": ")" + std::string(64, 'a') +
                                    R"("}, {"image": {}}])");
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(parsed.error().message(),
              AllOf(HasSubstr("spec.drivers[0].name: \"Blue\" is not the name"),
                    HasSubstr("spec.drivers[0].type: \"npu\" is none of"),
                    HasSubstr("spec.drivers[0].image.version: \"5 8\" cannot be a part"),
                    HasSubstr("spec.drivers[0].kernelModuleType: \"shut\" is none of"),
                    HasSubstr("spec.drivers[0].default: is for the nodes that no other"),
                    HasSubstr("spec.drivers[0].files.repositories: \"/etc\" is not the name"),
                    HasSubstr("nodeSelectorTerms is missing")));
  EXPECT_THAT(parsed.error().message(),
              AllOf(HasSubstr("spec.drivers[0].env: \"A=B\" is not the name"),
                    HasSubstr("spec.drivers[0].upgrade.maxParallel: is -1"),
                    HasSubstr("spec.drivers[0].upgrade.maxUnavailable: is neither a number"),
                    HasSubstr("spec.drivers[0].upgrade.maxFailures: is neither a number"),
                    HasSubstr("\"a in b\" is no requirement of labels"),
                    HasSubstr("spec.drivers[0].upgrade.wait.timeout"),
                    HasSubstr("spec.drivers[0].upgrade.retries.count: is 101"),
                    HasSubstr("\"spec.drivers[0].upgrade.drains\"; did you mean \"drain\"?"),
                    HasSubstr("aaa\" has more than 63 characters"),
                    HasSubstr("spec.drivers[2].name is missing")));
}

}  // namespace
}  // namespace penstock::api
