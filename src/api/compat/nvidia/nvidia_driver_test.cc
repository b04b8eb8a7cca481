// Tests what NVIDIADriver and GPUCluster objects are answered.
#include "api/compat/nvidia/nvidia_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/compat/nvidia/gpu_cluster.h"
#include "base/core/json_text.h"
#include "base/yaml.h"

namespace penstock::api::compat {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::string ObjectOf(const std::string& kind, const std::string& spec) {
  const auto document = base::ParseYaml(
      "apiVersion: nvidia.com/v1alpha1\nkind: " + kind + "\nmetadata: {name: one}\nspec:\n" + spec,
      "sample");
  EXPECT_TRUE(document.ok()) << document.error().message();
  return document.ok() ? base::JsonOf<nlohmann::ordered_json>(*document).dump() : "null";
}

constexpr char kSample[] = R"(
  usePrecompiled: false
  driverType: gpu
  repository: nvcr.io/nvidia
  image: driver
  version: "595.91.07"
  imagePullPolicy: IfNotPresent
  imagePullSecrets: []
  nodeSelector: {pool: a}
  manager: {}
  upgradePolicy:
    autoUpgrade: true
    maxParallelUpgrades: 1
    maxUnavailable: 25%
    waitForCompletion: {timeoutSeconds: 0, podSelector: ""}
    podDeletion: {force: false, timeoutSeconds: 300, deleteEmptyDir: false}
  rdma: {enabled: false, useHostMofed: false}
  gds: {enabled: false}
  repoConfig: {name: ""}
  licensingConfig: {secretName: "", nlsEnabled: true}
)";

DriverTranslation DriverOf(const std::string& spec) {
  const auto translation = TranslateNvidiaDriver(ObjectOf("NVIDIADriver", spec));
  EXPECT_TRUE(translation.ok()) << translation.error().message();
  return translation.ok() ? *translation : DriverTranslation{};
}

TEST(NvidiaDriver, BecomesADriverWithItsNameThatIsUpgradedByItself) {
  const DriverTranslation translation = DriverOf(kSample);
  const DriverSpec& driver = translation.driver;
  EXPECT_EQ(driver.name, "one");
  EXPECT_TRUE(driver.enabled);
  EXPECT_FALSE(driver.fallback);
  EXPECT_THAT(driver.node_selector, ElementsAre(Pair("pool", "a")));
  EXPECT_EQ(driver.type, "gpu");
  EXPECT_EQ(driver.image,
            (ImageParts{"nvcr.io/nvidia", "driver", "595.91.07", "IfNotPresent", {}}));
  UpgradePolicy usual;
  usual.automatic = true;
  EXPECT_EQ(driver.upgrade, usual);
  EXPECT_THAT(translation.answers, IsEmpty());
}

TEST(NvidiaDriver, HasTheDefaultsOfItsDefinition) {
  const DriverTranslation translation =
      DriverOf("  default: true\n  deploy: true\n  version: \"580\"\n");
  EXPECT_TRUE(translation.driver.fallback);
  EXPECT_EQ(translation.driver.image.image, "nvcr.io/nvidia/driver");
  EXPECT_EQ(translation.driver.priority_class, "system-node-critical");
  EXPECT_TRUE(translation.driver.upgrade.automatic) << "also without an upgradePolicy";
  EXPECT_TRUE(DriverOf("  version: a\n  upgradePolicy: {}\n").driver.upgrade.automatic);
  ASSERT_EQ(translation.answers.size(), 1u);
  EXPECT_EQ(translation.answers[0].field, "spec.deploy");
}

TEST(NvidiaDriver, ReportsWhatCannotBeMeantAtOnce) {
  const auto translation = TranslateNvidiaDriver(ObjectOf("NVIDIADriver", R"(
  default: true
  nodeSelector: {"a b": c}
  driverType: cpu
  usePrecompiled: true
  gds: {enabled: true}
  upgradePolicy: {drain: {timeoutSeconds: -1}}
)"));
  ASSERT_FALSE(translation.ok());
  EXPECT_THAT(translation.error().message(),
              AllOf(HasSubstr("NVIDIADriver one: spec.driverType: \"cpu\" is none of gpu, vgpu"),
                    HasSubstr("spec.nodeSelector: is set, and default is true"),
                    HasSubstr("spec.version: is not set"),
                    HasSubstr("spec.nodeSelector: \"a b\" is not a label key"),
                    HasSubstr("spec.gds.enabled: its module is built"),
                    HasSubstr("spec.upgradePolicy.drain.timeoutSeconds: is -1")));
}

TEST(GpuCluster, SaysWhatIsNotServedAndWhatToUse) {
  const auto answers = AnswerGpuCluster(ObjectOf("GPUCluster", R"(
  draDriver: {image: dra-driver-nvidia-gpu, computeDomains: {enabled: true}, featureGates: {A: true}}
  dcgmExporter: {enabled: true}
  new: 1
)"));
  ASSERT_TRUE(answers.ok()) << answers.error().message();
  ASSERT_EQ(answers->size(), 2u);
  EXPECT_THAT((*answers)[0].text, HasSubstr("Use a ClusterPolicy or a Penstock object"));
  EXPECT_EQ((*answers)[1].field, "spec.new");
}

TEST(GpuCluster, ReportsWhatCannotBeMeant) {
  const auto answers =
      AnswerGpuCluster(ObjectOf("GPUCluster", "  draDriver: {featureGates: {A: maybe}}\n"));
  ASSERT_FALSE(answers.ok());
  EXPECT_THAT(answers.error().message(), HasSubstr("spec.draDriver.featureGates[A]: is a string"));
}

}  // namespace
}  // namespace penstock::api::compat
