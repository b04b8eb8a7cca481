// Sets the compute mode of a GPU, by which the driver divides it.
#pragma once

#include <string>

#include "backend/amd/machine.h"
#include "base/core/result.h"

namespace penstock::backend::amd {

/// Writes the mode and reads it back. The driver decides: which modes it has, and what is in the
/// way, differs by its version. kFailedPrecondition: processes are in the way, which the message
/// names, or the GPU is being reset; kInvalidArgument: the driver has no such mode, or not in the
/// present memory mode; kPermissionDenied: the file cannot be written; kAborted: it was written
/// without effect. Blocks.
base::Status SetComputeMode(const Machine& machine, const std::string& proc_root, const AmdGpu& gpu,
                            const std::string& value);

}  // namespace penstock::backend::amd
