// nvidia-cuda-mps-control of a simulated machine: the daemon (-d, -f) and, without an option, the
// program that sends commands to it. Starts servers; never uses a GPU itself.
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/mps/control/daemon.h"

namespace {

int g_started = -1;  // written when the daemon listens; after that, its caller gets no more output

void ReportStarted() {
  if (g_started < 0) return;
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nowhere, 2);
  (void)!write(g_started, "1", 1);
  close(g_started);
  g_started = -1;
}

int Serve() {
  umask(0);
  // Reports that it started, and exits a moment later.
  if (mps::Machine().fault() == mps::Fault::kExit) {
    mps::Log("control.log", "Control", "Failed to start: simulated fault");
    ReportStarted();
    return 1;
  }
  mps::Daemon daemon;
  if (!daemon.Open()) return 1;
  return daemon.Run(ReportStarted);
}

int Background() {
  int started[2];
  if (pipe2(started, O_CLOEXEC) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    close(started[0]);
    g_started = started[1];
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nowhere, 0);
    dup2(nowhere, 1);
    const int status = Serve();  // messages about its start still go to the caller's standard error
    _exit(status);
  }
  close(started[1]);
  waitpid(child, nullptr, 0);
  char byte = 0;
  return read(started[0], &byte, 1) == 1 ? 0 : 1;
}

int HandOver() {
  const mps::Fd daemon = mps::Connect(mps::PipeDirectory() + "/control_privileged");
  if (!daemon) {
    std::puts("Cannot find MPS control daemon process");
    return 1;
  }
  std::string line;
  while (std::getline(std::cin, line)) {
    if (mps::Word(line, 0).empty()) continue;
    if (!mps::Send(daemon.get(), line)) return 1;
    const auto answer = mps::Receive(daemon.get());
    if (!answer) return mps::Word(line, 0) == "quit" ? 0 : 1;
    std::cout << answer->text.substr(1) << std::flush;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  if (argc == 1) return HandOver();
  if (argc == 2 && std::strcmp(argv[1], "-d") == 0) return Background();
  if (argc == 2 && std::strcmp(argv[1], "-f") == 0) return Serve();
  std::fputs("usage: nvidia-cuda-mps-control [-d | -f]\n",
             argc == 2 && std::strcmp(argv[1], "--help") == 0 ? stdout : stderr);
  return 1;
}
