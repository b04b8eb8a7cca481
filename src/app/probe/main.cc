// penstock-probe FILE...: opens each file for reading and prints "ERRNO FILE", one line per file,
// with ERRNO 0 where it opened. The agent and `penstock runtime doctor --prove` start it inside a
// container to learn what a program there may open. Changes nothing.
//
// penstock-probe --wait SECONDS: keeps a container alive meanwhile, or until SIGTERM. As the first
// process of its namespace it would not be ended by a signal of a timer, nor by one that it does
// not handle; engines wait for that, CRI-O 10 seconds.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace {

int Wait(const char* seconds) {
  std::signal(SIGTERM, [](int) { ::_exit(0); });
  auto left = static_cast<unsigned>(std::strtoul(seconds, nullptr, 10));
  while (left > 0) left = ::sleep(left);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--wait") == 0) return Wait(argv[2]);
  for (int i = 1; i < argc; ++i) {
    const int fd = ::open(argv[i], O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    std::printf("%d %s\n", fd < 0 ? errno : 0, argv[i]);
    if (fd >= 0) ::close(fd);
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
