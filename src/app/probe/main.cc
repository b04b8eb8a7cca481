// penstock-probe FILE...: opens each file for reading and prints "ERRNO FILE", one line per file,
// with ERRNO 0 where it opened. The agent and `penstock runtime doctor --prove` start it inside a
// container to learn what a program there may open. Changes nothing.
//
// penstock-probe --wait SECONDS: keeps a container alive meanwhile, or until SIGTERM, which it
// heeds only once `penstock-probe --last FILE...` has ended in the same container: a kubelet that
// stops the container meanwhile gives it its period of grace, and the answer is out by then. As the
// first process of its namespace it would not be ended by a signal of a timer, nor by one that it
// does not handle; engines wait for that, CRI-O 10 seconds.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace {

constexpr pid_t kFirst = 1;  // process of the container
constexpr int kDone = SIGUSR1;

volatile std::sig_atomic_t done = 0;

int Wait(const char* seconds) {
  std::signal(kDone, [](int) { done = 1; });
  // Not at kDone itself: with this process ends the one that sent it.
  std::signal(SIGTERM, [](int) {
    if (done != 0) ::_exit(0);
  });
  auto left = static_cast<unsigned>(std::strtoul(seconds, nullptr, 10));
  while (left > 0) left = ::sleep(left);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--wait") == 0) return Wait(argv[2]);
  const bool last = argc > 1 && std::strcmp(argv[1], "--last") == 0;
  for (int i = last ? 2 : 1; i < argc; ++i) {
    const int fd = ::open(argv[i], O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    std::printf("%d %s\n", fd < 0 ? errno : 0, argv[i]);
    if (fd >= 0) ::close(fd);
  }
  const bool written = std::fflush(stdout) == 0;
  if (last) (void)::kill(kFirst, kDone);
  return written ? 0 : 1;
}
