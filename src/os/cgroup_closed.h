// Devices that are closed to the processes of whole control groups of the machine, but for root's and those in groups that are admitted.
// The kernel opens them again as soon as the process that closed them ends, however it ends: nothing is left to be put back.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "os/cgroup.h"
#include "os/core/fd.h"

namespace penstock::os {

/// One thread; calls block for microseconds.
class ClosedDevices {
 public:
  /// kPermissionDenied and kUnimplemented say which capability or kernel option is missing.
  static base::Result<ClosedDevices> Open();

  /// These devices cannot be opened any more for reading or writing by processes in these groups (their folders) or below them. Root of the
  /// machine's own user namespace is not held back; nor are the processes of admitted groups. What was closed before and is not named is
  /// open again. Tells of each group whether it is closed: kNotFound where it is not there now; call again then, and when groups or devices
  /// may have changed. Cheap where nothing has.
  std::map<std::string, base::Status> Close(const std::vector<std::string>& groups, const std::vector<DeviceRange>& devices);

  /// The processes in this group are not held back, as long as it exists; those in groups below it are.
  base::Status Admit(const std::string& group);

  /// The group does not exist any more. Without this the kernel's map would fill up in time.
  void Forget(const std::string& group);

 private:
  struct Closed {
    std::uint64_t id = 0;  // of the group
    UniqueFd link;
  };
  explicit ClosedDevices(UniqueFd admitted) : admitted_(std::move(admitted)) {}
  base::Status CloseOne(const std::string& group);

  UniqueFd admitted_;                         // a map of the kernel: ids of groups
  std::map<std::string, std::uint64_t> ids_;  // that are in it, by the groups' folders
  UniqueFd program_;
  std::vector<DeviceRange> devices_;  // of the program
  std::map<std::string, Closed> closed_;
};

}  // namespace penstock::os
