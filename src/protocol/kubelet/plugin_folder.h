// Reads and cleans up the sockets in the kubelet's device-plugins folder. Private to
// src/protocol/kubelet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/core/clock.h"

namespace penstock::protocol::kubelet {

/// Distinguishes a socket file from a later one at the same path: a kubelet that starts creates its
/// socket again.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  std::int64_t made_seconds = 0;
  std::int64_t made_nanoseconds = 0;
  bool operator==(const FileIdentity&) const = default;
};

/// nullopt if there is no socket at the path.
std::optional<FileIdentity> SocketAt(const std::string& path);

/// Names of all sockets in the folder, sorted. Omits the kubelet's own checkpoint, which comes and
/// goes with every pod.
std::vector<std::string> SocketNames(const std::string& folder);

/// Removes sockets with this prefix that are older than a few seconds and that no process listens
/// on: leftovers of a killed agent.
void RemoveLeftovers(const std::string& folder, const std::string& prefix,
                     const std::string& proc_root);

/// A socket name that no other process and no earlier start of ours has: prefix, pid, and a random
/// number. Pids alone are the same in every container.
std::string UniqueSocketName(const std::string& prefix);

}  // namespace penstock::protocol::kubelet
