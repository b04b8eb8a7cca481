// Plans how a device gets from its present division to a desired one: which parts are destroyed,
// which are created where, and whether a mode changes. Pure: nothing is done here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "device/model.h"
#include "node/partition/division.h"

namespace penstock::node::partition {

/// Parts that a device shall have.
struct DesiredParts {
  std::string profile;  ///< the device's own name of it
  int count = 1;
  std::optional<device::Placement> placement;  ///< exactly here, of a single part; of a part within
                                               ///< another one: in that, if its driver places it
  std::optional<device::Placement> outer;  ///< where the part lies in which they are; nothing: in
                                           ///< any
  bool vacant = false;                     ///< at `placement`, with no parts in it
  bool operator==(const DesiredParts&) const = default;
};

/// How a device shall be divided: into these parts and no others.
struct DesiredDivision {
  std::string mode;   ///< "mig"; empty: its modes stay
  std::string value;  ///< "enabled"
  std::vector<DesiredParts> parts;
  bool by_mode = false;  ///< the parts come and go with the mode: `parts` is empty and says nothing
  /// A mode that comes first and takes effect only when the driver is loaded again, which no plan
  /// does: as long as it is not in force, its request is all that is planned. Empty: none.
  std::string later = {}, later_value = {};
  bool operator==(const DesiredDivision&) const = default;
};

/// Whether `later` is not in force.
bool AwaitsReload(const Division& now, const DesiredDivision& desired);

struct PlanPolicy {
  bool destroy_held = false;  ///< parts that are held may be destroyed, the fewest possible
};

/// One step. Steps are taken in order; what a step destroys or changes is not held, unless the
/// policy permits it.
struct PlanStep {
  enum class Kind {
    kDestroy,
    kSetMode,
    kReset,         ///< of the device, for its mode to take effect
    kReloadDriver,  ///< likewise
    kCreate,
  };
  Kind kind = Kind::kDestroy;
  std::string part;                            ///< of kDestroy: its id
  std::string profile;                         ///< of kDestroy and kCreate
  std::optional<device::Placement> placement;  ///< of both; of kCreate nothing: any
  bool outer = false;       ///< of both: only for parts within it, see ExistingPart
  std::string within;       ///< of both: the id of the existing part in which it is or is created
  int within_created = -1;  ///< of kCreate: or the index of the step that creates that part
  std::string mode, value;  ///< of kSetMode
  std::string text;         ///< what is done and why, a sentence
  bool operator==(const PlanStep&) const = default;
};
std::string_view ToString(PlanStep::Kind kind);  ///< "destroy", "set-mode", "reset", …

struct PartitionPlan {
  std::vector<PlanStep> steps;    ///< empty: the device is divided as desired
  std::vector<std::string> kept;  ///< ids of parts that stay
  device::ModeScope scope = device::ModeScope::kDevice;  ///< what a change of mode affects
  /// There is no plan that destroys fewer parts; false: the search was cut at its limit, which does
  /// not happen on devices that exist.
  bool proven = true;
};

/// The plan that destroys the fewest parts of profiles that are desired, then leaves the most room
/// for further parts, above all for large ones. The same input has the same plan. Errors explain
/// what is impossible: kInvalidArgument, whatever the state of the device (a profile that it does
/// not have, too many parts, parts that do not fit together); kFailedPrecondition, as long as what
/// the message names is held, or in the device's present mode; kResourceExhausted, the search was
/// cut without a result.
Result<PartitionPlan> MakePlan(const Division& now, const DesiredDivision& desired,
                               const PlanPolicy& policy);

}  // namespace penstock::node::partition
