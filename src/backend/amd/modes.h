// Sets the compute mode of a GPU, by which the driver divides it, and requests its memory mode.
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

/// The driver keeps the request, of GPUs that xGMI links the last one for all of them, and changes
/// the mode when it is loaded again; until then no file shows it (Linux, amdgpu_gmc.c,
/// current_memory_partition_store). kInvalidArgument: the GPU has no such mode; kUnimplemented: the
/// file cannot be written with this kernel, as up to Linux 6.12; kFailedPrecondition: refused
/// (EPERM). Blocks.
base::Status RequestMemoryMode(const Machine& machine, const AmdGpu& gpu, const std::string& value);

}  // namespace penstock::backend::amd
