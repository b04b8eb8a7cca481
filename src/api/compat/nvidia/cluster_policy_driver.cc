// ClusterPolicy's sections about the driver, and those about virtual machines.
#include "api/compat/nvidia/driver_section.h"

namespace penstock::api::compat::internal {

namespace {

using base::Value;
using enum FieldType;

const FieldTopic kDriverManager = {
    "spec.driver.manager.image", FieldFate::kOwnImage,
    "The init container that unloads an earlier driver has the operator's own image.",
    "driver.enabled"};
const FieldTopic kMachines = {
    "spec.sandboxWorkloads.enabled", FieldFate::kNotServed,
    "GPUs are not handed to virtual machines yet (passthrough, vGPU, KubeVirt, Kata, confidential "
    "computing); every node serves containers.",
    "sandboxWorkloads.enabled"};

void AddNamed(std::vector<ResourceField>& fields, const std::string& path, const char* name,
              const FieldTopic& topic) {
  fields.push_back({.path = path, .type = kMap});
  fields.push_back({.path = path + "." + name, .topic = &topic});
}

void GiveSwitch(PolicyWork& work, const char* flag, const Value& value) {
  if (value.boolean) GivePlugin(work, flag, "true");
}

/// They replace all arguments in NVIDIA's operator, so the first one is that of the program.
void ReplaceDriverArguments(PolicyWork& work, const Value& value) {
  AddDriverArguments(work, value);
  std::vector<std::string>& arguments = work.driver.arguments;
  if (arguments.empty()) return;
  if (arguments.front() == "init") {
    arguments.erase(arguments.begin());
  } else {
    work.Answer("", FieldFate::kElsewhere,
                "Follow init, with which the driver's container starts here in any case.");
  }
}

}  // namespace

std::vector<ResourceField> DriverFields() {
  std::vector<ResourceField> fields = {
      {.path = "driver", .type = kMap},
      {.path = "driver.enabled",
       .type = kBool,
       .text = "Whether there is a driver in containers, for all nodes that no other one selects.",
       .unset = "true"},
      {.path = "driver.useNvidiaDriverCRD",
       .type = kBool,
       .text =
           "Whether NVIDIADriver objects say which drivers there are, instead of this section."},
  };
  AddDriverSection(fields, {.at = "driver.",
                            .image = {.pattern = kImagePattern},
                            .repositories = "repoConfig.configMapName",
                            .license_map = "licensingConfig.configMapName",
                            .topology = "virtualTopology.config",
                            .automatic = "false",
                            .arguments = ReplaceDriverArguments,
                            .arguments_text = "Arguments of the driver's container. It starts with "
                                              "init in any case.",
                            .manager = &kDriverManager});
  AddDriverModule(fields, "gds", kStorageModule, [](PolicyWork& work, const Value& value) {
    GiveSwitch(work, "--gds-enabled", value);
  });
  AddDriverModule(fields, "gdrcopy", kCopyModule, [](PolicyWork& work, const Value& value) {
    GiveSwitch(work, "--gdrcopy-enabled", value);
  });
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
