// Derives what follows from a GPU's utilization: power, clocks, traffic and the rates of its
// meters. Depends on the state alone, so that nvidia-smi can use it.
#pragma once

#include <cstdint>

#include "sim/state.h"

namespace penstock::sim {

/// Makes the whole GPU busy for that percentage of the time, and derives power, clocks, link
/// generation, traffic and the utilization of its units. The caller has settled the meters.
void Work(SimGpu& gpu, std::uint32_t percent);

/// Derives rates from fields of the state: energy from the power draw, time at reduced clocks from
/// the reasons for it, the engines' utilization. Required after every change of one of these
/// fields.
void Follow(SimGpu& gpu);

/// Returns how many of the GPU's NVLinks are up.
std::uint32_t ActiveLinks(const SimGpu& gpu);

}  // namespace penstock::sim
