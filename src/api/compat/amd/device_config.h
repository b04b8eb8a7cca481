// Translates the resource of AMD's GPU Operator, DeviceConfig (amd.com/v1alpha1), into Penstock's.
// Pure.
#pragma once

#include <string_view>

#include "api/compat/policy_translation.h"
#include "base/core/result.h"

namespace penstock::api::compat {

/// `object`: as the API server has it (JSON), with its defaults or without. `over`: what policies
/// of other vendors ask for; what is one for all nodes of a cluster remains theirs, and a field
/// that asks for something else is answered. Null: there are none. kInvalidArgument: all values
/// that cannot be meant, each with its path and what is possible.
base::Result<PolicyTranslation> TranslateDeviceConfig(std::string_view object,
                                                      const PenstockSpec* over);

}  // namespace penstock::api::compat
