// From a machine file and a driver version to the state that the simulated library reads. Pure: no file, no clock.
#pragma once

#include <string>
#include <string_view>

#include "base/core/result.h"
#include "sim/machine.h"
#include "sim/state.h"

namespace penstock::sim {

struct CompileOptions {
  std::string driver;  // instead of the machine's own; empty: that
  bool no_driver = false;
  std::string seed;  // told apart machines of the same file: UUIDs and serials derive from name, seed and address
};

/// Fills `state` (all of it; `instance` and the generations stay 0) with the machine as it is after boot.
void Compile(const Machine& machine, const Catalogue& catalogue, const CompileOptions& options, SimState& state);

/// Renames and resizes the GPUs of a running machine for another driver; health, use and processes stay. `version` empty: no driver.
void ApplyDriver(const Machine& machine, const Catalogue& catalogue, std::string_view version, SimState& state);

/// 550 of "550.54.15"; 0 of an empty one.
std::uint32_t DriverBranch(std::string_view version);

}  // namespace penstock::sim
