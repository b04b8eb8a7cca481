// Translates a DeviceConfig by its table.
#include "api/compat/amd/device_config.h"

#include "api/compat/nvidia/resource_fields.h"

namespace penstock::api::compat {

base::Result<PolicyTranslation> TranslateDeviceConfig(std::string_view object,
                                                      const PenstockSpec* over) {
  ASSIGN(auto read, internal::ReadResourceObject(object, "amd.com/v1alpha1", "DeviceConfig", {}));
  auto& [document, problems, reading] = read;
  if (!problems.empty()) return problems.ToError();
  PolicyTranslation translation{.spec = over != nullptr ? *over : PenstockSpec{}};
  translation.components = {{"devicePlugin", Counted::kServing}, {"driver", Counted::kDrivers}};
  return translation;
}

}  // namespace penstock::api::compat
