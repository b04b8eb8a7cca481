// ClusterPolicy's sections about the programs that one agent replaces: toolkit, device plugin, GPU
// Feature Discovery, MIG manager, validator.
#include "api/compat/nvidia/cluster_policy_fields.h"

namespace penstock::api::compat::internal {

namespace {

using base::Value;
using enum FieldType;

const FieldTopic kMachineChecks = {
    "spec.validator.{vfioPCI,vgpuManager,vgpuDevices}", FieldFate::kNotServed,
    "GPUs are not handed to virtual machines yet, so there is nothing to validate of them.",
    "sandboxWorkloads.enabled"};

void AddConfig(std::vector<ResourceField>& fields, const std::string& section) {
  fields.push_back({.path = section + ".config", .type = kMap});
}

/// An operand with `enabled`.
void AddServed(std::vector<ResourceField>& fields, const std::string& section,
               std::string_view text, ApplyField apply, OperandBlock block) {
  fields.push_back({.path = section, .type = kMap});
  fields.push_back(
      {.path = section + ".enabled", .type = kBool, .text = text, .unset = "true", .apply = apply});
  AddOperand(fields, section, block);
}

void EnablePlugin(PolicyWork& work, const Value& value) {
  work.spec.node.kubelet_allocator = value.boolean ? Switch::kOn : Switch::kOff;
}

void EnableDiscovery(PolicyWork& work, const Value& value) {
  if (value.boolean) return;
  LabelsConfig& labels = work.spec.node.labels;
  labels.node = labels.node_feature = Switch::kOff;
}

void EnableToolkit(PolicyWork& work, const Value& value) {
  work.spec.node.containers.configure_engine =
      value.boolean ? EngineSetup::kRuntime : EngineSetup::kOff;
}

/// Without a toolkit nothing is put there: hosts that cannot be written outside /run and /var have
/// it switched off, and a folder that cannot be made keeps a pod from starting.
void SetInstallFolder(PolicyWork& work, const Value& value) {
  std::string folder;
  SetAbsolutePath(work, value, folder);
  if (folder.empty() || !work.On("toolkit.enabled")) return;
  while (folder.ends_with('/')) folder.pop_back();
  work.spec.host.install_dir = folder + "/toolkit";
}

void EnableLayouts(PolicyWork& work, const Value& value) {
  work.spec.node.parts_by_label = value.boolean;
}

void SetLayouts(PolicyWork& work, const Value& value) {
  if (work.On("migManager.enabled")) SetMapName(work, value, work.spec.config_maps.layouts);
}

/// As the MIG manager: a variable of it switches that off.
void SetClientServices(PolicyWork& work, const Value& value) {
  if (work.On("migManager.enabled") && StopsClientServices(work))
    SetMapName(work, value, work.spec.config_maps.client_services);
}

void SetDefaultLayout(PolicyWork& work, const Value& value) {
  if (work.On("migManager.enabled")) work.spec.node.default_layout = value.text;
}

std::vector<ResourceField> PluginFields() {
  std::vector<ResourceField> fields;
  OperandBlock block = AgentBlock();
  block.apply_variables = PluginVariables;
  block.apply_arguments = PluginArguments;
  AddServed(fields, "devicePlugin",
            "Whether the agent offers GPUs to the kubelet (allocators.kubelet.enabled).",
            EnablePlugin, block);
  AddConfig(fields, "devicePlugin");
  fields.push_back({.path = "devicePlugin.config.name",
                    .text = "ConfigMap with a configuration for each kind of node, which the label "
                            "nvidia.com/device-plugin.config selects.",
                    .apply = [](PolicyWork& work, const Value& value) {
                      SetMapName(work, value, work.spec.config_maps.configurations);
                    }});
  fields.push_back({.path = "devicePlugin.config.default",
                    .text = "The configuration of nodes without that label; empty: they have none.",
                    .apply = [](PolicyWork& work, const Value& value) {
                      work.spec.config_maps.default_configuration = value.text;
                    }});
  fields.push_back({.path = "devicePlugin.mps", .type = kMap});
  fields.push_back({.path = "devicePlugin.mps.root",
                    .text = "Folder of MPS' pipes and logs on the nodes (sharing.serverRoots).",
                    .schema_default = "/run/nvidia/mps",
                    .apply = [](PolicyWork& work, const Value& value) {
                      GivePlugin(work, "--mps-root", value.text);
                    }});
  return fields;
}

std::vector<ResourceField> LayoutFields() {
  std::vector<ResourceField> fields = {
      {.path = "mig", .type = kMap},
      {.path = "mig.strategy",
       .text = "Under which resource names MIG devices are offered (parts.profiledStrategy).",
       .words = {"none", "single", "mixed"},
       .apply = [](PolicyWork& work,
                   const Value& value) { GivePlugin(work, "--mig-strategy", value.text); }},
  };
  OperandBlock block = AgentBlock();
  block.variables = &kItemsElsewhere;
  block.apply_variables = LayoutVariables;
  AddServed(fields, "migManager",
            "Whether the agent divides GPUs as the label nvidia.com/mig.config asks "
            "(parts.byLabel).",
            EnableLayouts, block);
  AddConfig(fields, "migManager");
  fields.push_back({.path = "migManager.config.name",
                    .text = "ConfigMap with a file of mig-parted under config.yaml.",
                    .apply = SetLayouts});
  fields.push_back({.path = "migManager.config.default",
                    .text = "The layout of nodes without the label nvidia.com/mig.config "
                            "(parts.defaultLayout).",
                    .schema_default = "all-disabled",
                    .words = {"all-disabled", ""},
                    .apply = SetDefaultLayout});
  fields.push_back({.path = "migManager.gpuClientsConfig", .type = kMap});
  fields.push_back({.path = "migManager.gpuClientsConfig.name",
                    .text = "ConfigMap with services of the host under clients.yaml: those that "
                            "have a GPU open are stopped while it is divided, and started again "
                            "(parts.clientServices), unless migManager.env has "
                            "WITH_SHUTDOWN_HOST_GPU_CLIENTS=false. Without it, no service is "
                            "stopped.",
                    .apply = SetClientServices});
  return fields;
}

std::vector<ResourceField> ValidatorFields() {
  std::vector<ResourceField> fields = {{.path = "validator", .type = kMap}};
  OperandBlock block = AgentBlock();
  block.variables = &kItemsElsewhere;
  block.apply_variables = ValidatorVariables;
  AddOperand(fields, "validator", block);
  for (const char* name : {"driver", "toolkit", "cuda", "plugin"}) {
    const std::string part = std::string("validator.") + name;
    fields.push_back({.path = part, .type = kMap});
    fields.push_back({.path = part + ".env",
                      .type = kEnvironment,
                      .text = "As validator.env.",
                      .topic = &kItemsElsewhere,
                      .apply = ValidatorVariables});
  }
  for (const char* name : {"vfioPCI", "vgpuManager", "vgpuDevices"}) {
    const std::string part = std::string("validator.") + name;
    fields.push_back({.path = part, .type = kMap});
    fields.push_back({.path = part + ".env", .type = kEnvironment, .topic = &kMachineChecks});
  }
  return fields;
}

}  // namespace

std::vector<ResourceField> OperandFields() {
  std::vector<ResourceField> fields;
  OperandBlock toolkit = AgentBlock();
  toolkit.apply_variables = ToolkitVariables;
  AddServed(fields, "toolkit",
            "Whether the agent configures its node's container engine: CDI where it is off, and "
            "the handler nvidia (containers.configureEngine: runtime).",
            EnableToolkit, toolkit);
  fields.push_back({.path = "toolkit.installDir",
                    .text = "The programs that engines execute are installed in its folder "
                            "toolkit.",
                    .schema_default = "/usr/local/nvidia",
                    .unset = "/usr/local/nvidia",
                    .apply = SetInstallFolder});
  OperandBlock discovery = AgentBlock();
  discovery.apply_variables = DiscoveryVariables;
  discovery.apply_arguments = DiscoveryArguments;
  for (auto& more : {PluginFields(), LayoutFields()})
    fields.insert(fields.end(), more.begin(), more.end());
  AddServed(fields, "gfd", "Whether the agent labels its node (labels.node).", EnableDiscovery,
            discovery);
  const auto checks = ValidatorFields();
  fields.insert(fields.end(), checks.begin(), checks.end());
  return fields;
}

}  // namespace penstock::api::compat::internal
