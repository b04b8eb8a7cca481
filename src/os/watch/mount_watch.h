// Notifies when a file system is mounted or unmounted in this process's mount namespace.
#pragma once

#include <functional>
#include <memory>

#include "base/core/result.h"
#include "os/core/fd.h"
#include "os/loop.h"

namespace penstock::os {

/// Calls back on the loop's thread after mounts were made, removed or moved, also by propagation
/// from the host. The callback carries no details. A node that starts many pods has many mounts:
/// what comes within `gather` of a change becomes one call. Sleeps in the kernel in between.
class MountWatch {
 public:
  static base::Result<std::unique_ptr<MountWatch>> Start(Loop& loop, std::function<void()> callback,
                                                         base::Duration gather);
  ~MountWatch();  ///< on the loop's thread, or after it has stopped
  MountWatch(const MountWatch&) = delete;
  MountWatch& operator=(const MountWatch&) = delete;

 private:
  MountWatch(Loop& loop, UniqueFd mounts, std::function<void()> callback, base::Duration gather);
  void Changed();

  Loop& loop_;
  const UniqueFd mounts_;
  const std::function<void()> callback_;
  const base::Duration gather_;
  base::TimerId timer_ = 0;
};

}  // namespace penstock::os
