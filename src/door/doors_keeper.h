// Writes doors.json after changes, and reads it at start.
#pragma once

#include <string>

#include "base/core/result.h"
#include "base/executor.h"
#include "door/doors_file.h"
#include "os/kept_file.h"

namespace penstock::door {

/// As os::KeptFile.
class DoorsKeeper {
 public:
  DoorsKeeper(base::Executor& control, base::Executor& io, std::string path);

  void Keep(const DevicesByHand& devices) { file_.Keep(EncodeDoors(devices)); }

  /// What was kept last; nothing where it is damaged or of a newer version (os::LoadKept). Blocks.
  static base::Result<DevicesByHand> Load(const std::string& path);

 private:
  os::KeptFile file_;
};

}  // namespace penstock::door
