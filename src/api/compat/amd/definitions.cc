#include "api/compat/amd/definitions.h"

#include <nlohmann/json.hpp>

#include "api/compat/amd/device_config_fields.h"
#include "api/compat/field_schemas.h"

namespace penstock::api::compat {

using DefinitionJson = nlohmann::ordered_json;

namespace {

std::string ReadyCondition(const std::string& key) {
  return ".status.conditions[?(@.type==\"Ready\")]." + key;
}

}  // namespace

std::vector<ResourceDefinition> AmdDefinitions() {
  // As AMD's operator has it, with numbers of nodes beside the conditions, which alone say the
  // state.
  DefinitionJson status = api::internal::StatusSchema({});
  status.erase("required");
  for (const char* ours : {"state", "namespace"}) status["properties"].erase(ours);
  return {api::internal::MakeDefinition(
      {.group = "amd.com",
       .version = "v1alpha1",
       .kind = "DeviceConfig",
       .plural = "deviceconfigs",
       .singular = "deviceconfig",
       .short_names = {"gpue"},
       .columns = {{"Ready", "string", ReadyCondition("status")},
                   {"Reason", "string", ReadyCondition("reason")},
                   {"Age", "date", ".metadata.creationTimestamp"}},
       .description = "AMD's GPUs in a cluster, as AMD's GPU Operator describes them; Penstock's "
                      "operator reads those in its own namespace.",
       .namespaced = true},
      internal::SpecSchema(internal::DeviceConfigFields()), std::move(status),
      DefinitionJson::array())};
}

}  // namespace penstock::api::compat
