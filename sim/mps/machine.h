// The simulated machine as the MPS programs see it: its GPUs, their compute mode and memory, and
// the fault of MPS. Changes the state file as the driver would for processes that start, allocate
// and exit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/state.h"

namespace mps {

/// A device as CUDA counts them: a GPU, or a MIG device of a GPU in MIG mode.
struct Device {
  std::uint32_t slot = 0;                             ///< of its GPU
  std::uint32_t instance = SIM_NA, compute = SIM_NA;  ///< ids of a MIG device
  std::string uuid;
  bool is_mig() const { return instance != SIM_NA; }
};

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

  /// Returns the devices whose files this process may open. GPUs in MIG mode are none.
  std::vector<Device> OpenDevices() const;
  /// Returns those of OpenDevices() that CUDA_VISIBLE_DEVICES names (all if it is not set), in its
  /// order; of MIG devices only the first, and nothing beside it (CUDA programming guide, "MIG").
  std::vector<Device> VisibleDevices() const;
  /// 550 of 550.54.15.
  std::uint32_t driver_branch() const { return state_ ? state_->driver_branch : 0; }
  const SimGpu& gpu(std::uint32_t slot) const { return state_->gpus[slot]; }

  /// The memory of a device.
  std::uint64_t Memory(const Device& device) const;

  /// Adds a process to a device, with `type` as in SimProcess; a second call changes its memory.
  /// Returns false if the table is full.
  bool PutProcess(const Device& device, std::uint32_t pid, char type, std::uint64_t bytes,
                  const std::string& name);
  void RemoveProcess(const Device& device, std::uint32_t pid);
  /// Returns the unallocated memory.
  std::uint64_t FreeBytes(const Device& device) const;
  /// Whether a compute process that is not an MPS client is on the device's GPU.
  bool HasComputeProcess(const Device& device) const;

 private:
  class Change;
  std::string folder_;
  int fd_ = -1;
  SimState* state_ = nullptr;
};

}  // namespace mps
