// NVIDIA's MIG manager, as the program in whose place the agent divides devices. Pure.
#pragma once

namespace penstock::api::compat {

struct LayoutProgram;

/// Its layouts have parts with profiles.
const LayoutProgram& ProfileLayoutProgram();

}  // namespace penstock::api::compat
