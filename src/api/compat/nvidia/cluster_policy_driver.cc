// ClusterPolicy's sections about the driver, and those about virtual machines. Driver containers
// are not served yet.
#include "api/compat/nvidia/cluster_policy_fields.h"

namespace penstock::api::compat::internal {

namespace {

using base::Value;
using enum FieldType;

const FieldTopic kDriverContainer = {
    "spec.driver.enabled", FieldFate::kNotServed,
    "A driver that is installed on the node is adopted; one in /run/nvidia/driver with "
    "node.paths.hostDriverRoot of a Penstock object. Driver containers are not served yet: install "
    "the driver on the nodes, and set driver.enabled to false.",
    "driver.enabled"};
const FieldTopic kPeerMemory = {
    "spec.driver.rdma.enabled", FieldFate::kNotServed,
    "The module nvidia-peermem is not loaded by a driver container yet: load it on the nodes, or "
    "use DMA-BUF, which needs no module.",
    "driver.rdma.enabled"};
const FieldTopic kStorage = {
    "spec.gds.enabled", FieldFate::kNotServed,
    "The module nvidia-fs is not loaded by a driver container yet. Where the node has it, "
    "containers get its device files with their GPUs.",
    "gds.enabled"};
const FieldTopic kCopy = {
    "spec.gdrcopy.enabled", FieldFate::kNotServed,
    "The module gdrdrv is not loaded by a driver container yet. Where the node has it, containers "
    "get its device file with their GPUs.",
    "gdrcopy.enabled"};
const FieldTopic kMachines = {
    "spec.sandboxWorkloads.enabled", FieldFate::kNotServed,
    "GPUs are not handed to virtual machines yet (passthrough, vGPU, KubeVirt, Kata, confidential "
    "computing); every node serves containers.",
    "sandboxWorkloads.enabled"};

void AddProbe(std::vector<ResourceField>& fields, const std::string& at, const FieldTopic& topic) {
  fields.push_back({.path = at, .type = kMap});
  for (const auto& [name, usual] :
       {std::pair("initialDelaySeconds", "60"), std::pair("periodSeconds", "10"),
        std::pair("timeoutSeconds", "60"), std::pair("failureThreshold", "120"),
        std::pair("successThreshold", "1")}) {
    ResourceField field = {
        .path = at + "." + name, .type = kInt, .usual = {usual}, .topic = &topic};
    if (std::string_view(name) != "initialDelaySeconds") field.least = 1;
    fields.push_back(field);
  }
}

void AddNamed(std::vector<ResourceField>& fields, const std::string& path, const char* name,
              const FieldTopic& topic) {
  fields.push_back({.path = path, .type = kMap});
  fields.push_back({.path = path + "." + name, .topic = &topic});
}

void GiveSwitch(PolicyWork& work, const char* flag, const Value& value) {
  if (value.boolean) GivePlugin(work, flag, "true");
}

}  // namespace

void AddDriverPolicy(std::vector<ResourceField>& fields, const std::string& at,
                     const FieldTopic& topic, std::string_view automatic) {
  fields.push_back({.path = at, .type = kMap});
  fields.push_back({.path = at + ".autoUpgrade",
                    .type = kBool,
                    .schema_default = automatic,
                    .usual = {"true"},
                    .topic = &topic});
  fields.push_back({.path = at + ".maxParallelUpgrades",
                    .type = kInt,
                    .schema_default = "1",
                    .least = 0,
                    .topic = &topic});
  fields.push_back({.path = at + ".maxUnavailable",
                    .type = kNumberOrPercent,
                    .schema_default = "25%",
                    .usual = {"25%"},
                    .topic = &topic});
  fields.push_back({.path = at + ".waitForCompletion", .type = kMap});
  fields.push_back({.path = at + ".waitForCompletion.podSelector", .topic = &topic});
  fields.push_back({.path = at + ".waitForCompletion.timeoutSeconds",
                    .type = kInt,
                    .schema_default = "0",
                    .least = 0,
                    .topic = &topic});
  for (const char* one : {".podDeletion", ".drain"}) {
    const std::string part = at + one;
    fields.push_back({.path = part, .type = kMap});
    for (const char* name : {".force", ".deleteEmptyDir", ".enable"})
      if (std::string_view(name) != ".enable" || std::string_view(one) == ".drain")
        fields.push_back(
            {.path = part + name, .type = kBool, .schema_default = "false", .topic = &topic});
    fields.push_back({.path = part + ".timeoutSeconds",
                      .type = kInt,
                      .schema_default = "300",
                      .least = 0,
                      .topic = &topic});
  }
  fields.push_back({.path = at + ".drain.podSelector", .topic = &topic});
}

void AddDriverProbes(std::vector<ResourceField>& fields, const std::string& at,
                     const FieldTopic& topic) {
  for (const char* probe : {"startupProbe", "livenessProbe", "readinessProbe"})
    AddProbe(fields, at + probe, topic);
}

std::vector<ResourceField> DriverFields() {
  std::vector<ResourceField> fields = {
      {.path = "driver", .type = kMap, .required = true},
      {.path = "driver.enabled", .type = kBool, .unset = "true", .topic = &kDriverContainer},
      {.path = "driver.usePrecompiled", .type = kBool, .topic = &kDriverContainer},
      {.path = "driver.useNvidiaDriverCRD",
       .type = kBool,
       .text = "NVIDIADriver objects are read and answered; their driver containers are not served "
               "yet either.",
       .topic = &kDriverContainer},
      {.path = "driver.useOpenKernelModules",
       .type = kBool,
       .text = "Has no effect in NVIDIA's operator either: driver.kernelModuleType replaced it.",
       .topic = &kAloneDeprecated},
      {.path = "driver.kernelModuleType",
       .schema_default = "auto",
       .words = {"auto", "open", "proprietary"},
       .topic = &kDriverContainer},
      {.path = "driver.secretEnv", .topic = &kDriverContainer},
      {.path = "driver.rdma", .type = kMap},
      {.path = "driver.rdma.enabled", .type = kBool, .topic = &kPeerMemory},
      {.path = "driver.rdma.useHostMofed", .type = kBool, .topic = &kPeerMemory},
  };
  AddOperand(fields, "driver", {.topic = &kDriverContainer});
  AddDriverProbes(fields, "driver.", kDriverContainer);
  AddDriverPolicy(fields, "driver.upgradePolicy", kDriverContainer, "false");
  fields.push_back({.path = "driver.manager", .type = kMap});
  AddOperand(fields, "driver.manager",
             {.topic = &kDriverContainer, .short_block = true, .without_arguments = true});
  AddNamed(fields, "driver.repoConfig", "configMapName", kDriverContainer);
  AddNamed(fields, "driver.certConfig", "name", kDriverContainer);
  AddNamed(fields, "driver.licensingConfig", "secretName", kDriverContainer);
  fields.push_back({.path = "driver.licensingConfig.configMapName", .topic = &kDriverContainer});
  fields.push_back({.path = "driver.licensingConfig.nlsEnabled",
                    .type = kBool,
                    .unset = "true",
                    .topic = &kDriverContainer});
  AddNamed(fields, "driver.virtualTopology", "config", kDriverContainer);
  AddNamed(fields, "driver.kernelModuleConfig", "name", kDriverContainer);
  fields.push_back({.path = "gds", .type = kMap});
  fields.push_back({.path = "gds.enabled",
                    .type = kBool,
                    .topic = &kStorage,
                    .apply = [](PolicyWork& work, const Value& value) {
                      GiveSwitch(work, "--gds-enabled", value);
                    }});
  AddOperand(fields, "gds", {.topic = &kStorage, .short_block = true});
  fields.push_back({.path = "gdrcopy", .type = kMap});
  fields.push_back({.path = "gdrcopy.enabled",
                    .type = kBool,
                    .topic = &kCopy,
                    .apply = [](PolicyWork& work, const Value& value) {
                      GiveSwitch(work, "--gdrcopy-enabled", value);
                    }});
  AddOperand(fields, "gdrcopy", {.topic = &kCopy, .short_block = true});
  return fields;
}

std::vector<ResourceField> SandboxFields() {
  std::vector<ResourceField> fields = {
      {.path = "sandboxWorkloads", .type = kMap},
      {.path = "sandboxWorkloads.enabled", .type = kBool, .topic = &kMachines},
      {.path = "sandboxWorkloads.defaultWorkload",
       .schema_default = "container",
       .words = {"container", "vm-passthrough", "vm-vgpu"},
       .topic = &kMachines},
      {.path = "sandboxWorkloads.mode",
       .schema_default = "kubevirt",
       .words = {"kubevirt", "kata"},
       .topic = &kMachines},
  };
  for (const char* name : {"vgpuManager", "vgpuDeviceManager", "vfioManager", "sandboxDevicePlugin",
                           "kataSandboxDevicePlugin", "ccManager", "kataManager"}) {
    const std::string section = name;
    fields.push_back({.path = section, .type = kMap});
    fields.push_back({.path = section + ".enabled", .type = kBool, .topic = &kMachines});
    AddOperand(fields, section, {.topic = &kMachines});
  }
  for (const char* name : {"vgpuManager.driverManager", "vfioManager.driverManager"}) {
    fields.push_back({.path = name, .type = kMap});
    AddOperand(fields, name, {.topic = &kMachines, .short_block = true, .without_arguments = true});
  }
  AddNamed(fields, "vgpuManager.kernelModuleConfig", "name", kMachines);
  AddNamed(fields, "vgpuDeviceManager.config", "name", kMachines);
  fields.push_back({.path = "vgpuDeviceManager.config.default",
                    .schema_default = "default",
                    .topic = &kMachines});
  fields.push_back({.path = "ccManager.defaultMode",
                    .words = {"on", "off", "devtools"},
                    .usual = {"on"},
                    .topic = &kMachines});
  fields.push_back({.path = "kataManager.config", .type = kMap});
  fields.push_back({.path = "kataManager.config.artifactsDir",
                    .schema_default = "/opt/nvidia-gpu-operator/artifacts/runtimeclasses",
                    .topic = &kMachines});
  fields.push_back(
      {.path = "kataManager.config.runtimeClasses", .type = kMaps, .topic = &kMachines});
  return fields;
}

}  // namespace penstock::api::compat::internal
