// Encodes and decodes doors.json, which keeps manual assignments of devices over restarts of the
// agent.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::node::change {

/// A device whose allocator was assigned manually.
struct ManualAssignment {
  std::optional<std::string> allocator;  ///< one of api::AllocatorWords; nothing: as the
                                         ///< configuration says

  /// Set while the device moves to its new allocator.
  struct Transfer {
    std::string from;                     ///< the allocator that it left; "" for none
    std::optional<std::string> back;      ///< the manual assignment before this one; nothing: there
                                          ///< was none
    std::optional<base::WallTime> until;  ///< when the device returns; nothing: it waits
                                          ///< indefinitely
    bool operator==(const Transfer&) const = default;
  };
  std::optional<Transfer> transfer;
  bool operator==(const ManualAssignment&) const = default;
};
using ManualAssignments = std::map<std::string, ManualAssignment>;  ///< by device id

std::string EncodeManualAssignments(const ManualAssignments& devices);

/// kFailedPrecondition where a newer version of the agent wrote it, kDataLoss where it is corrupt.
base::Result<ManualAssignments> DecodeManualAssignments(std::string_view text,
                                                        std::string_view file);

/// The assignments that were written last; none where the file is corrupt or of a newer version
/// (os::LoadKept). Blocks.
base::Result<ManualAssignments> LoadManualAssignments(const std::string& path);

}  // namespace penstock::node::change
