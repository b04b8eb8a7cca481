// The simulated machine as the MPS programs see it: its GPUs, their compute mode and memory, and
// the fault of MPS. Changes the state file as the driver would for processes that start, allocate
// and exit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/state.h"

namespace mps {

/// The faults of `penstock-sim fault mps`.
enum class Fault { kNone, kHang, kExit, kNonsense };

class Machine {
 public:
  /// Finds the machine by PENSTOCK_SIM_STATE, or upwards from the program; there() is false if the
  /// machine was stopped.
  Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();

  bool there() const { return state_ != nullptr; }
  /// Returns the fault that the state's folder contains; it may change at any time.
  Fault fault() const;
  /// The folder to watch for a change of the fault.
  const std::string& folder() const { return folder_; }

  /// Returns the slots of GPUs whose device files this process may open.
  std::vector<std::uint32_t> OpenGpus() const;
  /// Returns those of OpenGpus() that CUDA_VISIBLE_DEVICES names (all if it is not set), in its
  /// order.
  std::vector<std::uint32_t> VisibleGpus() const;
  /// 550 of 550.54.15.
  std::uint32_t driver_branch() const { return state_ ? state_->driver_branch : 0; }
  const SimGpu& gpu(std::uint32_t slot) const { return state_->gpus[slot]; }

  /// Adds a process to a GPU, with `type` as in SimProcess; a second call changes its memory.
  /// Returns false if the table is full.
  bool PutProcess(std::uint32_t slot, std::uint32_t pid, char type, std::uint64_t bytes,
                  const std::string& name);
  void RemoveProcess(std::uint32_t slot, std::uint32_t pid);
  /// Returns the unallocated memory.
  std::uint64_t FreeBytes(std::uint32_t slot) const;
  /// Whether a compute process that is not an MPS client is on the GPU.
  bool HasComputeProcess(std::uint32_t slot) const;

 private:
  class Change;
  std::string folder_;
  int fd_ = -1;
  SimState* state_ = nullptr;
};

}  // namespace mps
