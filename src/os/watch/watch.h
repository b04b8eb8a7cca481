// Notifies when something changes at a path, even one that does not exist yet. Falls back to
// polling if inotify is exhausted.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/core/clock.h"
#include "os/loop.h"

namespace penstock::os {

/// Calls back on the loop's thread when the file or directory at `path`, or the nearest existing
/// folder on the way to it, changes: created, removed, renamed, written (except for device
/// files: their use changes nothing of them), its entries changed. The callback carries no details:
/// it must read the current state. Bursts within `burst` of the first change become one call. Where
/// no inotify watch is available, it is called every second instead.
class PathWatch {
 public:
  static constexpr base::Duration kBurst = std::chrono::milliseconds(10);
  PathWatch(Loop& loop, std::string path, std::function<void()> callback,
            base::Duration burst = kBurst);
  ~PathWatch();  ///< on the loop's thread, or after it has stopped
  PathWatch(const PathWatch&) = delete;
  PathWatch& operator=(const PathWatch&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::os
