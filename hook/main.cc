// The hook program that container engines execute while they create a container. Reads neither its
// environment nor files of its working directory: both may be the image's (CVE-2025-23266).
#include <cstdlib>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hook/commands.h"
#include "hook/limits.h"

int main(int argc, char** argv) {
  ::clearenv();
  penstock::os::UniqueFd started_in(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (::chdir("/") != 0) return 1;
  ::umask(022);
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // which need more memory, and further system calls
  penstock::hook::LimitSelf();
  penstock::hook::ConfineSelf();
#endif
  return penstock::hook::RunCall(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc),
                                 std::move(started_in));
}
