// Tells a folder from an earlier one of the same path. Reads nothing in it.
#pragma once

#include <string>

namespace penstock::os {

/// Another text each time that the folder was made anew within a boot: sysfs numbers its folders in turn and uses no number twice
/// (fs/kernfs: ids), so that of /sys/module/NAME it tells one loading of a module from another one. Empty where there is none. Any thread.
std::string FolderInstance(const std::string& path);

}  // namespace penstock::os
