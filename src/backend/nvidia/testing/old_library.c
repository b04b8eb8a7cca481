/* An NVML older than any that the simulator provides: few functions, all unversioned. For tests of
 * the loader. */
#include <string.h>

struct device {
  int index;
};
static struct device devices[1];

int nvmlInit(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount(unsigned* count) {
  *count = 1;
  return 0;
}
int nvmlDeviceGetHandleByIndex(unsigned index, struct device** device) {
  *device = &devices[index];
  return index == 0 ? 0 : 2;
}
int nvmlDeviceGetUUID(struct device* device, char* uuid, unsigned length) {
  (void)device;
  if (length < sizeof "GPU-old") return 7;
  strcpy(uuid, "GPU-old");
  return 0;
}

struct process {
  unsigned pid;
  unsigned long long memory;
};

/* 20 processes, more than the caller's first buffer holds, in records of version 1. */
int nvmlDeviceGetComputeRunningProcesses(struct device* device, unsigned* count,
                                         struct process* processes) {
  (void)device;
  const unsigned room = *count;
  *count = 20;
  if (room < 20) return 7;
  for (unsigned i = 0; i < 20; ++i) {
    processes[i].pid = 100 + i;
    processes[i].memory = i == 0 ? ~0ull : 1000 + i;
  }
  return 0;
}
