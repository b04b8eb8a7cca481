// Writes doors.json after changes, and reads it at start.
#pragma once

#include <memory>
#include <string>

#include "base/core/result.h"
#include "base/executor.h"
#include "door/doors_file.h"

namespace penstock::door {

/// On the control executor; writes on the I/O executor, always what was kept last. A failed write (full or read-only disk) is logged and
/// repeated with the next change, at the latest after 10 s.
class DoorsKeeper {
 public:
  DoorsKeeper(base::Executor& control, base::Executor& io, std::string path);
  ~DoorsKeeper();

  void Keep(const DevicesByHand& devices);

  /// What was kept last. A damaged file is set aside as "<path>.damaged" and nothing is known; kFailedPrecondition where a newer version
  /// wrote it. Blocks.
  static base::Result<DevicesByHand> Load(const std::string& path);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::door
