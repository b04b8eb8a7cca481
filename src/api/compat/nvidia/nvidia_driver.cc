// Reads NVIDIADriver objects by their table. Driver containers are not served yet.
#include "api/compat/nvidia/nvidia_driver.h"

#include <algorithm>

#include "api/cluster/kube_json.h"
#include "api/cluster/penstock_check.h"
#include "api/compat/nvidia/cluster_policy_fields.h"
#include "base/core/printable.h"

namespace penstock::api::compat {

namespace {

using base::Problems;
using base::Value;
using internal::FieldTopic;
using internal::ResourceField;
using internal::ResourceReading;
using enum internal::FieldType;

const FieldTopic kDriverObject = {
    "spec", FieldFate::kNotServed,
    "A driver that is installed on the node is adopted; one in /run/nvidia/driver with "
    "node.paths.hostDriverRoot of a Penstock object. Driver containers are not served yet: install "
    "the driver on the nodes.",
    ""};

std::string TextAt(const ResourceReading& reading, std::string_view path) {
  const Value* value = reading.Find(path);
  return value != nullptr ? value->text : "";
}

/// Which nodes the object is about takes effect: it decides who is answered for a node.
std::vector<ResourceField> OwnerFields() {
  return {
      {.path = "default",
       .type = kBool,
       .text = "For the nodes that no other NVIDIADriver selects. Must not have a nodeSelector.",
       .schema_default = "false",
       .required = true},
      {.path = "nodeSelector", .type = kTextMap, .text = "Labels of the nodes it is about."},
      {.path = "nodeAffinity",
       .type = kOpenMap,
       .text = "Further conditions on the nodes it is about."},
      {.path = "driverType",
       .text = "Drivers of virtual GPUs (vgpu, vgpu-host-manager) are not adopted: their nodes are "
               "reported without a usable driver.",
       .schema_default = "gpu",
       .words = {"gpu", "vgpu", "vgpu-host-manager"},
       .required = true,
       .topic = &internal::kAlone},
      {.path = "deploy",
       .type = kBool,
       .text = "Is no field of the resource, although examples have it: an NVIDIADriver applies "
               "while it exists.",
       .topic = &internal::kAloneElsewhere},
  };
}

std::vector<ResourceField> ContainerFields() {
  const FieldTopic* topic = &kDriverObject;
  std::vector<ResourceField> fields = {
      {.path = "usePrecompiled", .type = kBool, .topic = topic},
      {.path = "useOpenKernelModules",
       .type = kBool,
       .text = "Has no effect in NVIDIA's operator either: kernelModuleType replaced it.",
       .topic = &internal::kAloneDeprecated},
      {.path = "kernelModuleType",
       .schema_default = "auto",
       .words = {"auto", "open", "proprietary"},
       .topic = topic},
      {.path = "repository", .topic = topic},
      {.path = "image",
       .schema_default = "nvcr.io/nvidia/driver",
       .required = true,
       .topic = topic},
      {.path = "version", .topic = topic},
      {.path = "imagePullPolicy", .usual = {"IfNotPresent"}, .topic = topic},
      {.path = "imagePullSecrets", .type = kTexts, .topic = topic},
      {.path = "args", .type = kTexts, .topic = topic},
      {.path = "env", .type = kEnvironment, .topic = topic},
      {.path = "secretEnv", .topic = topic},
      {.path = "resources", .type = kResources, .topic = topic},
      {.path = "hostNetwork", .type = kBool, .topic = topic},
      {.path = "labels", .type = kTextMap, .topic = topic},
      {.path = "annotations", .type = kTextMap, .topic = topic},
      {.path = "tolerations", .type = kTolerations, .topic = topic},
      {.path = "priorityClassName", .topic = topic},
      {.path = "podSecurityContext", .type = kOpenMap, .topic = topic},
      {.path = "rdma", .type = kMap},
      {.path = "rdma.enabled", .type = kBool, .topic = topic},
      {.path = "rdma.useHostMofed", .type = kBool, .topic = topic},
      {.path = "licensingConfig", .type = kMap},
      {.path = "licensingConfig.secretName", .topic = topic},
      {.path = "licensingConfig.name", .topic = topic},
      {.path = "licensingConfig.nlsEnabled", .type = kBool, .unset = "true", .topic = topic},
  };
  for (const char* map :
       {"repoConfig", "certConfig", "virtualTopologyConfig", "kernelModuleConfig"}) {
    fields.push_back({.path = map, .type = kMap});
    fields.push_back({.path = std::string(map) + ".name", .topic = topic});
  }
  return fields;
}

void CheckDriver(const ResourceReading& reading, Problems& problems) {
  const auto on = [&](std::string_view path) {
    return IsFieldOn(reading, internal::NvidiaDriverFields(), path);
  };
  const Value* selector = reading.Find("nodeSelector");
  if (on("default") && selector != nullptr && !selector->map->empty())
    problems.Add({},
                 "spec.nodeSelector: is set, and default is true, which means all nodes that "
                 "no other NVIDIADriver selects; remove one of the two");
  for (const char* module : {"gds", "gdrcopy"})
    if (on("usePrecompiled") && on(std::string(module) + ".enabled"))
      problems.Add({}, "spec." + std::string(module) +
                           ".enabled: its module is built for a driver that is compiled on the "
                           "node, but usePrecompiled is true; set one of the two to false");
  if (selector == nullptr) return;
  std::map<std::string, std::string> labels;
  for (const Value::Entry& entry : *selector->map) labels[entry.key] = entry.value.text;
  api::internal::CheckLabelMap("", labels, [&](std::string_view, const std::string& message) {
    problems.Add({}, "spec.nodeSelector: " + base::Printable(message));
  });
}

DriverRequest RequestOf(const ResourceReading& reading, const Value& document) {
  DriverRequest request;
  if (const Value* metadata = document.Find("metadata"))
    if (const Value* name = metadata->Find("name")) request.name = name->text;
  request.is_default = IsFieldOn(reading, internal::NvidiaDriverFields(), "default");
  if (const Value* selector = reading.Find("nodeSelector"))
    for (const Value::Entry& entry : *selector->map)
      request.node_selector[entry.key] = entry.value.text;
  if (const Value* affinity = reading.Find("nodeAffinity"))
    request.node_affinity = api::internal::KubeJsonOf(*affinity);
  const std::string type = TextAt(reading, "driverType");
  request.driver_type = type.empty() ? "gpu" : type;
  request.version = TextAt(reading, "version");
  request.precompiled = IsFieldOn(reading, internal::NvidiaDriverFields(), "usePrecompiled");
  return request;
}

}  // namespace

base::Result<DriverTranslation> TranslateNvidiaDriver(std::string_view object) {
  ASSIGN(const Value document, base::ParseJson(object, "NVIDIADriver"));
  Problems problems{internal::NameOfObject(document, "NVIDIADriver")};
  internal::CheckKind(document, "nvidia.com/v1alpha1", "NVIDIADriver", problems);
  const Value* spec = document.Find("spec");
  const ResourceReading reading = internal::ReadResource(
      spec != nullptr ? *spec : Value(), internal::NvidiaDriverFields(), {}, problems);
  CheckDriver(reading, problems);
  if (!problems.empty()) return problems.ToError();
  DriverTranslation translation{RequestOf(reading, document),
                                AnswersFor(reading, internal::NvidiaDriverFields())};
  // That nothing is installed is said whatever the object sets.
  if (std::ranges::find(translation.answers, kDriverObject.field, &FieldAnswer::field) ==
      translation.answers.end())
    translation.answers.insert(
        translation.answers.begin(),
        {std::string(kDriverObject.field), kDriverObject.fate, std::string(kDriverObject.text)});
  translation.answers.insert(translation.answers.end(), reading.unknown.begin(),
                             reading.unknown.end());
  return translation;
}

namespace internal {

const std::vector<ResourceField>& NvidiaDriverFields() {
  static const std::vector<ResourceField> fields = [] {
    std::vector<ResourceField> all = OwnerFields();
    const auto container = ContainerFields();
    all.insert(all.end(), container.begin(), container.end());
    AddDriverProbes(all, "", kDriverObject);
    AddDriverPolicy(all, "upgradePolicy", kDriverObject, "true");
    all.push_back({.path = "manager", .type = kMap});
    AddOperand(all, "manager",
               {.topic = &kDriverObject, .short_block = true, .without_arguments = true});
    for (const char* module : {"gds", "gdrcopy"}) {
      all.push_back({.path = module, .type = kMap});
      all.push_back(
          {.path = std::string(module) + ".enabled", .type = kBool, .topic = &kDriverObject});
      AddOperand(all, module, {.topic = &kDriverObject, .short_block = true});
    }
    return all;
  }();
  return fields;
}

}  // namespace internal

}  // namespace penstock::api::compat
