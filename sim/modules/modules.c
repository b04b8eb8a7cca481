// libpenstock-sim-modules.so, for LD_PRELOAD: unloads simulated modules, which are folders that
// look like those of /sys/module, in place of delete_module(2). Plain C on libc. See sim/README.md.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static int ReadText(const char* path, char* text, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const ssize_t got = read(fd, text, size - 1);
  close(fd);
  text[got > 0 ? got : 0] = '\0';
  return got < 0 ? -1 : 0;
}

static int CountEntries(const char* path) {
  DIR* folder = opendir(path);
  if (folder == NULL) return 0;
  int count = 0;
  for (struct dirent* entry; (entry = readdir(folder)) != NULL;)
    if (entry->d_name[0] != '.') ++count;
  closedir(folder);
  return count;
}

// Whether the path has a part "/dev/NAME", where NAME begins with one of the lines.
static int IsDevice(const char* path, const char* lines) {
  const char* name = NULL;
  for (const char* at = path; (at = strstr(at, "/dev/")) != NULL; at += 5) name = at + 5;
  if (name == NULL) return 0;
  for (const char* line = lines; *line != '\0';) {
    const size_t length = strcspn(line, "\n");
    if (length > 0 && strncmp(name, line, length) == 0) return 1;
    line += length + (line[length] == '\n');
  }
  return 0;
}

static int HasOpen(const char* process, const char* lines) {
  char path[PATH_MAX], target[PATH_MAX];
  snprintf(path, sizeof path, "/proc/%s/fd", process);
  DIR* folder = opendir(path);
  if (folder == NULL) return 0;
  int found = 0;
  for (struct dirent* entry; !found && (entry = readdir(folder)) != NULL;) {
    const ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
    if (length <= 0) continue;
    target[length] = '\0';
    found = IsDevice(target, lines);
  }
  closedir(folder);
  return found;
}

static int AnyHasOpen(const char* lines) {
  DIR* processes = opendir("/proc");
  if (processes == NULL) return 0;
  int found = 0;
  for (struct dirent* entry; !found && (entry = readdir(processes)) != NULL;)
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') found = HasOpen(entry->d_name, lines);
  closedir(processes);
  return found;
}

static int RemoveOne(const char* path, const struct stat* status, int type, struct FTW* walk) {
  (void)status, (void)type, (void)walk;
  return remove(path);
}

// The modules that it used have one user less.
static void Leave(const char* tree, const char* name) {
  char path[PATH_MAX], text[32];
  DIR* modules = opendir(tree);
  if (modules == NULL) return;
  for (struct dirent* entry; (entry = readdir(modules)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    if (snprintf(path, sizeof path, "%s/%s/holders/%s", tree, entry->d_name, name) >=
        (int)sizeof path)
      continue;
    if (unlink(path) != 0 && rmdir(path) != 0) continue;
    snprintf(path, sizeof path, "%s/%s/refcnt", tree, entry->d_name);
    if (ReadText(path, text, sizeof text) != 0) continue;
    unlink(path);  // equal files of a simulated machine are links to one file
    FILE* file = fopen(path, "we");
    if (file == NULL) continue;
    fprintf(file, "%ld\n", strtol(text, NULL, 10) - 1);
    fclose(file);
  }
  closedir(modules);
}

static int Fail(int error) {
  errno = error;
  return -1;
}

static int Unload(const char* tree, const char* name) {
  char folder[PATH_MAX], path[PATH_MAX + 16], text[4096];
  if (strchr(name, '/') != NULL || name[0] == '.' || name[0] == '\0') return Fail(ENOENT);
  if (snprintf(folder, sizeof folder, "%s/%s", tree, name) >= (int)sizeof folder)
    return Fail(ENAMETOOLONG);
  snprintf(path, sizeof path, "%s/refcnt", folder);
  if (ReadText(path, text, sizeof text) != 0) return Fail(ENOENT);
  const long references = strtol(text, NULL, 10);
  snprintf(path, sizeof path, "%s/simulate", folder);
  if (ReadText(path, text, sizeof text) != 0) text[0] = '\0';
  while (strncmp(text, "hang", 4) == 0) {
    sleep(1);
    if (ReadText(path, text, sizeof text) != 0) text[0] = '\0';
  }
  if (strncmp(text, "busy", 4) == 0 || strncmp(text, "wedged", 6) == 0) return Fail(EWOULDBLOCK);
  const unsigned slow = strncmp(text, "slow ", 5) == 0 ? (unsigned)strtoul(text + 5, NULL, 10) : 0;
  snprintf(path, sizeof path, "%s/holders", folder);
  if (references > 0 || CountEntries(path) > 0) return Fail(EWOULDBLOCK);
  snprintf(path, sizeof path, "%s/devices", folder);
  if (ReadText(path, text, sizeof text) == 0 && AnyHasOpen(text)) return Fail(EWOULDBLOCK);
  if (slow > 0) sleep(slow);
  if (nftw(folder, RemoveOne, 8, FTW_DEPTH | FTW_PHYS) != 0) return Fail(EBUSY);
  Leave(tree, name);
  return 0;
}

EXPORT int delete_module(const char* name, unsigned flags) {
  const char* tree = getenv("PENSTOCK_SIM_MODULES");
  if (tree == NULL || *tree == '\0') return (int)syscall(SYS_delete_module, name, flags);
  return Unload(tree, name);
}
