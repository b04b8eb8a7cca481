// Schemas from the tables of fields.
#include "api/compat/nvidia/definitions.h"

#include <nlohmann/json.hpp>

#include "api/compat/field_schemas.h"
#include "api/compat/nvidia/operand_fields.h"

namespace penstock::api::compat {

namespace {

using internal::SpecSchema;
using ApiJson = nlohmann::ordered_json;
using namespace api::internal;

ApiJson Rule(std::string_view rule, std::string_view message) {
  ApiJson rules = ApiJson::array();
  rules.push_back({{"rule", rule}, {"message", message}});
  return rules;
}

const std::vector<std::vector<std::string>> kColumns = {
    {"Status", "string", ".status.state"}, {"Age", "date", ".metadata.creationTimestamp"}};

ResourceDefinition PolicyDefinition() {
  return MakeDefinition({.group = "nvidia.com",
                         .version = "v1",
                         .kind = "ClusterPolicy",
                         .plural = "clusterpolicies",
                         .singular = "clusterpolicy",
                         .columns = kColumns,
                         .description = "NVIDIA's GPUs in a cluster, as NVIDIA's GPU Operator "
                                        "describes them; Penstock's operator reads it."},
                        SpecSchema(internal::ClusterPolicyFields()),
                        StatusSchema({"ignored", "ready", "notReady"}), ApiJson::array());
}

ResourceDefinition DriverDefinition() {
  ApiJson spec = SpecSchema(internal::NvidiaDriverFields());
  spec["x-kubernetes-validations"] =
      Rule("!self.default || !has(self.nodeSelector) || size(self.nodeSelector) == 0",
           "a default NVIDIADriver is for all other nodes: it must have no nodeSelector");
  for (const char* field : {"driverType", "usePrecompiled"})
    spec["properties"][field]["x-kubernetes-validations"] =
        Rule("self == oldSelf",
             std::string(field) + " cannot be changed; create another NVIDIADriver instead");
  auto columns = kColumns;
  columns.insert(columns.begin() + 1, {"Default", "boolean", ".spec.default"});
  return MakeDefinition(
      {.group = "nvidia.com",
       .version = "v1alpha1",
       .kind = "NVIDIADriver",
       .plural = "nvidiadrivers",
       .singular = "nvidiadriver",
       .short_names = {"nvd", "nvdriver", "nvdrivers"},
       .columns = columns,
       .description = "The driver of NVIDIA's GPUs on a set of nodes, as NVIDIA's "
                      "GPU Operator describes it."},
      std::move(spec), StatusSchema({"ignored", "ready", "notReady", "disabled"}),
      ApiJson::array());
}

ResourceDefinition ClusterDefinition() {
  return MakeDefinition(
      {.group = "nvidia.com",
       .version = "v1alpha1",
       .kind = "GPUCluster",
       .plural = "gpuclusters",
       .singular = "gpucluster",
       .short_names = {"gc"},
       .columns = kColumns,
       .description = "NVIDIA's GPUs by dynamic resource allocation, as NVIDIA's GPU Operator "
                      "describes them; not served yet."},
      SpecSchema(internal::GpuClusterFields()), StatusSchema({"ready", "notReady", "disabled"}),
      Rule("self.metadata.name == 'gpu-cluster'", "there is one GPUCluster, called gpu-cluster"));
}

}  // namespace

std::vector<ResourceDefinition> NvidiaDefinitions() {
  return {PolicyDefinition(), DriverDefinition(), ClusterDefinition()};
}

}  // namespace penstock::api::compat
