// Translates NVIDIADriver objects by their table.
#include "api/compat/nvidia/nvidia_driver.h"

#include "api/cluster/kube_json.h"
#include "api/cluster/label_selector.h"
#include "api/cluster/penstock_check.h"
#include "api/compat/nvidia/driver_section.h"
#include "api/labels.h"
#include "base/core/printable.h"

namespace penstock::api::compat {

namespace {

using base::Problems;
using base::Value;
using internal::FieldTopic;
using internal::PolicyWork;
using internal::ResourceField;
using internal::ResourceReading;
using enum internal::FieldType;

const FieldTopic kObjectManager = {
    "spec.manager.image", FieldFate::kOwnImage,
    "The init container that unloads an earlier driver has the operator's own image.", ""};

void SetNodeAffinity(PolicyWork& work, const Value& value) {
  if (value.map->empty()) return;
  work.driver.node_affinity = api::internal::KubeJsonOf(value);
  if (const auto affinity = NodeAffinity::Parse(work.driver.node_affinity); !affinity.ok())
    work.Problem(base::Printable(affinity.error().message()));
}

/// Which nodes the object is about.
std::vector<ResourceField> OwnerFields() {
  return {
      {.path = "default",
       .type = kBool,
       .text = "For the nodes that no other NVIDIADriver selects. Must not have a nodeSelector.",
       .schema_default = "false",
       .required = true,
       .apply = [](PolicyWork& work, const Value& value) { work.driver.fallback = value.boolean; }},
      {.path = "nodeSelector",
       .type = kTextMap,
       .text = "Labels of the nodes it is about.",
       .apply = [](PolicyWork& work,
                   const Value& value) { TakeLabels(work, value, work.driver.node_selector); }},
      {.path = "nodeAffinity",
       .type = kOpenMap,
       .text = "Further conditions on the nodes it is about; preferences have no effect.",
       .apply = SetNodeAffinity},
      {.path = "driverType",
       .text = "What the driver is for. Nodes of a vgpu-host-manager get no driver yet.",
       .schema_default = "gpu",
       .words = {"gpu", "vgpu", "vgpu-host-manager"},
       .unserved = {"vgpu-host-manager"},
       .unserved_text = "Host drivers of virtual GPUs are not served yet: the nodes of this object "
                        "get no driver.",
       .required = true,
       .apply = [](PolicyWork& work, const Value& value) { work.driver.type = value.text; }},
      {.path = "deploy",
       .type = kBool,
       .text = "Is no field of the resource, although examples have it: an NVIDIADriver applies "
               "while it exists.",
       .topic = &internal::kAloneElsewhere},
  };
}

std::vector<ResourceField> PodFields() {
  return {
      {.path = "labels",
       .type = kTextMap,
       .text = "Labels of the driver's pods.",
       .apply = [](PolicyWork& work,
                   const Value& value) { TakeLabels(work, value, work.driver.labels); }},
      {.path = "annotations",
       .type = kTextMap,
       .text = "Annotations of the driver's pods.",
       .apply =
           [](PolicyWork& work, const Value& value) {
             for (const Value::Entry& entry : *value.map)
               work.driver.annotations[entry.key] = entry.value.text;
           }},
      {.path = "tolerations",
       .type = kTolerations,
       .text = "Taints that the driver's pods tolerate, besides that of nvidia.com/gpu.",
       .apply =
           [](PolicyWork& work, const Value& value) {
             work.driver.tolerations = api::internal::KubeJsonOf(value);
           }},
      {.path = "priorityClassName",
       .text = "Priority of the driver's pods; if not set, system-node-critical.",
       .apply =
           [](PolicyWork& work, const Value& value) {
             if (!value.text.empty()) SetPriorityName(work, value, work.driver.priority_class);
           }},
      {.path = "podSecurityContext",
       .type = kOpenMap,
       .text = "Security context of the driver's pods.",
       .apply =
           [](PolicyWork& work, const Value& value) {
             if (!value.map->empty())
               work.driver.pod_security_context = api::internal::KubeJsonOf(value);
           }},
  };
}

/// What several fields say together.
void CheckDriver(const PolicyWork& work) {
  const DriverSpec& driver = work.driver;
  const auto problem = [&](std::string_view field, const std::string& message) {
    work.problems.Add({}, "spec." + std::string(field) + ": " + message);
  };
  for (const auto& [field, empty] : {std::pair("nodeSelector", driver.node_selector.empty()),
                                     std::pair("nodeAffinity", driver.node_affinity.empty())})
    if (driver.fallback && !empty)
      problem(field,
              "is set, and default is true, which means all nodes that no other NVIDIADriver "
              "selects; remove one of the two");
  for (const char* module : {"gds", "gdrcopy"})
    if (const std::string enabled = std::string(module) + ".enabled";
        driver.precompiled && work.On(enabled))
      problem(enabled,
              "its module is built for a driver that is compiled on the node, but usePrecompiled "
              "is true; set one of the two to false");
  const Value* version = work.reading.Find("version");
  const std::string& image = driver.image.image;
  if ((version == nullptr || version->text.empty()) &&
      image.find_first_of(":@", image.rfind('/') + 1) == image.npos)
    problem("version", "is not set, and the image " + base::Printable(image) +
                           " has no tag: set it to the version of the driver");
}

}  // namespace

base::Result<DriverTranslation> TranslateNvidiaDriver(std::string_view object) {
  const auto& fields = internal::NvidiaDriverFields();
  ASSIGN(auto read,
         internal::ReadResourceObject(object, "nvidia.com/v1alpha1", "NVIDIADriver", fields));
  auto& [document, problems, reading] = read;
  PenstockSpec none;
  std::vector<FieldAnswer> answers;
  PolicyWork work{none, reading, problems, answers, fields};
  if (const Value* metadata = document.Find("metadata"))
    if (const Value* name = metadata->Find("name")) work.driver.name = name->text;
  ApplyFields(work);
  if (!IsLabelValue(work.driver.name))
    problems.Add({},
                 "metadata.name: is the value of a label of the driver's nodes, and so has at "
                 "most 63 characters");
  CheckDriver(work);
  if (problems.empty())  // Clang 14 captures no structured binding by itself
    api::internal::CheckDriver(
        "", work.driver, [&problems = problems](std::string_view key, const std::string& message) {
          problems.Add({},
                       "as a driver of a Penstock object, " + std::string(key) + ": " + message);
        });
  if (!problems.empty()) return problems.ToError();
  for (const auto& more : {AnswersFor(reading, fields), reading.unknown})
    answers.insert(answers.end(), more.begin(), more.end());
  return DriverTranslation{std::move(work.driver), std::move(answers)};
}

namespace internal {

const std::vector<ResourceField>& NvidiaDriverFields() {
  static const std::vector<ResourceField> fields = [] {
    std::vector<ResourceField> all = OwnerFields();
    AddDriverSection(all, {.image = {.schema_default = "nvcr.io/nvidia/driver",
                                     .unset = "nvcr.io/nvidia/driver",
                                     .required = true},
                           .repositories = "repoConfig.name",
                           .license_map = "licensingConfig.name",
                           .topology = "virtualTopologyConfig.name",
                           .automatic = "true",
                           .arguments = AddDriverArguments,
                           .arguments_text = "Arguments of the driver's container, after init.",
                           .manager = &kObjectManager});
    const auto pods = PodFields();
    all.insert(all.end(), pods.begin(), pods.end());
    AddDriverModule(all, "gds", kStorageModule, nullptr);
    AddDriverModule(all, "gdrcopy", kCopyModule, nullptr);
    return all;
  }();
  return fields;
}

}  // namespace internal

}  // namespace penstock::api::compat
