#include "api/compat/amd/definitions.h"

#include <nlohmann/json.hpp>

#include "api/compat/amd/device_config_fields.h"
#include "api/compat/field_schemas.h"

namespace penstock::api::compat {

using DefinitionJson = nlohmann::ordered_json;

std::vector<ResourceDefinition> AmdDefinitions() {
  // Objects of AMD's operator have a status without our state, and remain valid.
  DefinitionJson status = api::internal::StatusSchema({"ignored", "ready", "notReady"});
  status.erase("required");
  return {api::internal::MakeDefinition(
      {.group = "amd.com",
       .version = "v1alpha1",
       .kind = "DeviceConfig",
       .plural = "deviceconfigs",
       .singular = "deviceconfig",
       .short_names = {"gpue"},
       .columns = {{"Status", "string", ".status.state"},
                   {"Age", "date", ".metadata.creationTimestamp"}},
       .description = "AMD's GPUs in a cluster, as AMD's GPU Operator describes them; Penstock's "
                      "operator reads those in its own namespace.",
       .namespaced = true},
      internal::SpecSchema(internal::DeviceConfigFields()), std::move(status),
      DefinitionJson::array())};
}

}  // namespace penstock::api::compat
