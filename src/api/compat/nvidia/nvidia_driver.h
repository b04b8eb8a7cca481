// Translates NVIDIADriver objects (nvidia.com/v1alpha1): which driver the nodes of a set get. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "api/compat/policy_translation.h"
#include "base/core/result.h"

namespace penstock::api::compat {

struct DriverTranslation {
  DriverSpec driver;                 ///< with the object's name
  std::vector<FieldAnswer> answers;  ///< in the schema's order
};

/// `object`: as the API server has it (JSON), with its defaults or without. kInvalidArgument: all
/// values that cannot be meant, each with its path. Whether several objects select one node is not
/// decided here.
base::Result<DriverTranslation> TranslateNvidiaDriver(std::string_view object);

}  // namespace penstock::api::compat
