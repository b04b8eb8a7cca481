// Reads NVIDIADriver objects (nvidia.com/v1alpha1): which driver the nodes of a set get. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/compat/nvidia/cluster_policy.h"
#include "base/core/result.h"

namespace penstock::api::compat {

/// Which nodes an NVIDIADriver is about, and which driver it asks for.
struct DriverRequest {
  std::string name;
  bool is_default = false;  ///< for the nodes that no other NVIDIADriver selects
  std::map<std::string, std::string> node_selector;
  KubeJson node_affinity;   ///< a map
  std::string driver_type;  ///< "gpu", "vgpu", "vgpu-host-manager"
  std::string version;      ///< "595.91.07", or a branch; empty: not set
  bool precompiled = false;
  bool operator==(const DriverRequest&) const = default;
};

struct DriverTranslation {
  DriverRequest request;
  std::vector<FieldAnswer> answers;  ///< in the schema's order
};

/// `object`: as the API server has it (JSON), with its defaults or without. kInvalidArgument: all
/// values that cannot be meant, each with its path. Whether several objects select one node is not
/// decided here.
base::Result<DriverTranslation> TranslateNvidiaDriver(std::string_view object);

}  // namespace penstock::api::compat
