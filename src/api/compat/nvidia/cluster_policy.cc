// Translates a ClusterPolicy by its table: applies each field, then what several fields ask of the
// programs that the agent replaces.
#include "api/compat/nvidia/cluster_policy.h"

#include <algorithm>

#include "api/cluster/penstock_check.h"
#include "api/compat/nvidia/cluster_policy_fields.h"
#include "api/compat/nvidia/driver_names.h"
#include "api/compat/nvidia/exporter_options.h"
#include "api/compat/nvidia/node_status.h"
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

constexpr std::string_view kDriverSection = "driver.", kDriverEnabled = "driver.enabled",
                           kDriverObjects = "driver.useNvidiaDriverCRD";

NodeMarks MarksOf(const PolicyWork& work) {
  NodeMarks marks = AllPolicyMarks();
  if (!work.On(kDriverEnabled) || !work.On("driver.upgradePolicy.autoUpgrade"))
    marks.annotations.clear();
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

PenstockSpec StartOfNodes() {
  PenstockSpec spec;
  spec.node.local_allocator = Switch::kOff;
  spec.node.http.listen = ":9400";
  // Programs wait for these files, with any policy.
  spec.node.validation.directory = kValidationFolder;
  spec.node.cdi.enabled = Switch::kOn;
  return spec;
}

/// What the section about the driver asks for, which NVIDIADriver objects are to say instead.
FieldAnswer AnswerForDriverObjects(const ResourceReading& reading) {
  std::vector<std::string> others;
  for (const ResourceField& field : internal::ClusterPolicyFields())
    if (field.path.starts_with(kDriverSection) && field.topic == nullptr &&
        field.path != kDriverEnabled && field.path != kDriverObjects && IsFieldSet(reading, field))
      others.push_back(field.path);
  return {"spec." + std::string(kDriverObjects), FieldFate::kElsewhere,
          "NVIDIADriver objects say which drivers there are, and this object's section about the "
          "driver has no effect, as in NVIDIA's operator." +
              (others.empty() ? "" : " Set here: " + base::Join(others, ", ") + ".")};
}

/// The driver that the object describes, or why it describes none.
void TakeDriver(PolicyWork& work, PolicyTranslation& translation) {
  const bool objects = work.On(kDriverObjects);
  if (!work.On(kDriverEnabled)) {
    translation.no_driver_objects = "has driver.enabled false";
  } else if (!objects) {
    translation.no_driver_objects = "has driver.useNvidiaDriverCRD false";
    work.driver.fallback = true;
    translation.spec.drivers.push_back(std::move(work.driver));
  } else {
    translation.answers.push_back(AnswerForDriverObjects(work.reading));
  }
}

}  // namespace

base::Result<PolicyTranslation> TranslateClusterPolicy(std::string_view object) {
  ASSIGN(auto read, internal::ReadResourceObject(object, "nvidia.com/v1", "ClusterPolicy",
                                                 internal::ClusterPolicyFields(), kPolicyAliases));
  auto& [document, problems, reading] = read;
  PolicyTranslation translation{.spec = StartOfNodes()};
  PolicyWork work{translation.spec, reading, problems, translation.answers,
                  internal::ClusterPolicyFields()};
  if (!work.On(kDriverEnabled) || work.On(kDriverObjects)) work.without = kDriverSection;
  ApplyFields(work);
  ApplyPrograms(work);
  translation.spec.runtime_classes = ClassesOf(work);
  translation.spec.marks = MarksOf(work);
  TakeDriver(work, translation);
  if (problems.empty()) {
    // Clang 14, of the fuzzing build, captures no structured binding by itself.
    const auto report = [&problems = problems](std::string_view key, const std::string& message) {
      problems.Add({}, "as a Penstock object, " + std::string(key) + ": " + message);
    };
    api::internal::CheckPenstock(translation.spec, report);
    api::internal::Check(translation.spec.node, report);
  }
  if (!problems.empty()) return problems.ToError();
  const std::string without = "spec." + std::string(work.without);
  for (const FieldAnswer& answer : AnswersFor(reading, work.fields))
    if (work.without.empty() || !answer.field.starts_with(without) ||
        answer.fate == FieldFate::kDeprecated)
      translation.answers.push_back(answer);
  SortAnswers(translation.answers, work.fields);
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

/// Labels of a node that serves containers, and how NVIDIA's operator marks its nodes.
NodeMarks AllPolicyMarks() {
  NodeMarks marks;
  for (const char* service :
       {"driver", "gpu-feature-discovery", "container-toolkit", "device-plugin", "dcgm",
        "dcgm-exporter", "node-status-exporter", "operator-validator", "client"})
    marks.labels["nvidia.com/gpu.deploy." + std::string(service)] = "true";
  marks.annotations[std::string(kUpgradeEnabled)] = "true";
  marks.present_label = "nvidia.com/gpu.present";
  marks.opt_out_label = "nvidia.com/gpu.deploy.operands";
  return marks;
}

}  // namespace penstock::api::compat
