// Creates, opens and maps the state file, and locks it for changes. Does not interpret the changes.
#pragma once

#include <memory>
#include <string>

#include "base/core/result.h"
#include "sim/state.h"

namespace penstock::sim {

/// The mapped state of a machine under a root. Not thread-safe.
class StateFile {
 public:
  /// Writes a new state to `root`/.penstock-sim/state atomically, and maps it.
  static base::Result<StateFile> Create(const std::string& root, const SimState& state);
  /// Maps an existing state. Returns kNotFound if no machine was started, and kFailedPrecondition
  /// with the reason for foreign, truncated and other-version files. The mapping is read-only if
  /// the caller may not write.
  static base::Result<StateFile> Open(const std::string& root);

  StateFile(StateFile&& other) noexcept;
  StateFile& operator=(StateFile&&) = delete;
  ~StateFile();

  const SimState& state() const { return *state_; }

  /// A change under the file's lock, which readers see as one. Its destructor ends the change and
  /// wakes all waiters.
  class Change {
   public:
    ~Change();
    Change(Change&& other) noexcept : file_(other.file_) { other.file_ = nullptr; }
    SimState& operator*() { return *file_->state_; }
    SimState* operator->() { return file_->state_; }
    /// Adds an event that NVML will deliver to the ring. `instance`: see SimEvent.
    void AddEvent(std::uint32_t gpu, std::uint64_t type, std::uint64_t data,
                  std::uint32_t instance = 0);

   private:
    friend class StateFile;
    explicit Change(StateFile* file) : file_(file) {}
    StateFile* file_;
  };
  /// Returns kPermissionDenied if the file is read-only for the caller.
  base::Result<Change> Begin();

 private:
  StateFile(int fd, SimState* state, bool writable) : fd_(fd), state_(state), writable_(writable) {}
  int fd_;
  SimState* state_;
  bool writable_;
};

std::string StatePath(const std::string& root);

}  // namespace penstock::sim
