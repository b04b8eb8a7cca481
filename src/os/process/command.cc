// Passes input by an in-memory file, reads output from pipes, and learns the end from a pidfd. A
// killed child that has not ended yet is reaped when it ends.
#include "os/process/command.h"

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

#include "base/core/strings.h"

namespace penstock::os {

struct Command::State : std::enable_shared_from_this<Command::State> {
  State(Loop& a_loop, Options some_options, Done a_done)
      : loop(a_loop), options(std::move(some_options)), done(std::move(a_done)) {}

  /// Output that the program writes to one or two of its descriptors.
  struct Stream {
    UniqueFd fd;
    std::string text;
  };

  base::Status Start();
  base::Result<UniqueFd> Open(Stream& stream);
  base::Status Listen(Stream& stream);
  void Read(Stream& stream);
  void OnEnd();
  void StopReading(Stream& stream);
  void Kill();
  void Finish(base::Result<Outcome> result);

  Loop& loop;
  Options options;
  Done done;  // empty once called, or if the caller needs no result
  Child child;
  Stream output, errors;
  base::TimerId deadline = 0;
};

/// Returns the program's end of a new pipe; this process's end does not block.
base::Result<UniqueFd> Command::State::Open(Stream& stream) {
  std::array<int, 2> pipe{-1, -1};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
    return base::ErrnoError(errno, "create the pipes of a program");
  stream.fd.Reset(pipe[0]);
  UniqueFd child_end(pipe[1]);
  if (::fcntl(pipe[0], F_SETFL, O_NONBLOCK) != 0)
    return base::ErrnoError(errno, "create the pipes of a program");
  return child_end;
}

base::Status Command::State::Listen(Stream& stream) {
  if (!stream.fd) return {};
  return loop.Watch(stream.fd.get(), EPOLLIN,
                    [self = shared_from_this(), &stream](std::uint32_t) { self->Read(stream); });
}

base::Status Command::State::Start() {
  const UniqueFd input(::memfd_create("input", MFD_CLOEXEC));
  if (!input) return base::ErrnoError(errno, "create the pipes of a program");
  if (::write(input.get(), options.input.data(), options.input.size()) !=
          static_cast<ssize_t>(options.input.size()) ||
      ::lseek(input.get(), 0, SEEK_SET) != 0)
    return base::ErrnoError(errno, "write the input of a program");
  ASSIGN(const UniqueFd child_output, Open(output));
  UniqueFd child_errors;
  if (options.errors_apart) { ASSIGN(child_errors, Open(errors)); }
  options.spawn.descriptors.emplace_back(input.get(), 0);
  options.spawn.descriptors.emplace_back(child_output.get(), 1);
  options.spawn.descriptors.emplace_back((child_errors ? child_errors : child_output).get(), 2);
  ASSIGN(child, Spawn(options.spawn));
  const auto self = shared_from_this();
  base::Status watched =
      loop.Watch(child.pidfd.get(), EPOLLIN, [self](std::uint32_t) { self->OnEnd(); });
  for (Stream* stream : {&output, &errors})
    if (watched.ok()) watched = Listen(*stream);
  if (!watched.ok()) {
    ::kill(child.pid, SIGKILL);
    return watched;
  }
  deadline = loop.PostAfter(options.deadline, [self] {
    self->deadline = 0;
    self->Kill();
    self->Finish(base::Error(base::Code::kDeadlineExceeded,
                             self->options.spawn.arguments.front() + " did not answer within " +
                                 base::FormatDuration(self->options.deadline)));
  });
  return {};
}

void Command::State::Read(Stream& stream) {
  std::array<char, 4096> buffer;
  while (stream.fd) {
    const ssize_t got = ::read(stream.fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return StopReading(stream);
    const std::size_t room =
        options.most_output - std::min(options.most_output, stream.text.size());
    stream.text.append(buffer.data(), std::min(room, static_cast<std::size_t>(got)));
  }
}

void Command::State::StopReading(Stream& stream) {
  if (!stream.fd) return;
  loop.Unwatch(stream.fd.get());
  stream.fd.Reset();
}

void Command::State::OnEnd() {
  const auto self = shared_from_this();  // the watch holds the last reference
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(child.pidfd.get()), &info, WEXITED | WNOHANG) == 0 &&
      info.si_pid == 0)
    return;
  loop.Unwatch(child.pidfd.get());
  child.pidfd.Reset();
  child.pid = 0;
  for (Stream* stream : {&output, &errors}) {
    Read(*stream);
    StopReading(*stream);
  }
  const int status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
  Finish(Outcome{status, std::move(output.text), std::move(errors.text)});
}

void Command::State::Kill() {
  // The child is not reaped yet, so the pid is still its own.
  if (child.pid > 0) ::kill(child.pid, SIGKILL);
  for (Stream* stream : {&output, &errors}) StopReading(*stream);
}

void Command::State::Finish(base::Result<Outcome> result) {
  loop.Cancel(std::exchange(deadline, 0));
  if (const Done call = std::exchange(done, nullptr)) call(std::move(result));
}

Command::Command(Loop& loop, Options options, Done done)
    : state_(std::make_shared<State>(loop, std::move(options), std::move(done))) {
  if (const auto started = state_->Start(); !started.ok())
    loop.Post([state = state_, error = started.error()] { state->Finish(error); });
}

Command::~Command() {
  state_->done = nullptr;
  state_->loop.Cancel(std::exchange(state_->deadline, 0));
  state_->Kill();
}

std::string LastLines(const std::string& output) {
  constexpr std::size_t kMostLines = 3, kMostText = 400;
  std::vector<std::string> lines;
  for (const std::string& line : base::Split(output, '\n'))
    if (const std::string_view text = base::Trim(line); !text.empty()) lines.emplace_back(text);
  if (lines.size() > kMostLines) lines.erase(lines.begin(), lines.end() - kMostLines);
  const std::string words = base::Join(lines, " ");
  return words.size() <= kMostText ? words : words.substr(0, kMostText) + "...";
}

}  // namespace penstock::os
