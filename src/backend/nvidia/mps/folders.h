// The folders of a set, which daemon, servers and clients share. Creates, mounts and removes
// folders; starts no process.
#pragma once

#include <string>
#include <vector>

#include "backend/nvidia/mps/spec.h"
#include "base/core/result.h"

namespace penstock::backend::nvidia::mps {

struct Folders {
  std::string all;     ///< <root>/nvidia.com-gpu
  std::string daemon;  ///< the daemon's sockets, lock and log pipe; containers do not get it
  std::string pipe;    ///< what clients get: only the socket for clients
  std::string log;
  std::string shm;   ///< the /dev/shm of daemon, servers and clients
  std::string note;  ///< file with the spec that the daemon was started with, kept as long as the
                     ///< daemon controls its GPUs
};

/// The folders of the set with this name below a root.
Folders FoldersOf(const std::string& root, const std::string& set);

/// Creates the folders with permissions for processes of any user and removes what a dead daemon
/// left in them. kInvalidArgument: a socket's path would be too long (108 bytes, unix(7)).
base::Status MakeFolders(const Folders& folders);

/// Mounts a file system in memory at shm, of at most half of the machine's memory (tmpfs(5)'s own
/// limit). If this fails, shm stays a plain folder and the reason is returned as one sentence;
/// empty on success.
std::string MountShm(const Folders& folders, const std::string& proc_root);

/// Links the daemon's socket for clients into the clients' folder, replacing any file of that name.
/// The command socket and the log pipe stay out of that folder: a process that can write to them
/// can lift limits (535: any client can), end the daemon or stop it.
base::Status ShareSocket(const Folders& folders);

base::Status WriteNote(const Folders& folders, const ServerSpec& spec);

/// The specs of the notes below a root: sets that an agent started and that have not ended.
std::vector<ServerSpec> ReadNotes(const std::string& root);

/// Removes everything when a set has ended.
void RemoveFolders(const Folders& folders);

/// Truncates logs that are larger than some megabytes: the daemon writes without limit, mostly into
/// memory.
void TrimLogs(const Folders& folders);

}  // namespace penstock::backend::nvidia::mps
