// Uses termios(3) and control sequences that all current terminals support (ECMA-48 and xterm's
// alternate screen).
#include "app/penstock/top/top_screen.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "os/core/fd.h"

namespace penstock::app {
namespace {

// Enters the alternate screen without cursor and line wrapping; and leaves it.
constexpr std::string_view kEnter = "\033[?1049h\033[?25l\033[?7l\033[2J";
constexpr std::string_view kLeave = "\033[?7h\033[?25h\033[?1049l";

constexpr std::array kEnding{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array kCrashes{SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

/// The state to restore after a crash, when no other data can be trusted. Written before the
/// handlers are installed.
struct {
  int out = -1;
  termios modes{};
} before;

/// Writes all of the text; stops at an error, since the terminal may be gone.
void Write(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      pollfd writable{fd, POLLOUT, 0};
      if (::poll(&writable, 1, 1000) > 0) continue;
    }
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Safe in a signal handler: write(2) and tcsetattr(3) are async-signal-safe (signal-safety(7)).
void Restore() {
  Write(before.out, kLeave);
  ::tcsetattr(before.out, TCSANOW, &before.modes);
}

void OnCrash(int signal) {
  Restore();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

sigset_t Watched() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : kEnding) sigaddset(&watched, signal);
  for (const int signal : {SIGTSTP, SIGWINCH}) sigaddset(&watched, signal);
  return watched;
}

}  // namespace

struct TopScreen::State {
  int in = -1, out = -1;
  sigset_t mask{};  // the signal mask before Open
  os::UniqueFd signals;

  void Enter() const {
    termios modes = before.modes;
    modes.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    modes.c_cc[VMIN] = 1;
    modes.c_cc[VTIME] = 0;
    ::tcsetattr(out, TCSANOW, &modes);
    Write(out, kEnter);
  }

  /// Stops the program as Ctrl-Z does; meanwhile the shell uses the terminal.
  void Stop() const {
    Restore();
    ::raise(SIGSTOP);
    Enter();
  }
};

bool TopScreen::Possible(int in, int out) {
  const char* term = std::getenv("TERM");
  return ::isatty(in) != 0 && ::isatty(out) != 0 && term != nullptr && *term != '\0' &&
         std::string_view(term) != "dumb";
}

base::Result<std::unique_ptr<TopScreen>> TopScreen::Open(int in, int out) {
  auto state = std::make_unique<State>();
  state->in = in;
  state->out = out;
  if (!Possible(in, out) || ::tcgetattr(out, &before.modes) != 0)
    return base::Error(base::Code::kFailedPrecondition,
                       "standard output is not a terminal; use --once");
  before.out = out;
  const sigset_t watched = Watched();
  ::pthread_sigmask(SIG_BLOCK, &watched, &state->mask);
  state->signals.Reset(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  for (const int signal : kCrashes) ::signal(signal, OnCrash);
  state->Enter();
  return std::unique_ptr<TopScreen>(new TopScreen(std::move(state)));
}

TopScreen::TopScreen(std::unique_ptr<State> state) : state_(std::move(state)) {}

TopScreen::~TopScreen() {
  Restore();
  for (const int signal : kCrashes) ::signal(signal, SIG_DFL);
  ::pthread_sigmask(SIG_SETMASK, &state_->mask, nullptr);
}

TopSize TopScreen::size() const {
  winsize size{};
  if (::ioctl(state_->out, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {.columns = size.ws_col, .rows = size.ws_row};
}

void TopScreen::Draw(const std::vector<std::string>& lines) {
  std::string text = "\033[H";
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += (i > 0 ? "\r\n" : "") + lines[i] + "\033[K";
  Write(state_->out, text + "\033[J");
}

TopScreen::Events TopScreen::Wait(int other, base::Duration most) {
  Events events;
  std::array<pollfd, 3> fds{
      {{state_->in, POLLIN, 0}, {state_->signals.get(), POLLIN, 0}, {other, POLLIN, 0}}};
  if (::poll(fds.data(), fds.size(),
             static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(most).count())) <= 0)
    return events;
  events.ready = fds[2].revents != 0;
  if (fds[0].revents != 0) {
    std::array<char, 256> buffer;
    const ssize_t got = ::read(state_->in, buffer.data(), buffer.size());
    if (got > 0) events.keys.assign(buffer.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) events.ends = 0;
  }
  signalfd_siginfo signal{};
  while (::read(state_->signals.get(), &signal, sizeof signal) == sizeof signal) {
    const int number = static_cast<int>(signal.ssi_signo);
    if (number == SIGTSTP) state_->Stop();
    if (number == SIGTSTP || number == SIGWINCH) {
      events.resized = true;
    } else {
      events.ends = number;
    }
  }
  return events;
}

void EndBySignal(int signal) {
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  std::_Exit(128 + signal);
}

}  // namespace penstock::app
