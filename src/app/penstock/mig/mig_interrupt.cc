#include "app/penstock/mig/mig_interrupt.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include <sys/eventfd.h>
#include <unistd.h>

namespace penstock::app {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

/// `timeout`, which signals its group and then this process, and systemd, which may send SIGHUP
/// after SIGTERM, mean one request by two signals.
constexpr std::int64_t kSameRequest = 1'000'000'000;

// What a handler may use: nothing that has a lock.
std::atomic<int> received{0}, event{-1};
std::atomic<std::int64_t> received_at{0};
std::atomic<pid_t> guarded{0};
std::atomic<Interruption::Clock> clock_of_handler{nullptr};
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
static_assert(std::atomic<Interruption::Clock>::is_always_lock_free);

// Returns only where the signal is blocked, as in its own handler: then it ends the program after
// that.
void EndBy(int signal) {
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void OnSignal(int signal) {
  const int before = errno;
  const std::int64_t now = clock_of_handler.load()();
  std::int64_t never = 0;
  if (received_at.compare_exchange_strong(never, now)) {
    received = signal;
    const std::uint64_t one = 1;
    (void)!::write(event, &one, sizeof(one));
  } else if (now - never >= kSameRequest) {
    if (const pid_t group = guarded; group > 0) ::kill(-group, SIGKILL);
    EndBy(signal);
  }
  errno = before;
}

}  // namespace

std::int64_t Interruption::Now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Interruption::Interruption(Clock clock) : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  clock_of_handler = clock;
  received = 0;
  received_at = 0;
  guarded = 0;
  event = fd_.get();
  for (const int signal : kSignals) {
    struct sigaction action {};
    // One that is ignored, as by nohup, or in the background of a script, stays so.
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
    action.sa_handler = OnSignal;
    ::sigaction(signal, &action, nullptr);
  }
}

Interruption::~Interruption() {
  for (const int signal : kSignals) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler != OnSignal) continue;
    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, nullptr);
  }
  event = -1;
}

int Interruption::signal() const { return received; }

void Interruption::Guard(pid_t group) { guarded = group; }

void Interruption::End() const {
  EndBy(received);
  ::_exit(EXIT_FAILURE);  // the signal is blocked
}

}  // namespace penstock::app
