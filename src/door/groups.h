// What the local door needs of control groups: a seam, since only root can make real ones. Knows no device and no lease.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/core/result.h"
#include "os/cgroup.h"
#include "os/loop.h"

namespace penstock::door {

/// Groups by name, as os::CgroupTree has them. On the control executor.
class Groups {
 public:
  virtual ~Groups() = default;
  virtual std::vector<std::string> List() = 0;
  virtual base::Result<std::string> Note(const std::string& name) const = 0;
  virtual base::Result<std::string> PlaceFor(const std::string& name, const std::string& above) const = 0;
  virtual std::string Place(const std::string& name) const = 0;
  virtual base::Status Create(const std::string& name, const std::string& place, const os::DeviceRules& rules, const std::string& note) = 0;
  virtual base::Status Enter(const std::string& name, pid_t pid) = 0;
  virtual base::Status MoveTo(const std::string& cgroup, pid_t pid) = 0;
  virtual std::vector<pid_t> Members(const std::string& name) const = 0;
  /// To all members, perhaps later to some of them where they are many. SIGKILL reaches also those that are born meanwhile.
  virtual base::Status Signal(const std::string& name, int signal) = 0;
  /// True also where it cannot be found out: those who may be in it hold their devices.
  virtual bool Populated(const std::string& name) const = 0;
  /// Calls back, through the executor, each time the group became empty or was entered, until Unwatch. What is so already is not told.
  virtual base::Status Watch(const std::string& name, std::function<void()> changed) = 0;
  virtual void Unwatch(const std::string& name) = 0;
  virtual base::Status Remove(const std::string& name) = 0;
  /// os::ClosedDevices::Close for groups of the machine ("/user.slice"); groups of ours are admitted, those to be made too.
  virtual std::map<std::string, base::Status> CloseDevices(const std::vector<std::string>& cgroups,
                                                           const std::vector<os::DeviceRange>& devices) = 0;
};

/// The machine's own: os::CgroupTree of that name, whose folder is removed again at the end where nothing is left in it. Errors say which
/// right is missing.
base::Result<std::unique_ptr<Groups>> OpenCgroups(os::Loop& loop, const std::string& group_name);

/// "penstock" for the ordinary run directory, else "penstock-<hash>": agents with different run directories share no group.
std::string CgroupNameFor(const std::string& run_dir);

}  // namespace penstock::door
