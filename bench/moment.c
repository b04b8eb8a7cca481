// Prints the monotonic clock in nanoseconds, as early as a C program can: what `penstock run` starts in its bench. Does nothing else.
#define _GNU_SOURCE
#include <stdio.h>
#include <time.h>

int main(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  printf("%lld\n", (long long)now.tv_sec * 1000000000 + now.tv_nsec);
  return 0;
}
