// Locates the machine to which this library belongs: finds its state and its device files from the
// path of the loaded library.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/nvml/library.h"

enum { kPathSize = 4096 };

static char g_root[kPathSize];  // parent folder of the machine's dev/; written under the
                                // session's lock

// Returns the path under which the loader mapped this library. dladdr's name does not suffice,
// because production opens the library through /proc/self/fd.
static int OwnPath(char* path) {
  FILE* maps = fopen("/proc/self/maps", "re");
  if (!maps) return 0;
  const uintptr_t here = (uintptr_t)OpenState;
  char line[kPathSize + 128];
  int found = 0;
  while (!found && fgets(line, sizeof line, maps)) {
    unsigned long from, to;
    int name_at = 0;
    if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &from, &to, &name_at) < 2 || here < from ||
        here >= to)
      continue;
    line[strcspn(line, "\n")] = 0;
    found = name_at > 0 && line[name_at] == '/' && strlen(line + name_at) < kPathSize;
    if (found) strcpy(path, line + name_at);
  }
  fclose(maps);
  if (!found) return 0;
  char* deleted = strstr(path, " (deleted)");
  if (deleted) *deleted = 0;
  return 1;
}

// Reads the version from the file name: "libnvidia-ml.so.550.54.15" contains it;
// "libnvidia-ml.so.1" does not.
static void LearnVersion(const char* path, char* known, size_t size) {
  const char* name = strrchr(path, '/');
  const char* prefix = "/libnvidia-ml.so.";
  if (known[0] || !name || strncmp(name, prefix, strlen(prefix)) != 0) return;
  const char* version = name + strlen(prefix);
  if (strchr(version, '.')) snprintf(known, size, "%s", version);
}

// Opens a file for writing or, if that is refused, for reading. Returns -1 with errno on failure.
static int OpenEither(const char* path, int* writable) {
  *writable = 1;
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd >= 0 || (errno != EACCES && errno != EROFS && errno != EPERM)) return fd;
  *writable = 0;
  return open(path, O_RDONLY | O_CLOEXEC);
}

// Opens the state of the machine at `folder`. Returns -1 with ENOENT if there is none.
static int OpenBelow(const char* folder, int* writable) {
  char path[kPathSize];
  errno = ENOENT;
  if (snprintf(path, sizeof path, "%s/.penstock-sim/state", folder) >= (int)sizeof path) return -1;
  const int fd = OpenEither(path, writable);
  if (fd < 0 && errno == ENOTDIR) errno = ENOENT;
  return fd;
}

// Opens the state by its second name, where only the driver's files exist, as in a container: their
// root is `folder`, or `folder` is its usr/. Returns -1 with ENOENT for any other firmware.
static int OpenFirmware(const char* folder, const char* version, int* writable) {
  static const char* const kNames[] = {"gsp_tu10x.bin", "gsp.bin"};
  char path[kPathSize];
  for (unsigned i = 0; i < sizeof kNames / sizeof kNames[0] && version[0]; i++) {
    const int length =
        snprintf(path, sizeof path, "%s/lib/firmware/nvidia/%s/%s", folder, version, kNames[i]);
    const int fd = length < (int)sizeof path ? OpenEither(path, writable) : -1;
    uint32_t magic = 0;
    if (fd < 0) continue;
    if (pread(fd, &magic, sizeof magic, 0) == (ssize_t)sizeof magic && magic == kSimMagic)
      return fd;
    close(fd);
  }
  errno = ENOENT;
  return -1;
}

// Stores the parent folder of the machine's dev/: that of .penstock-sim, or that of usr/.
static void LearnRoot(const char* path, const char* suffix) {
  const size_t length = strlen(path), cut = strlen(suffix);
  const size_t keep =
      length >= cut && strcmp(path + length - cut, suffix) == 0 ? length - cut : length;
  snprintf(g_root, sizeof g_root, "%.*s", (int)keep, path);
}

int OpenState(char* version, size_t size, int* writable) {
  char own[kPathSize] = "", folder[kPathSize];
  if (OwnPath(own)) LearnVersion(own, version, size);
  const char* given = getenv("PENSTOCK_SIM_STATE");
  if (given && given[0]) {
    LearnRoot(given, "/.penstock-sim/state");
    return OpenEither(given, writable);
  }
  // Search from <root>/usr/lib/x86_64-linux-gnu up to <root>, and finally "/"; first for a machine,
  // then for its firmware.
  for (int firmware = 0; firmware < 2; firmware++) {
    strcpy(folder, own);
    for (char* slash = strrchr(folder, '/'); slash; slash = strrchr(folder, '/')) {
      *slash = 0;
      LearnRoot(folder, "/usr");
      const int fd =
          firmware ? OpenFirmware(folder, version, writable) : OpenBelow(folder, writable);
      if (fd >= 0 || errno != ENOENT) return fd;
    }
  }
  errno = ENOENT;
  return -1;
}

int OpenDevice(const char* name) {
  char path[kPathSize + 64];
  snprintf(path, sizeof path, "%s/dev/%s", g_root, name);
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return errno == ENXIO || errno == ENODEV ? 0 : errno;
  close(fd);
  return 0;
}

int OpenCapability(uint32_t minor_number) {
  char path[kPathSize + 64];
  snprintf(path, sizeof path, "%s/dev/nvidia-caps/nvidia-cap%u", g_root, minor_number);
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return errno == ENXIO || errno == ENODEV ? 0 : errno;
  close(fd);
  return 0;
}

const char* MachineRoot(void) { return g_root; }
