// What becomes of a vendor's resource that says what is wanted of the cluster: Penstock's own form
// of it, and an answer for each field that does not simply take effect. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/cluster/penstock.h"

namespace penstock::api::compat {

/// What becomes of a field that the object sets.
enum class FieldFate {
  kHonoured,    ///< it takes effect
  kElsewhere,   ///< what it asks for is done in another way, which the text says
  kOwnImage,    ///< an operand's image: there is one image, the operator's own
  kNotServed,   ///< not served yet
  kDeprecated,  ///< the vendor's operator ignores it, too
  kUnknown,     ///< in no known version of the resource
};

/// A field that is set and does not simply take effect.
struct FieldAnswer {
  std::string field;  ///< "spec.vgpuManager.enabled"
  FieldFate fate = FieldFate::kHonoured;
  std::string text;  ///< a sentence that says why, and what to do instead
  bool operator==(const FieldAnswer&) const = default;
};

/// Of which nodes a field of an object's status has the number.
enum class Counted {
  kServing,  ///< whose agents serve their devices
  kAgents,   ///< whose agents are ready
  kDrivers,  ///< whose devices have a driver
};

struct PolicyTranslation {
  PenstockSpec spec;
  /// Why NVIDIADriver objects have no effect, for messages: "has driver.useNvidiaDriverCRD false";
  /// empty: they say which drivers the cluster has.
  std::string no_driver_objects = {};
  std::vector<FieldAnswer> answers = {};  ///< in the schema's order; images together in one
  /// Fields of the object's status that count the nodes on which a component works, for each
  /// component that the object has switched on: {"devicePlugin", kServing}.
  std::vector<std::pair<std::string, Counted>> components = {};
};

}  // namespace penstock::api::compat
