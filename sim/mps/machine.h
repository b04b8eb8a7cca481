// The simulated machine as the MPS programs see it: its GPUs, their compute mode and memory, the fault that MPS has. Changes the state file
// as the driver would for processes that come, allocate and go.
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
  /// Found by PENSTOCK_SIM_STATE, or upwards from the program; nothing is there where the machine was stopped.
  Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();

  bool there() const { return state_ != nullptr; }
  /// What the folder of the state says; may change at any time.
  Fault fault() const;
  /// The folder to watch for a change of fault.
  const std::string& folder() const { return folder_; }

  /// The slots of GPUs whose device files this process may open.
  std::vector<std::uint32_t> OpenGpus() const;
  /// Of these the ones that CUDA_VISIBLE_DEVICES names (all where it is not set), in its order.
  std::vector<std::uint32_t> VisibleGpus() const;
  /// 550 of 550.54.15.
  std::uint32_t driver_branch() const { return state_ ? state_->driver_branch : 0; }
  const SimGpu& gpu(std::uint32_t slot) const { return state_->gpus[slot]; }

  /// A process on a GPU, `type` as SimProcess has it; a second call changes its memory. False where there is no room in the table.
  bool PutProcess(std::uint32_t slot, std::uint32_t pid, char type, std::uint64_t bytes, const std::string& name);
  void RemoveProcess(std::uint32_t slot, std::uint32_t pid);
  /// Memory that nobody has.
  std::uint64_t FreeBytes(std::uint32_t slot) const;
  /// Whether a compute process is on it that is no client of MPS.
  bool HasComputeProcess(std::uint32_t slot) const;

 private:
  class Change;
  std::string folder_;
  int fd_ = -1;
  SimState* state_ = nullptr;
};

}  // namespace mps
