// Closes devices to the processes of whole control groups of the machine, except root's processes
// and those in admitted groups. The kernel reopens the devices as soon as the process that closed
// them ends, however it ends: no cleanup is necessary.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "os/cgroup/cgroup.h"
#include "os/core/fd.h"

namespace penstock::os {

/// Use from one thread; calls block for microseconds.
class ClosedDevices {
 public:
  /// kPermissionDenied and kUnimplemented name the missing capability or kernel option.
  static base::Result<ClosedDevices> Open();

  /// From now on, processes in these groups (given by folder) and their descendants cannot open
  /// these devices for reading or writing. Root of the machine's initial user namespace and
  /// processes in admitted groups are exempt. Anything closed before and not named in this call is
  /// reopened. Returns for each group whether it is closed: kNotFound if the group does not exist
  /// now. Call again in that case, and whenever groups or devices may have changed; a call without
  /// changes is cheap.
  std::map<std::string, base::Status> Close(const std::vector<std::string>& groups,
                                            const std::vector<DeviceRange>& devices);

  /// Exempts the processes in this group for as long as it exists, but not those in its
  /// descendants.
  base::Status Admit(const std::string& group);

  /// To be called when the group no longer exists; otherwise the kernel's map fills up over time.
  void Forget(const std::string& group);

 private:
  struct Closed {
    std::uint64_t id = 0;  // of the group
    UniqueFd link;
  };
  explicit ClosedDevices(UniqueFd admitted) : admitted_(std::move(admitted)) {}
  base::Status CloseOne(const std::string& group);

  UniqueFd admitted_;                         // kernel map: ids of admitted groups
  std::map<std::string, std::uint64_t> ids_;  // the ids in the map, by group folder
  UniqueFd program_;
  std::vector<DeviceRange> devices_;  // devices that the program refuses
  std::map<std::string, Closed> closed_;
};

}  // namespace penstock::os
