// Whose an object is that has the name of a wanted one, and how one that the replaced operator made
// becomes ours. Pure.
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

}  // namespace penstock::cluster
