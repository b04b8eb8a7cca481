// AMD's Device Config Manager (DCM), as the program in whose place the agent divides devices. Pure.
#pragma once

namespace penstock::api::compat {

struct LayoutProgram;

/// Its layouts set modes.
const LayoutProgram& ModeLayoutProgram();

}  // namespace penstock::api::compat
