// How several holders share a device and what isolates them: the types, and the interface to a
// driver's own sharing server.
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

/// What isolates the holders of one device, never more than the driver in use enforces. Later is
/// stronger.
enum class Isolation {
  kNone,              ///< nothing: holders take turns, and one can take all the memory
  kMemoryPerProcess,  ///< a memory limit per process: two processes of one holder have twice as
                      ///< much
  kMemory,            ///< a memory limit per holder
  kMemoryCompute,     ///< limits of memory and of compute
  kHardware,          ///< the hardware isolates them, or there is only one holder
};
std::string_view ToString(
    Isolation isolation);  ///< "none", "memory-per-process", "memory", "memory-compute", "hardware"

/// Devices behind one server of the driver that lets several processes use them at once (NVIDIA's
/// MPS).
struct SharedSet {
  struct Member {
    std::shared_ptr<const Facts> device;
    int shares = 1;  ///< each share gets memory / shares and 100 % / shares
    bool operator==(const Member&) const = default;
  };
  std::string name;  ///< belongs to one set at a time: the resource's name, "nvidia.com/gpu"; of a
                     ///< part, its id, because a process uses parts through one server only
  std::vector<Member> members;  ///< ordered by index; all of one vendor
  bool operator==(const SharedSet&) const = default;
};

/// State of a device of a set.
struct SharedDevice {
  std::string set;
  bool ready = false;
  std::string
      reason;  ///< why it is not ready, one sentence; while ready: what differs from the request
  Isolation isolation = Isolation::kNone;
  base::Bytes memory;          ///< limit per process as the server reports it; 0: none
  int compute_percent = 0;     ///< likewise; 0: none
  int clients = 0;             ///< processes that use the server now
  std::vector<pid_t> servers;  ///< the server's own processes, which the driver lists on its
                               ///< devices: they belong to no holder and block none
  Edits container;             ///< what a container needs besides the device itself
  Edits process;               ///< what a process on this machine needs
  bool operator==(const SharedDevice&) const = default;
};
/// Whether this is the set of the device's shares, whatever server the device had before.
bool IsSetOf(const std::string& set, const std::string& device, const std::string& resource);
Limits LimitsOf(const SharedDevice& shared);                ///< those that its server reports
using SharedDevices = std::map<std::string, SharedDevice>;  ///< by device id

/// What a vendor's sharing servers need to know of this machine.
struct ServerOptions {
  std::string driver_root = "/";
  std::string proc_root = "/proc";
  std::string root;            ///< folder of the servers' pipes and logs, as this process sees it
  std::string host_root;       ///< the same folder as the host sees it
  bool for_containers = true;  ///< false: processes of this machine use them
  std::string launcher;  ///< the program that gives the servers a mount namespace and a control
                         ///< group of their own (os/process/launch.h)
};

/// Supervises one vendor's sharing servers: starts and watches them, restarts those that end, and
/// ends those that no set needs. On the control executor.
class SharingService {
 public:
  virtual ~SharingService() = default;

  /// Sets the desired sets, replacing the previous ones. Unchanged sets are left alone. A set that
  /// changed or is no longer desired keeps its server until its last client has gone, and reports
  /// this. Servers left running by a previous agent are taken over. The destructor leaves servers
  /// with clients running for the next agent.
  virtual void Want(std::vector<SharedSet> sets) = 0;

  /// The driver and its programs are now below this root. Running servers go on.
  virtual void SetDriverRoot(const std::string& /*root*/) {}

  /// The state of every device that is in a set. Published on the control executor.
  virtual base::Published<SharedDevices>& published() = 0;

  /// Ends the servers in good order when the agent is removed (`penstock down`); servers with
  /// clients keep running. Blocks until the idle ones have ended, some seconds at most: the loop
  /// stops right after it.
  virtual void EndIdle() = 0;
};

}  // namespace penstock::device
