// Keeps what is known of devices' health on disk. Judges nothing.
#pragma once

#include <memory>
#include <string>

#include "base/executor.h"
#include "node/health/health.h"

namespace penstock::node::health {

/// What the last agent left.
struct Kept {
  Memory memory;
  bool may_write_memory = true, may_write_marks = true;  ///< false: a newer version wrote it, and it is left alone
};

/// The monitor's memory in health.json and, what 0.1.0 does not know, in health-marks.json of a folder, kept current: written on the I/O
/// executor after something changed, once a second at most, and only where the text differs. A failed write is logged and repeated after
/// 10 s. Must not outlive the monitor.
class Keeper {
 public:
  Keeper(base::Executor& control, base::Executor& io, Monitor& monitor, const std::string& folder, const Kept& kept, std::string boot_id);
  ~Keeper();  ///< writes what is not written yet; blocks

  /// What the last agent knew. A damaged file is set aside as "<path>.damaged", and what was in it is not known. An error where one cannot
  /// be read. Blocks.
  static base::Result<Kept> Load(const std::string& folder, const std::string& boot_id, base::WallTime now);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::health
