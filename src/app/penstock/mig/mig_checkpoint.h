// How the GPUs are divided, as a checkpoint of mig-parted, and the layout that has exactly the
// instances of one. Pure.
#pragma once

#include "api/compat/nvidia/mig_checkpoint.h"
#include "api/config/layouts.h"
#include "app/penstock/mig/mig_machine.h"
#include "base/core/result.h"

namespace penstock::app {

/// All GPUs that have a MIG mode. kUnavailable: the driver does not report one of them completely.
Result<api::compat::MigCheckpoint> CheckpointOf(const MigMachine& machine);

/// A rule for each GPU of the checkpoint. `mode_only`: without parts. kInvalidArgument: all GPUs
/// that are not there, profiles that they do not have, and instances that fit in no other;
/// kFailedPrecondition: the driver does not list the profiles of one yet.
Result<api::Layout> LayoutOf(const api::compat::MigCheckpoint& checkpoint,
                             const MigMachine& machine, bool mode_only);

}  // namespace penstock::app
