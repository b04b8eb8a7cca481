// Keeps the checkpoint of the devices' health on disk up to date.
#pragma once

#include <string>

#include "base/executor.h"
#include "node/health/monitor.h"
#include "os/kept_file.h"

namespace penstock::node::health {

/// Writes the monitor's checkpoint to health.json and, for the part that 0.1.0 cannot read, to
/// health-marks.json in a folder, as os::KeptFile writes and retries, at most once a second. Must
/// not outlive the monitor.
class HealthCheckpointWriter {
 public:
  HealthCheckpointWriter(base::Executor& control, base::Executor& io, Monitor& monitor,
                         const std::string& folder, const std::string& boot_id);
  ~HealthCheckpointWriter();  ///< writes what is still pending; blocks

  /// Returns the checkpoint of the previous agent. A file that is damaged or written by a newer
  /// version counts as empty (os::LoadKept). Returns an error if a file cannot be read. Blocks.
  static base::Result<HealthCheckpoint> Load(const std::string& folder, const std::string& boot_id,
                                             base::WallTime now);

 private:
  void Changed();

  Monitor& monitor_;
  os::KeptFile health_, marks_;
};

}  // namespace penstock::node::health
