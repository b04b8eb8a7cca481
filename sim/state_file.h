// The state file as a mapping of ours: made, opened, locked for a change. Knows nothing of what a change means.
#pragma once

#include <memory>
#include <string>

#include "base/core/result.h"
#include "sim/state.h"

namespace penstock::sim {

/// The mapped state of a machine under a root. Not thread-safe.
class StateFile {
 public:
  /// Writes a new state under `root`/.penstock-sim/state, whole or not at all, and maps it.
  static base::Result<StateFile> Create(const std::string& root, const SimState& state);
  /// Maps an existing one: kNotFound where no machine was started; kFailedPrecondition with what is wrong for foreign, cut and
  /// other-version files; read-only where the caller may not write.
  static base::Result<StateFile> Open(const std::string& root);

  StateFile(StateFile&& other) noexcept;
  StateFile& operator=(StateFile&&) = delete;
  ~StateFile();

  const SimState& state() const { return *state_; }

  /// A change under the file's lock: readers see it as one; ends, and wakes all who wait, with this object.
  class Change {
   public:
    ~Change();
    Change(Change&& other) noexcept : file_(other.file_) { other.file_ = nullptr; }
    SimState& operator*() { return *file_->state_; }
    SimState* operator->() { return file_->state_; }
    /// Adds to the ring what NVML will deliver.
    void AddEvent(std::uint32_t gpu, std::uint64_t type, std::uint64_t data);

   private:
    friend class StateFile;
    explicit Change(StateFile* file) : file_(file) {}
    StateFile* file_;
  };
  /// kPermissionDenied where the file is read-only to the caller.
  base::Result<Change> Begin();

 private:
  StateFile(int fd, SimState* state, bool writable) : fd_(fd), state_(state), writable_(writable) {}
  int fd_;
  SimState* state_;
  bool writable_;
};

std::string StatePath(const std::string& root);

}  // namespace penstock::sim
