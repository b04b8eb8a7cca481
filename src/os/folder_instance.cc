// Combines the inode's number and, if the file system has one, its birth time.
#include "os/folder_instance.h"

#include <fcntl.h>
#include <sys/stat.h>

namespace penstock::os {

std::string FolderInstance(const std::string& path) {
  struct statx info {};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_INO | STATX_BTIME, &info) != 0) return "";
  std::string instance = std::to_string(info.stx_ino);
  // sysfs has no birth times. File systems that reuse inode numbers, on which a copy of sysfs may
  // be, have them.
  if ((info.stx_mask & STATX_BTIME) != 0)
    instance +=
        "-" + std::to_string(info.stx_btime.tv_sec) + "." + std::to_string(info.stx_btime.tv_nsec);
  return instance;
}

}  // namespace penstock::os
