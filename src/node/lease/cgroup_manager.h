// The interface to control groups that local leases use; tests replace it, because only root can
// create real groups.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/core/result.h"
#include "os/cgroup/cgroup.h"
#include "os/loop.h"

namespace penstock::node::lease {

/// Control groups by name, as in os::CgroupTree. Runs on the control executor.
class CgroupManager {
 public:
  virtual ~CgroupManager() = default;
  virtual std::vector<std::string> List() = 0;
  virtual base::Result<std::string> Note(const std::string& name) const = 0;
  virtual base::Result<std::string> PlaceFor(const std::string& name,
                                             const std::string& above) const = 0;
  virtual std::string Place(const std::string& name) const = 0;
  virtual base::Status Create(const std::string& name, const std::string& place,
                              const os::DeviceRules& rules, const std::string& note) = 0;
  virtual base::Status Enter(const std::string& name, pid_t pid) = 0;
  virtual base::Status MoveTo(const std::string& cgroup, pid_t pid) = 0;
  virtual std::vector<pid_t> Members(const std::string& name) const = 0;
  /// Signals all members, some of them possibly later where there are many. SIGKILL also reaches
  /// processes that start meanwhile.
  virtual base::Status Signal(const std::string& name, int signal) = 0;
  /// True also where it cannot be determined: processes that may be in the group hold its devices.
  virtual bool Populated(const std::string& name) const = 0;
  /// Calls `changed`, through the executor, each time the group becomes empty or populated, until
  /// Unwatch. The current state is not reported.
  virtual base::Status Watch(const std::string& name, std::function<void()> changed) = 0;
  virtual void Unwatch(const std::string& name) = 0;
  virtual base::Status Remove(const std::string& name) = 0;
  /// os::ClosedDevices::Close for groups of the machine ("/user.slice"); the agent's own groups are
  /// admitted, future ones included.
  virtual std::map<std::string, base::Status> CloseDevices(
      const std::vector<std::string>& cgroups, const std::vector<os::DeviceRange>& devices) = 0;
};

/// The machine's own groups: the os::CgroupTree of that name, whose folder is removed at the end
/// if it is empty. Errors say which permission is missing.
base::Result<std::unique_ptr<CgroupManager>> OpenCgroups(os::Loop& loop,
                                                         const std::string& group_name);

/// "penstock" for the default run directory, else "penstock-<hash>": agents with different run
/// directories share no group.
std::string CgroupNameFor(const std::string& run_dir);

}  // namespace penstock::node::lease
