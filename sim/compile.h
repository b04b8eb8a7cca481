// Computes the state that the simulated library reads, from a machine file and a driver version.
// Pure: no file, no clock.
#pragma once

#include <string>
#include <string_view>

#include "base/core/result.h"
#include "sim/machine.h"
#include "sim/state.h"

namespace penstock::sim {

struct CompileOptions {
  std::string driver;  // overrides the machine's driver; empty: the machine's
  bool no_driver = false;
  std::string seed;  // distinguishes machines of the same file: UUIDs and serials derive from
                     // name, seed and address
};

/// Fills all of `state` with the machine as it is after boot; `instance` and the generations stay
/// 0.
void Compile(const Machine& machine, const Catalogue& catalogue, const CompileOptions& options,
             SimState& state);

/// Renames and resizes the GPUs of a running machine for another driver; health, utilization and
/// processes stay. `version` empty: no driver.
void ApplyDriver(const Machine& machine, const Catalogue& catalogue, std::string_view version,
                 SimState& state);

/// Returns 550 for "550.54.15"; 0 for an empty version.
std::uint32_t DriverBranch(std::string_view version);

}  // namespace penstock::sim
