// Translates the resources of NVIDIA's GPU Operator, ClusterPolicy (nvidia.com/v1) and GPUCluster
// (nvidia.com/v1alpha1), into Penstock's. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/cluster/penstock.h"
#include "base/core/result.h"

namespace penstock::api::compat {

/// What becomes of a field that the object sets.
enum class FieldFate {
  kHonoured,    ///< it takes effect
  kElsewhere,   ///< what it asks for is done in another way, which the text says
  kOwnImage,    ///< an operand's image: there is one image, the operator's own
  kNotServed,   ///< not served yet
  kDeprecated,  ///< NVIDIA's operator ignores it, too
  kUnknown,     ///< in no known version of the resource
};

/// A field that is set and does not simply take effect.
struct FieldAnswer {
  std::string field;  ///< "spec.vgpuManager.enabled"
  FieldFate fate = FieldFate::kHonoured;
  std::string text;  ///< a sentence that says why, and what to do instead
  bool operator==(const FieldAnswer&) const = default;
};

struct PolicyTranslation {
  PenstockSpec spec;
  /// Why NVIDIADriver objects have no effect, for messages: "has driver.useNvidiaDriverCRD false";
  /// empty: they say which drivers the cluster has.
  std::string no_driver_objects = {};
  std::vector<FieldAnswer> answers = {};  ///< in the schema's order; images together in one
};

/// `object`: as the API server has it (JSON), with its defaults or without. Its driver has no name,
/// and is for all nodes that no other driver selects. kInvalidArgument: all values that cannot be
/// meant, each with its path and what is possible.
base::Result<PolicyTranslation> TranslateClusterPolicy(std::string_view object);

/// Everything with which a ClusterPolicy can mark nodes.
NodeMarks AllPolicyMarks();

}  // namespace penstock::api::compat
