// Writes doors.json after changes and reads it at start.
#pragma once

#include <string>

#include "base/core/result.h"
#include "base/executor.h"
#include "node/assign/manual_assignments.h"
#include "os/kept_file.h"

namespace penstock::node::assign {

/// Writes and retries as os::KeptFile does.
class ManualAssignmentsWriter {
 public:
  ManualAssignmentsWriter(base::Executor& control, base::Executor& io, std::string path);

  void Keep(const ManualAssignments& devices) { file_.Keep(EncodeManualAssignments(devices)); }

  /// The assignments that were written last; none where the file is corrupt or of a newer version
  /// (os::LoadKept). Blocks.
  static base::Result<ManualAssignments> Load(const std::string& path);

 private:
  os::KeptFile file_;
};

}  // namespace penstock::node::assign
