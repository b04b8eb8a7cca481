// Input by a file in memory, output by a pipe, the end by a pidfd. A killed child that does not die yet is reaped when it does.
#include "os/command.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace penstock::os {

struct Command::State : std::enable_shared_from_this<Command::State> {
  State(Loop& a_loop, Options some_options, Done a_done) : loop(a_loop), options(std::move(some_options)), done(std::move(a_done)) {}

  base::Status Start();
  void Read();
  void OnEnd();
  void StopReading();
  void Kill();
  void Finish(base::Result<Outcome> result);

  Loop& loop;
  Options options;
  Done done;  // empty: told, or nobody wants to know
  Child child;
  UniqueFd output;
  std::string text;
  base::TimerId deadline = 0;
};

base::Status Command::State::Start() {
  const UniqueFd input(::memfd_create("input", MFD_CLOEXEC));
  std::array<int, 2> pipe{-1, -1};
  if (!input || ::pipe2(pipe.data(), O_CLOEXEC) != 0) return base::ErrnoError(errno, "make the ends of a program");
  output.Reset(pipe[0]);
  const UniqueFd theirs(pipe[1]);
  if (::write(input.get(), options.input.data(), options.input.size()) != static_cast<ssize_t>(options.input.size()) ||
      ::lseek(input.get(), 0, SEEK_SET) != 0 || ::fcntl(output.get(), F_SETFL, O_NONBLOCK) != 0)
    return base::ErrnoError(errno, "write the input of a program");
  options.spawn.descriptors.emplace_back(input.get(), 0);
  options.spawn.standard_output = theirs.get();
  ASSIGN(child, Spawn(options.spawn));
  const auto self = shared_from_this();
  base::Status watched = loop.Watch(child.pidfd.get(), EPOLLIN, [self](std::uint32_t) { self->OnEnd(); });
  if (watched.ok()) watched = loop.Watch(output.get(), EPOLLIN, [self](std::uint32_t) { self->Read(); });
  if (!watched.ok()) {
    ::kill(child.pid, SIGKILL);
    return watched;
  }
  deadline = loop.PostAfter(options.deadline, [self] {
    self->deadline = 0;
    self->Kill();
    self->Finish(base::Error(base::Code::kDeadlineExceeded, self->options.spawn.arguments.front() + " did not answer within " +
                                                                base::FormatDuration(self->options.deadline)));
  });
  return {};
}

void Command::State::Read() {
  std::array<char, 4096> buffer;
  while (output) {
    const ssize_t got = ::read(output.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return StopReading();
    const std::size_t room = options.most_output - std::min(options.most_output, text.size());
    text.append(buffer.data(), std::min(room, static_cast<std::size_t>(got)));
  }
}

void Command::State::StopReading() {
  if (!output) return;
  loop.Unwatch(output.get());
  output.Reset();
}

void Command::State::OnEnd() {
  const auto self = shared_from_this();  // the watch holds the last reference
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(child.pidfd.get()), &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0) return;
  loop.Unwatch(child.pidfd.get());
  child.pidfd.Reset();
  child.pid = 0;
  Read();
  StopReading();
  Finish(Outcome{info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status, std::move(text)});
}

void Command::State::Kill() {
  // Not reaped, so the number is still its own.
  if (child.pid > 0) ::kill(child.pid, SIGKILL);
  StopReading();
}

void Command::State::Finish(base::Result<Outcome> result) {
  loop.Cancel(std::exchange(deadline, 0));
  if (const Done call = std::exchange(done, nullptr)) call(std::move(result));
}

Command::Command(Loop& loop, Options options, Done done) : state_(std::make_shared<State>(loop, std::move(options), std::move(done))) {
  if (const auto started = state_->Start(); !started.ok()) loop.Post([state = state_, error = started.error()] { state->Finish(error); });
}

Command::~Command() {
  state_->done = nullptr;
  state_->loop.Cancel(std::exchange(state_->deadline, 0));
  state_->Kill();
}

}  // namespace penstock::os
