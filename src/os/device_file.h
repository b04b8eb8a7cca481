// Creates files of character devices, and says in which folders there are any.
#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

#include "base/core/result.h"

namespace penstock::os {

/// Makes the name in the folder a character device with these numbers, whatever the umask. A device
/// file with others is replaced; there is no moment without a file. kFailedPrecondition: something
/// else has that name, such as a link, or the folder is a link, or others can write in it. Else the
/// error of a system call: kPermissionDenied where this process may create no devices.
Status PutDeviceFile(const std::string& folder, const std::string& name, std::uint32_t major,
                     std::uint32_t minor, mode_t mode);

/// Whether the folder contains dev/, or is itself a /dev, which has a "null". The root of a driver
/// that is being replaced is neither, whatever else may be in it then: the kubelet makes
/// lib/firmware for the volumes of driver pods.
bool HasDeviceFiles(const std::string& root);

}  // namespace penstock::os
