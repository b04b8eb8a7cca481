// Prints the monotonic clock in nanoseconds, as early as a C program can: benchmarks use it to see
// when something starts. With the words "exec PROGRAM ..." it executes that program instead, at
// once: the cost of one additional exec.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc > 2 && strcmp(argv[1], "exec") == 0) {
    execv(argv[2], argv + 2);
    return 1;
  }
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  printf("%lld\n", (long long)now.tv_sec * 1000000000 + now.tv_nsec);
  return 0;
}
