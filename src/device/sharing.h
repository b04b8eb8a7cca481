// How a device is given to several consumers at once, and what keeps them apart: the nouns, and the seam to a driver's own server for it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/published.h"
#include "device/dialect.h"
#include "device/model.h"

namespace penstock::device {

/// What keeps the holders of one device apart, never more than the driver in use really holds. Later is stronger.
enum class Isolation {
  kNone,              ///< nothing: they take turns, and one can take all the memory
  kMemoryPerProcess,  ///< a limit for each process, so that two processes of one holder have twice as much
  kMemory,            ///< a limit of memory for each holder
  kMemoryCompute,     ///< of memory and of computing
  kHardware,          ///< the hardware keeps them apart, or there is one holder only
};
std::string_view ToString(Isolation isolation);  ///< "none", "memory-per-process", "memory", "memory-compute", "hardware"

/// Devices behind one server of the driver's that lets several processes use them at once (NVIDIA's MPS).
struct SharedSet {
  struct Member {
    std::shared_ptr<const Facts> device;
    int shares = 1;  ///< each gets memory / shares and 100 % / shares
    bool operator==(const Member&) const = default;
  };
  std::string name;             ///< the resource's name, "nvidia.com/gpu": of one set at a time
  std::vector<Member> members;  ///< in order of index; of one vendor
  bool operator==(const SharedSet&) const = default;
};

/// How a device of a set does.
struct SharedDevice {
  std::string set;
  bool ready = false;
  std::string reason;  ///< why it is not ready, one sentence; while ready: what is not as it was asked for
  Isolation isolation = Isolation::kNone;
  base::Bytes memory;          ///< limit for each process as the server says it; 0: none
  int compute_percent = 0;     ///< likewise; 0: none
  int clients = 0;             ///< processes that use the server now
  std::vector<pid_t> servers;  ///< the server's own processes, which the driver shows on its devices: nobody's, and in nobody's way
  Edits container;             ///< what a container needs beside the device itself
  Edits process;               ///< what a process of this machine needs
  bool operator==(const SharedDevice&) const = default;
};
using SharedDevices = std::map<std::string, SharedDevice>;  ///< by device id

/// One vendor's servers, supervised: started, watched, started again when they end, ended when nobody wants them. On the control executor.
class SharingService {
 public:
  virtual ~SharingService() = default;

  /// From now on exactly these sets. What is as it was is left alone; a set that changed, or is not wanted any more, keeps its server until
  /// its last client has gone, and says so. Servers found running from an agent before us are taken over. At the end of this object servers
  /// with clients are left running for the next agent.
  virtual void Want(std::vector<SharedSet> sets) = 0;

  /// Every device that is in a set. Published on the control executor.
  virtual base::Published<SharedDevices>& published() = 0;

  /// Ends everything in good order when the agent goes for good (`penstock down`); servers that have clients stay. Blocks until the idle
  /// ones are gone, some seconds at most: the loop is stopped right after it.
  virtual void EndIdle() = 0;
};

}  // namespace penstock::device
