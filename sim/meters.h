// Reads and settles meters: a count grows by its rate on the machine's clock, so that no process
// has to count. Plain C, for the library and for all programs that change the state.
#ifndef PENSTOCK_SIM_METERS_H_
#define PENSTOCK_SIM_METERS_H_

#include "sim/state.h"

#ifdef __cplusplus
extern "C" {
#endif

// Returns the machine's clock (µs since 1970, unless it was moved) for a value of CLOCK_MONOTONIC.
static inline uint64_t SimNow(const SimState* state, uint64_t real) {
  return state->clock_stopped ? state->clock_stopped : real + (uint64_t)state->clock_ahead;
}

// Computes whole seconds and the remainder separately: a rate may be terabytes per second.
static inline uint64_t SimMeterAt(const SimMeter* meter, uint64_t metered, uint64_t now) {
  const uint64_t passed = now > metered ? now - metered : 0;
  return meter->count + passed / 1000000u * meter->rate +
         passed % 1000000u * meter->rate / 1000000u;
}

// Stores the counts reached by now. Required before every change of a rate.
static inline void SimSettle(SimGpu* gpu, uint64_t now) {
  for (int i = 0; i < kSimMeters; i++)
    gpu->meters[i].count = SimMeterAt(&gpu->meters[i], gpu->metered, now);
  gpu->metered = now;
}

// Sets all meters to zero, as a reset or a newly loaded driver does; they continue at their rates.
static inline void SimZeroMeters(SimGpu* gpu, uint64_t now) {
  for (int i = 0; i < kSimMeters; i++) gpu->meters[i].count = 0;
  for (int i = 0; i < kSimMaxLinks; i++)
    for (int error = 0; error < kSimLinkErrors; error++) gpu->nvlinks[i].errors[error] = 0;
  gpu->pcie_replays = 0;
  for (int i = 0; i < kSimPcieErrors; i++) gpu->pcie_errors[i] = 0;
  gpu->metered = gpu->meters_begun = now;
}

#ifdef __cplusplus
}
#endif

#endif  // PENSTOCK_SIM_METERS_H_
