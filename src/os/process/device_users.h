// Finds the processes that keep a driver in use, by the device files that they have open or mapped.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace penstock::os {

struct DeviceUser {
  pid_t pid = 0;
  std::string file;  ///< one of its files: "/dev/nvidia0"
  bool operator==(const DeviceUser&) const = default;
};

/// Whether a character device with these numbers is one of those whose users are searched.
using IsSearchedDevice = std::function<bool(std::uint32_t major, std::uint32_t minor)>;

/// The processes with a file open or mapped whose name behind "/dev/" begins with one of `names`
/// ("nvidia"), and which is a device of `is_searched` (empty: any), in ascending order. If one of
/// them has a character device, those with other files are left out: any user can give a plain file
/// such a name. Opens no such file, since a process may name files that never answer. Reads at most
/// `most` open files, so a process with very many of them can hide those with higher numbers. Needs
/// permission to trace the processes. Blocks for at most half a second for each process that delays
/// readers of its memory map, four seconds in all; on a machine whose processors are all busy also
/// until a thread begins to read, at most two seconds for each process.
std::vector<DeviceUser> FindDeviceUsers(const std::string& proc,
                                        const std::vector<std::string>& names,
                                        const IsSearchedDevice& is_searched = {},
                                        std::size_t most = 1'000'000);

}  // namespace penstock::os
