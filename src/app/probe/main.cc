// penstock-probe FILE...: opens each file for reading and prints "ERRNO FILE", one line per file,
// with ERRNO 0 where it opened. `penstock runtime doctor --prove` starts it inside a container to
// learn what a program there may open. Changes nothing.
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const int fd = ::open(argv[i], O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    std::printf("%d %s\n", fd < 0 ? errno : 0, argv[i]);
    if (fd >= 0) ::close(fd);
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
