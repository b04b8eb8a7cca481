// The kubelet's own note of what it gave to whom: device-plugins/kubelet_internal_checkpoint. A hint: it keeps entries of deleted pods for
// a while.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::edge::kubelet {

/// What one container was given of one resource; ids sorted.
struct CheckpointEntry {
  std::string pod_uid, container, resource;
  std::vector<std::string> ids;
  bool operator==(const CheckpointEntry&) const = default;
};

struct Checkpoint {
  std::vector<CheckpointEntry> entries;                        ///< in file order
  std::map<std::string, std::vector<std::string>> registered;  ///< resource → healthy ids when it was written, sorted
};

/// Reads the text. Both forms of DeviceIDs are understood: by NUMA node (since Kubernetes 1.20) and the older plain list. Keys that are not
/// known are passed over, since the format is the kubelet's own to extend. The checksum is not verified: it is a hash of a Go program's
/// in-memory dump. Errors (kInvalidArgument, or kResourceExhausted where it is over-long) name file:line:column, all wrong entries at once.
base::Result<Checkpoint> ParseCheckpoint(std::string_view text, std::string_view file);

/// The checkpoint of a kubelet's folder. Blocks on the disk. kNotFound where the kubelet has not written one yet.
base::Result<Checkpoint> ReadCheckpoint(const std::string& kubelet_dir);

}  // namespace penstock::edge::kubelet
