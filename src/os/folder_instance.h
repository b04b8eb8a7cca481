// Distinguishes a folder from an earlier one with the same path. Does not read its content.
#pragma once

#include <string>

namespace penstock::os {

/// Returns a different text for each folder that was created at this path within one boot. sysfs
/// numbers its folders in sequence and never reuses a number (fs/kernfs: ids), so the text for
/// /sys/module/NAME distinguishes one load of a module from the next. Empty if there is no such
/// folder. Any thread.
std::string FolderInstance(const std::string& path);

}  // namespace penstock::os
