// Keeps the checkpoint of the devices' health on disk up to date.
#pragma once

#include <memory>
#include <string>

#include "base/executor.h"
#include "node/health/monitor.h"

namespace penstock::node::health {

/// Writes the monitor's checkpoint to health.json and, for the part that 0.1.0 cannot read, to
/// health-marks.json in a folder. It writes on the I/O executor after a change, at most once a
/// second, and only files whose text differs. A failed write is logged and retried after 10 s. Must
/// not outlive the monitor.
class HealthCheckpointWriter {
 public:
  HealthCheckpointWriter(base::Executor& control, base::Executor& io, Monitor& monitor,
                         const std::string& folder, std::string boot_id);
  ~HealthCheckpointWriter();  ///< writes what is still pending; blocks

  /// Returns the checkpoint of the previous agent. A file that is damaged or written by a newer
  /// version counts as empty (os::LoadKept). Returns an error if a file cannot be read. Blocks.
  static base::Result<HealthCheckpoint> Load(const std::string& folder, const std::string& boot_id,
                                             base::WallTime now);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::health
