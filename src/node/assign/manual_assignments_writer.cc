#include "node/assign/manual_assignments_writer.h"

#include <utility>

namespace penstock::node::assign {

ManualAssignmentsWriter::ManualAssignmentsWriter(base::Executor& control, base::Executor& io,
                                                 std::string path)
    : file_(control, io, std::move(path),
            "cannot write manual assignments; a restart would lose them") {}

base::Result<ManualAssignments> ManualAssignmentsWriter::Load(const std::string& path) {
  return os::LoadKept<ManualAssignments>(path, "manual assignments", [&](const std::string& text) {
    return DecodeManualAssignments(text, path);
  });
}

}  // namespace penstock::node::assign
