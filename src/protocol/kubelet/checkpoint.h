// Reads the kubelet's record of which containers got which devices:
// device-plugins/kubelet_internal_checkpoint. It is a hint: the kubelet keeps entries of deleted
// pods for a while.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::protocol::kubelet {

/// The devices of one resource that were allocated to one container; ids sorted.
struct CheckpointEntry {
  std::string pod_uid, container, resource;
  std::vector<std::string> ids;
  bool operator==(const CheckpointEntry&) const = default;
};

struct Checkpoint {
  std::vector<CheckpointEntry> entries;  ///< in file order
  /// Resource → healthy ids at the time of the record, sorted.
  std::map<std::string, std::vector<std::string>> registered;
};

/// Parses the text, with both forms of DeviceIDs: by NUMA node (since Kubernetes 1.20) and the
/// older plain list. Ignores unknown keys, since the kubelet may extend its format. Does not verify
/// the checksum, which is a hash of a Go program's in-memory dump. Errors (kInvalidArgument, or
/// kResourceExhausted if the text is too long) name file:line:column, all invalid entries at once.
base::Result<Checkpoint> ParseCheckpoint(std::string_view text, std::string_view file);

/// Reads the checkpoint in a kubelet's folder. Blocks on the disk. kNotFound if the kubelet has not
/// written one yet.
base::Result<Checkpoint> ReadCheckpoint(const std::string& kubelet_dir);

}  // namespace penstock::protocol::kubelet
