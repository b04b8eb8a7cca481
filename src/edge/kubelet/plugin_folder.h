// The kubelet's device-plugins folder as this plugin needs to see it. Private to this room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/core/clock.h"

namespace penstock::edge::kubelet {

/// Tells a socket file from one made later at the same path: a kubelet that starts makes its socket anew.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  std::int64_t made_seconds = 0;
  std::int64_t made_nanoseconds = 0;
  bool operator==(const FileIdentity&) const = default;
};

/// Nothing where there is no socket at the path.
std::optional<FileIdentity> SocketAt(const std::string& path);

/// Names of all sockets in the folder, sorted; the kubelet's own checkpoint comes and goes with every pod and is not among them.
std::vector<std::string> SocketNames(const std::string& folder);

/// Removes sockets that begin with the prefix, are older than a few seconds and that nobody listens on: what a killed agent left behind.
void RemoveLeftovers(const std::string& folder, const std::string& prefix, const std::string& proc_root);

/// A socket name that no other process and no earlier start of ours has: prefix, pid, a random number. Pids alone are the same in every
/// container.
std::string UniqueSocketName(const std::string& prefix);

}  // namespace penstock::edge::kubelet
