// DeviceConfig's sections of which nothing takes effect yet, each answered once where it is on.
#include "api/compat/amd/device_config_fields.h"

namespace penstock::api::compat::internal {

namespace {

using enum FieldType;

const FieldTopic kDriverInstall = {
    "spec.driver.enable", FieldFate::kNotServed,
    "AMD's driver is not installed by containers yet: have amdgpu on the nodes, from the kernel or "
    "by packages, and set driver.enable to false. GPUs whose driver is loaded are served in any "
    "case.",
    "driver.enable"};
const FieldTopic kClaimDriver = {
    "spec.draDriver.enable", FieldFate::kNotServed,
    "Devices are not allocated by ResourceClaims yet; pods request amd.com/gpu.",
    "draDriver.enable"};
const FieldTopic kTestRuns = {
    "spec.testRunner.enable", FieldFate::kNotServed,
    "No tests of GPUs are run; the agents report health from the driver's readings and the "
    "kernel's log.",
    "testRunner.enable"};
const FieldTopic kRemediation = {
    "spec.remediationWorkflow.enable", FieldFate::kNotServed,
    "No Argo workflows are started: a GPU that is unhealthy is not handed out, and the Node's "
    "condition penstock.io/AcceleratorsReady says why.",
    "remediationWorkflow.enable"};
const FieldTopic kValidationJob = {
    "spec.validation", FieldFate::kElsewhere,
    "No Job validates the cluster: the object's status, `penstock nodes` and `penstock doctor` "
    "say what is wrong.",
    ""};

void AddKernelModule(SectionFields& driver) {
  driver.AddAnswered({{.path = "vfioConfig", .type = kMap},
                      {.path = "vfioConfig.deviceIDs", .type = kTexts},
                      {.path = "kernelModuleConfig", .type = kMap},
                      {.path = "kernelModuleConfig.loadArgs", .type = kTexts},
                      {.path = "kernelModuleConfig.unloadArgs", .type = kTexts},
                      {.path = "kernelModuleConfig.parameters", .type = kTexts},
                      {.path = "blacklist", .type = kBool},
                      {.path = "useSourceImage", .type = kBool},
                      {.path = "amdgpuInstallerRepoURL"},
                      {.path = "version"},
                      {.path = "image"}},
                     kDriverInstall);
}

void AddTls(SectionFields& driver, const std::string& map) {
  driver.AddAnswered({{.path = map, .type = kMap},
                      {.path = map + ".insecure", .type = kBool},
                      {.path = map + ".insecureSkipTLSVerify", .type = kBool}},
                     kDriverInstall);
}

void AddDriverImage(SectionFields& driver) {
  AddTls(driver, "imageRegistryTLS");
  driver.AddReference("imageRegistrySecret", "", &kDriverInstall, nullptr);
  driver.Add({.path = "imageSign", .type = kMap});
  for (const char* reference : {"imageSign.keySecret", "imageSign.certSecret"})
    driver.AddReference(reference, "", &kDriverInstall, nullptr);
  driver.AddAnswered({{.path = "imageBuild", .type = kMap},
                      {.path = "imageBuild.baseImageRegistry", .schema_default = "docker.io"},
                      {.path = "imageBuild.sourceImageRepo"}},
                     kDriverInstall);
  AddTls(driver, "imageBuild.baseImageRegistryTLS");
}

std::vector<ResourceField> DriverSectionFields() {
  std::vector<ResourceField> fields;
  SectionFields driver(fields, "driver");
  driver.Add({.path = "enable",
              .type = kBool,
              .schema_default = "true",
              .unset = "true",
              .topic = &kDriverInstall});
  driver.Add({.path = "driverType",
              .text = "GPUs are not handed to virtual machines yet; every node serves containers.",
              .schema_default = "container",
              .words = {"container", "vf-passthrough", "pf-passthrough"},
              .topic = &kAlone});
  AddKernelModule(driver);
  AddDriverImage(driver);
  driver.AddAnswered(
      {{.path = "upgradePolicy", .type = kMap},
       {.path = "upgradePolicy.enable", .type = kBool},
       {.path = "upgradePolicy.maxParallelUpgrades",
        .type = kInt,
        .schema_default = "1",
        .least = 0},
       {.path = "upgradePolicy.maxUnavailableNodes",
        .type = kNumberOrPercent,
        .schema_default = "25%"},
       {.path = "upgradePolicy.rebootRequired", .type = kBool, .schema_default = "true"}},
      kDriverInstall);
  driver.AddDrain("upgradePolicy.nodeDrainPolicy", false, kDriverInstall);
  driver.AddDrain("upgradePolicy.podDeletionPolicy", true, kDriverInstall);
  driver.AddAnswered({{.path = "tolerations", .type = kTolerations}}, kDriverInstall);
  return fields;
}

/// What an operand has that the agent does not replace.
void AddOperandPod(SectionFields& section, const FieldTopic& topic) {
  section.AddImage("image", "imagePullPolicy", topic);
  section.AddAnswered({{.path = "tolerations", .type = kTolerations}}, topic);
  section.AddReference("imageRegistrySecret", "", &topic, nullptr);
}

std::vector<ResourceField> ClaimSection() {
  std::vector<ResourceField> fields;
  SectionFields claims(fields, "draDriver");
  claims.AddAnswered({{.path = "enable", .type = kBool, .schema_default = "false"}}, kClaimDriver);
  AddOperandPod(claims, kClaimDriver);
  claims.AddUpgradePolicy(kClaimDriver);
  claims.AddAnswered(
      {{.path = "cmdLineArguments", .type = kTextMap}, {.path = "selector", .type = kTextMap}},
      kClaimDriver);
  return fields;
}

std::vector<ResourceField> TestSection() {
  std::vector<ResourceField> fields;
  SectionFields tests(fields, "testRunner");
  tests.AddAnswered({{.path = "enable", .type = kBool}}, kTestRuns);
  AddOperandPod(tests, kTestRuns);
  tests.AddReference("config", "", &kTestRuns, nullptr);
  tests.AddUpgradePolicy(kTestRuns);
  tests.AddAnswered(
      {{.path = "selector", .type = kTextMap},
       {.path = "logsLocation", .type = kMap},
       {.path = "logsLocation.mountPath", .schema_default = "/var/log/amd-test-runner"},
       {.path = "logsLocation.hostPath", .schema_default = "/var/log/amd-test-runner"},
       {.path = "logsLocation.logsExportSecrets", .type = kMaps}},
      kTestRuns);
  return fields;
}

std::vector<ResourceField> RemediationSection() {
  std::vector<ResourceField> fields;
  SectionFields remediation(fields, "remediationWorkflow");
  remediation.AddAnswered({{.path = "enable", .type = kBool}}, kRemediation);
  remediation.AddReference("config", "", &kRemediation, nullptr);
  remediation.AddAnswered(
      {{.path = "ttlForFailedWorkflows", .schema_default = "24h"},
       {.path = "testerImage"},
       {.path = "maxParallelWorkflows", .type = kInt, .schema_default = "0", .least = 0},
       {.path = "nodeRemediationTaints", .type = kMaps},
       {.path = "nodeRemediationLabels", .type = kTextMap},
       {.path = "autoStartWorkflow", .type = kBool, .schema_default = "true"}},
      kRemediation);
  remediation.AddDrain("nodeDrainPolicy", false, kRemediation);
  return fields;
}

std::vector<ResourceField> ValidationSection() {
  std::vector<ResourceField> fields;
  SectionFields validation(fields, "validation");
  AddOperandPod(validation, kValidationJob);
  validation.AddAnswered(
      {{.path = "ttlSecondsAfterFinished", .type = kInt, .schema_default = "1800", .least = 0},
       {.path = "activeDeadlineSeconds", .type = kInt, .schema_default = "600", .least = 1}},
      kValidationJob);
  return fields;
}

}  // namespace

std::vector<ResourceField> UnservedSections() {
  std::vector<ResourceField> fields = DriverSectionFields();
  for (const auto& section :
       {ClaimSection(), TestSection(), RemediationSection(), ValidationSection()})
    fields.insert(fields.end(), section.begin(), section.end());
  return fields;
}

}  // namespace penstock::api::compat::internal
