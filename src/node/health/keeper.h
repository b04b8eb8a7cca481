// Keeps what is known of devices' health on disk. Judges nothing.
#pragma once

#include <memory>
#include <string>

#include "base/executor.h"
#include "node/health/health.h"

namespace penstock::node::health {

/// The monitor's memory in health.json and, what 0.1.0 does not know, in health-marks.json of a folder, kept current: written on the I/O
/// executor after something changed, once a second at most, and only where the text differs. A failed write is logged and repeated after
/// 10 s. Must not outlive the monitor.
class Keeper {
 public:
  Keeper(base::Executor& control, base::Executor& io, Monitor& monitor, const std::string& folder, std::string boot_id);
  ~Keeper();  ///< writes what is not written yet; blocks

  /// What the last agent knew; nothing of a file that is damaged or of a newer version (os::LoadKept). An error where one cannot be read.
  /// Blocks.
  static base::Result<Memory> Load(const std::string& folder, const std::string& boot_id, base::WallTime now);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::health
