// What follows from what a GPU does: power, clocks, traffic and the rates of its meters. Knows the state alone, so that nvidia-smi can use
// it.
#pragma once

#include <cstdint>

#include "sim/state.h"

namespace penstock::sim {

/// The whole GPU is busy for that many percent of the time: power, clocks, link generation, traffic and the shares of its units follow. The
/// caller has settled the meters.
void Work(SimGpu& gpu, std::uint32_t percent);

/// The rates that follow from fields of the state: energy from the draw, time at less than full clocks from the reasons for it, the
/// engines' use. After every change of one.
void Follow(SimGpu& gpu);

/// How many of the GPU's NVLinks are up.
std::uint32_t ActiveLinks(const SimGpu& gpu);

}  // namespace penstock::sim
