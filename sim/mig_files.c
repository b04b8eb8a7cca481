#define _GNU_SOURCE
#include "sim/mig_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { kMode = 0444, kRoom = PATH_MAX + 128 };

// Creates a small file in one step: a reader sees the whole file or none.
static void WriteFile(const char* path, const char* text) {
  char next[kRoom + 8];
  if (access(path, F_OK) == 0) return;
  snprintf(next, sizeof next, "%s.new", path);
  const int fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kMode);
  if (fd < 0) return;
  const size_t size = strlen(text);
  const int whole = write(fd, text, size) == (ssize_t)size && fchmod(fd, kMode) == 0;
  close(fd);
  if (!whole || rename(next, path) != 0) unlink(next);
}

// Creates a device node of the same kind as that of /dev/nvidia-caps/nvidia-cap1: a character
// device, or an empty file where the kernel permits no devices. lstat and mknod are system calls
// here, because libc has them as functions only since 2.33.
static void MakeNode(const char* root, uint32_t minor_number) {
  char path[kRoom];
  struct statx first;
  snprintf(path, sizeof path, "%s/dev/nvidia-caps/nvidia-cap1", root);
  if (syscall(SYS_statx, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &first) != 0)
    return;
  snprintf(path, sizeof path, "%s/dev/nvidia-caps/nvidia-cap%u", root, minor_number);
  if (access(path, F_OK) == 0) return;
  const unsigned device = (unsigned)makedev(first.stx_rdev_major, minor_number);
  if (!S_ISCHR(first.stx_mode))
    WriteFile(path, "");
  else if (syscall(SYS_mknodat, AT_FDCWD, path, S_IFCHR | kMode, device) == 0)
    (void)!chmod(path, kMode);
}

static void RemoveNode(const char* root, uint32_t minor_number) {
  char path[kRoom];
  snprintf(path, sizeof path, "%s/dev/nvidia-caps/nvidia-cap%u", root, minor_number);
  unlink(path);
}

// Makes one capability's folder and device node match.
static void SyncCapability(const char* root, const char* folder, uint32_t minor_number,
                           int exists) {
  char path[kRoom], text[96];
  snprintf(path, sizeof path, "%s/access", folder);
  if (!exists) {
    unlink(path);
    rmdir(folder);
    RemoveNode(root, minor_number);
    return;
  }
  MakeNode(root, minor_number);
  if (mkdir(folder, 0755) != 0 && errno != EEXIST) return;
  (void)!chmod(folder, 0755);  // whatever this process's umask is
  snprintf(text, sizeof text, "DeviceFileMinor: %u\nDeviceFileMode: %u\nDeviceFileModify: 1\n",
           minor_number, (unsigned)kMode);
  WriteFile(path, text);
}

void SimSyncInstanceFiles(const char* root, const SimState* state, const SimGpu* gpu) {
  char folder[kRoom - 16], compute[kRoom];
  const int loaded = state->loaded && !gpu->removed;
  for (uint32_t id = 0; id < kSimGpuInstances; id++) {
    const SimGpuInstance* instance = &gpu->instances[id];
    const int exists = loaded && instance->born;
    snprintf(folder, sizeof folder, "%s/proc/driver/nvidia/capabilities/gpu%u/mig/gi%u", root,
             gpu->minor, id);
    if (exists) SyncCapability(root, folder, SimCapabilityMinor(gpu->minor, id, SIM_NA), 1);
    for (uint32_t c = 0; c < kSimComputeInstances; c++) {
      snprintf(compute, sizeof compute, "%s/ci%u", folder, c);
      SyncCapability(root, compute, SimCapabilityMinor(gpu->minor, id, c),
                     exists && instance->computes[c].born);
    }
    if (!exists) SyncCapability(root, folder, SimCapabilityMinor(gpu->minor, id, SIM_NA), 0);
  }
}
