// Whose an object is that has the name of a wanted one, how one that the replaced operator made
// becomes ours, and how one of ours outlives its policy. Pure.
#pragma once

#include <set>
#include <string>

#include "operator/json_values.h"

namespace penstock::cluster {

/// Whose an object is, by its label, its controller and metadata.managedFields.
enum class Belongs {
  kOurs,       ///< it has our label, or no controller and fields that this operator wrote
  kAdoptable,  ///< without our label; one of `policies` (uids) controls it
  kOthers,
};
Belongs WhoseIs(const Json& object, const std::set<std::string>& policies);

/// The merge patch after which an adoptable object can be applied as our own; kAborted by the
/// server where the object has changed meanwhile. It has our label and no controller. What other
/// field managers own of `spec` is our applied configuration's: an element of a list, such as a
/// port, that is not applied any more is then removed, and would stay beside its successor else.
/// `api_version` is that of the fields.
Json AdoptionOf(const Json& object, const std::string& api_version);

/// The uid of the object that controls it, with which the API server's garbage collector deletes
/// it; empty: none does.
std::string ControllerOf(const Json& object);

/// The merge patch after which no object controls it; kAborted by the server where it has changed
/// meanwhile. It names no other controller: the patch, not what is applied, would own that
/// reference, which would then stay beside the next one, and an object has one controller.
Json ReleaseOf(const Json& object);

}  // namespace penstock::cluster
