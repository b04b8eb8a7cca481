// Reads GPUCluster objects by their table.
#include "api/compat/nvidia/gpu_cluster.h"

#include <algorithm>

#include "api/compat/nvidia/cluster_policy_fields.h"

namespace penstock::api::compat {

namespace {

using base::Problems;
using base::Value;
using internal::FieldTopic;
using internal::ResourceField;
using internal::ResourceReading;
using enum internal::FieldType;

const FieldTopic kClaims = {
    "spec", FieldFate::kNotServed,
    "Devices are not allocated by ResourceClaims yet. Use a ClusterPolicy or a Penstock object, by "
    "which pods request nvidia.com/gpu, instead of this object: it has no effect.",
    ""};

void AddContainer(std::vector<ResourceField>& fields, const std::string& at, bool checked) {
  fields.push_back({.path = at, .type = kMap});
  fields.push_back({.path = at + ".env", .type = kEnvironment, .topic = &kClaims});
  fields.push_back({.path = at + ".resources", .type = kResources, .topic = &kClaims});
  if (!checked) return;
  fields.push_back({.path = at + ".healthcheck", .type = kMap});
  fields.push_back({.path = at + ".healthcheck.enabled",
                    .type = kBool,
                    .schema_default = "true",
                    .topic = &kClaims});
  fields.push_back({.path = at + ".healthcheck.port",
                    .type = kInt,
                    .least = 1,
                    .most = 65535,
                    .topic = &kClaims});
}

std::vector<ResourceField> ClaimFields() {
  std::vector<ResourceField> fields = {{.path = "draDriver", .type = kMap, .required = true}};
  AddOperand(fields, "draDriver", {.topic = &kClaims, .only_images = true});
  fields.push_back({.path = "draDriver.featureGates", .type = kBoolMap, .topic = &kClaims});
  fields.push_back({.path = "draDriver.gpus", .type = kMap});
  AddContainer(fields, "draDriver.gpus.kubeletPlugin", true);
  fields.push_back({.path = "draDriver.computeDomains", .type = kMap});
  fields.push_back({.path = "draDriver.computeDomains.enabled",
                    .type = kBool,
                    .schema_default = "true",
                    .topic = &kClaims});
  AddContainer(fields, "draDriver.computeDomains.controller", false);
  AddContainer(fields, "draDriver.computeDomains.kubeletPlugin", true);
  return fields;
}

/// The sections that a GPUCluster has in common with ClusterPolicy, none of which takes effect.
std::vector<ResourceField> CommonFields() {
  std::vector<ResourceField> fields;
  for (const ResourceField& field : internal::ClusterPolicyFields()) {
    const std::string section = field.path.substr(0, field.path.find('.'));
    if (section != "dcgm" && section != "dcgmExporter" && section != "daemonsets" &&
        section != "hostPaths")
      continue;
    ResourceField copy = field;
    copy.apply = nullptr;
    copy.text = "";
    copy.topic = field.type == kMap ? nullptr : &kClaims;
    fields.push_back(copy);
  }
  return fields;
}

}  // namespace

base::Result<std::vector<FieldAnswer>> AnswerGpuCluster(std::string_view object) {
  ASSIGN(const auto read, internal::ReadResourceObject(object, "nvidia.com/v1alpha1", "GPUCluster",
                                                       internal::GpuClusterFields()));
  if (!read.problems.empty()) return read.problems.ToError();
  std::vector<FieldAnswer> answers = {
      {std::string(kClaims.field), kClaims.fate, std::string(kClaims.text)}};
  answers.insert(answers.end(), read.reading.unknown.begin(), read.reading.unknown.end());
  return answers;
}

namespace internal {

const std::vector<ResourceField>& GpuClusterFields() {
  static const std::vector<ResourceField> fields = [] {
    std::vector<ResourceField> all = ClaimFields();
    const auto common = CommonFields();
    all.insert(all.end(), common.begin(), common.end());
    return all;
  }();
  return fields;
}

}  // namespace internal

}  // namespace penstock::api::compat
