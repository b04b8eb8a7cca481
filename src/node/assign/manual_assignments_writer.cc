#include "node/assign/manual_assignments_writer.h"

#include <utility>

namespace penstock::node::assign {

ManualAssignmentsWriter::ManualAssignmentsWriter(base::Executor& control, base::Executor& io,
                                                 std::string path)
    : file_(control, io, std::move(path),
            "what was moved between doors by hand cannot be written, and would be forgotten by a "
            "restart") {}

base::Result<ManualAssignments> ManualAssignmentsWriter::Load(const std::string& path) {
  return os::LoadKept<ManualAssignments>(
      path, "what was moved between doors by hand",
      [&](const std::string& text) { return DecodeManualAssignments(text, path); });
}

}  // namespace penstock::node::assign
