// The folders of a set: where daemon, servers and clients meet. Makes, mounts and removes them; starts nothing.
#pragma once

#include <string>
#include <vector>

#include "base/core/result.h"
#include "vendor/nvidia/mps/spec.h"

namespace penstock::vendor::nvidia::mps {

struct Folders {
  std::string all;     ///< <root>/nvidia.com-gpu
  std::string daemon;  ///< where the daemon has its sockets, its lock and its log's pipe; no container gets it
  std::string pipe;    ///< what clients get: the socket for clients, and nothing else
  std::string log;
  std::string shm;   ///< what daemon, servers and clients have as /dev/shm
  std::string note;  ///< the file that says what the daemon was started with, as long as its GPUs are in its hands
};

/// Of a set of this name below a root.
Folders FoldersOf(const std::string& root, const std::string& set);

/// Makes them as they have to be for processes of any user, and clears away what a dead daemon left in them. kInvalidArgument where a
/// socket's path would be too long (108 bytes, unix(7)).
base::Status MakeFolders(const Folders& folders);

/// Makes shm a file system in memory of its own, at most half of the machine's memory (tmpfs(5)'s own bound). What could not be had is
/// returned as one sentence, and it is a plain folder then; empty where all is well.
std::string MountShm(const Folders& folders, const std::string& proc_root);

/// Puts the socket that the daemon has for clients into their folder, in place of whatever is called so there. The one for commands and
/// the log's pipe stay out of it: who can write to those can lift limits (535: any client can), end the daemon or stop it.
base::Status ShareSocket(const Folders& folders);

base::Status WriteNote(const Folders& folders, const Spec& spec);

/// The specs of the notes below a root: sets that somebody once started and nobody has ended.
std::vector<Spec> ReadNotes(const std::string& root);

/// What is left when a set has ended: nothing.
void RemoveFolders(const Folders& folders);

/// A log that grew beyond some megabytes begins anew: the daemon writes without end, mostly into memory.
void TrimLogs(const Folders& folders);

}  // namespace penstock::vendor::nvidia::mps
