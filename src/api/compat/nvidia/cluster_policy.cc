// Translates a ClusterPolicy by its table: applies each field, then what several fields ask of the
// programs that the agent replaces.
#include "api/compat/nvidia/cluster_policy.h"

#include <algorithm>

#include "api/cluster/penstock_check.h"
#include "api/compat/nvidia/cluster_policy_fields.h"
#include "api/compat/nvidia/exporter_options.h"
#include "api/config/node_config_check.h"
#include "base/core/strings.h"

namespace penstock::api::compat {

namespace {

using base::Problems;
using base::Value;
using internal::PolicyWork;
using internal::ResourceField;
using internal::ResourceReading;

constexpr internal::FieldAlias kPolicyAliases[] = {
    {"gpuFeatureDiscovery", "gfd"},
    {"driver.upgradePolicy.gpuPodDeletion", "driver.upgradePolicy.podDeletion"}};

/// Labels of a node that serves containers, and how NVIDIA's operator marks its nodes.
NodeMarks MarksOf(const PolicyWork& work) {
  NodeMarks marks;
  for (const char* service :
       {"driver", "gpu-feature-discovery", "container-toolkit", "device-plugin", "dcgm",
        "dcgm-exporter", "node-status-exporter", "operator-validator", "client"})
    marks.labels["nvidia.com/gpu.deploy." + std::string(service)] = "true";
  if (work.On("driver.enabled") && work.On("driver.upgradePolicy.autoUpgrade"))
    marks.annotations["nvidia.com/gpu-driver-upgrade-enabled"] = "true";
  marks.present_label = "nvidia.com/gpu.present";
  marks.opt_out_label = "nvidia.com/gpu.deploy.operands";
  return marks;
}

/// The handler is the same for all: the agent's container runtime has one way to find the driver.
std::vector<RuntimeClassSpec> ClassesOf(const PolicyWork& work) {
  std::vector<RuntimeClassSpec> classes = {{work.runtime_class, "nvidia"}};
  if (work.On("cdi.enabled"))
    for (const char* name : {"nvidia-cdi", "nvidia-legacy"})
      if (name != work.runtime_class) classes.push_back({name, "nvidia"});
  return classes;
}

/// What the translation of a program's settings remarks: "spec.x: has no effect".
void TakeRemarks(PolicyWork& work, const std::vector<std::string>& remarks, FieldFate fate) {
  for (const std::string& remark : remarks) {
    const auto colon = remark.find(": ");
    if (colon == std::string::npos) continue;
    work.answers.push_back({remark.substr(0, colon), fate, remark.substr(colon + 2)});
  }
}

void Take(PolicyWork& work, const base::Result<Translation>& translation) {
  if (!translation.ok()) {
    for (const std::string& line : base::Split(translation.error().message(), '\n'))
      work.problems.Add({}, line);
    return;
  }
  work.spec.node = translation->config;
  TakeRemarks(work, translation->not_yet, FieldFate::kNotServed);
  TakeRemarks(work, translation->remarks, FieldFate::kElsewhere);
}

/// The operator determines paths from the mounts of the agents' pods.
void TakePaths(PenstockSpec& spec) {
  PathsConfig& paths = spec.node.paths;
  if (!paths.host_driver_root.empty()) spec.host.driver_root = paths.host_driver_root;
  paths = {.host_dev_root = paths.host_dev_root};
}

void ApplyPrograms(PolicyWork& work) {
  std::vector<Given> settings = work.labels;  // the plugin's take precedence
  settings.insert(settings.end(), work.plugin.begin(), work.plugin.end());
  Take(work, TranslateDevicePlugin("", "", settings, work.spec.node));
  Take(work, TranslateExporter("", "", work.exporter, work.spec.node));
  TakePaths(work.spec);
}

void ApplyFields(PolicyWork& work) {
  for (const ResourceField& field : internal::ClusterPolicyFields()) {
    if (field.apply == nullptr) continue;
    const Value* given = work.reading.Find(field.path);
    std::optional<Value> otherwise;
    const auto dot = field.path.rfind('.');
    const bool inside = dot != std::string::npos &&
                        work.reading.Find(std::string_view(field.path).substr(0, dot)) != nullptr;
    // A default of the definition applies where the map around it is set.
    if (given == nullptr && (inside || !field.unset.empty())) otherwise = DefaultOf(field);
    if (given == nullptr && !otherwise) continue;
    work.field = "spec." + field.path;
    field.apply(work, given != nullptr ? *given : *otherwise);
  }
}

PenstockSpec StartOfNodes() {
  PenstockSpec spec;
  spec.node.local_allocator = Switch::kOff;
  spec.node.http.listen = ":9400";
  // Programs wait for these files, with any policy.
  spec.node.validation.directory = "/run/nvidia/validations";
  spec.node.cdi.enabled = Switch::kOn;
  return spec;
}

/// The sections' order is that of the table.
void Order(std::vector<FieldAnswer>& answers) {
  const auto place = [](const FieldAnswer& answer) {
    const auto& fields = internal::ClusterPolicyFields();
    const auto found = std::ranges::find_if(fields, [&](const ResourceField& field) {
      const std::string path = "spec." + field.path;
      return answer.field.starts_with(path) &&
             (answer.field.size() == path.size() || answer.field[path.size()] == '[') &&
             field.type != internal::FieldType::kMap;
    });
    return found - fields.begin();
  };
  std::ranges::stable_sort(answers, {}, place);
}

}  // namespace

base::Result<PolicyTranslation> TranslateClusterPolicy(std::string_view object) {
  ASSIGN(const Value document, base::ParseJson(object, "ClusterPolicy"));
  Problems problems{internal::NameOfObject(document, "ClusterPolicy")};
  internal::CheckKind(document, "nvidia.com/v1", "ClusterPolicy", problems);
  const Value* spec = document.Find("spec");
  const ResourceReading reading = internal::ReadResource(
      spec != nullptr ? *spec : Value(), internal::ClusterPolicyFields(), kPolicyAliases, problems);
  PolicyTranslation translation{.spec = StartOfNodes()};
  PolicyWork work{translation.spec, reading, problems, translation.answers};
  ApplyFields(work);
  ApplyPrograms(work);
  translation.spec.runtime_classes = ClassesOf(work);
  translation.spec.marks = MarksOf(work);
  if (problems.empty()) {
    const auto report = [&](std::string_view key, const std::string& message) {
      problems.Add({}, "as a Penstock object, " + std::string(key) + ": " + message);
    };
    api::internal::CheckPenstock(translation.spec, report);
    api::internal::Check(translation.spec.node, report);
  }
  if (!problems.empty()) return problems.ToError();
  for (const FieldAnswer& answer : AnswersFor(reading, internal::ClusterPolicyFields()))
    translation.answers.push_back(answer);
  Order(translation.answers);
  for (const auto& more : {reading.aliases, reading.unknown})
    translation.answers.insert(translation.answers.end(), more.begin(), more.end());
  return translation;
}

namespace internal {

const std::vector<ResourceField>& ClusterPolicyFields() {
  static const std::vector<ResourceField> fields = [] {
    std::vector<ResourceField> all;
    for (auto& section :
         {OperatorFields(), DriverFields(), OperandFields(), MonitoringFields(), SandboxFields()})
      all.insert(all.end(), section.begin(), section.end());
    return all;
  }();
  return fields;
}

}  // namespace internal

}  // namespace penstock::api::compat
