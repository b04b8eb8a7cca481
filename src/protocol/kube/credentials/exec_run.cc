// Runs the plugin as a child process: its output comes through a pipe, its end through a pidfd.
#include "protocol/kube/credentials/exec_run.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/process/process.h"

namespace penstock::protocol::kube {

struct ExecRun::State : std::enable_shared_from_this<State> {
  State(os::Loop& the_loop, const ExecPlugin& the_plugin, Done then)
      : loop(the_loop), plugin(the_plugin), done(std::move(then)) {}

  base::Status Start(std::vector<std::string> environment, base::Duration deadline);
  void Read();
  void Ended();
  void Finish(base::Result<std::string> result);
  void Abandon();
  void KillAndReap();

  os::Loop& loop;
  const ExecPlugin plugin;
  Done done;
  os::Child child;
  os::UniqueFd output;
  std::string text;
  base::TimerId timer = 0;
};

base::Status ExecRun::State::Start(std::vector<std::string> environment, base::Duration deadline) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return base::ErrnoError(errno, "create a pipe");
  output = os::UniqueFd(ends[0]);
  os::UniqueFd child_end(ends[1]);
  ::fcntl(child_end.get(), F_SETFL, ::fcntl(child_end.get(), F_GETFL) & ~O_NONBLOCK);
  const os::UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  os::SpawnOptions options;
  options.arguments = {plugin.command};
  options.arguments.insert(options.arguments.end(), plugin.arguments.begin(),
                           plugin.arguments.end());
  options.environment = std::move(environment);
  options.descriptors = {{nothing.get(), 0}, {child_end.get(), 1}};
  options.new_session = true;  // so that its whole group can be killed
  auto started = os::Spawn(options);
  if (!started.ok()) {
    return started.error().Within("exec plugin" + (plugin.install_hint.empty()
                                                       ? std::string()
                                                       : " (" + plugin.install_hint + ")"));
  }
  child = *std::move(started);
  timer = loop.PostAfter(deadline, [this] {
    timer = 0;
    Finish(Error(Code::kDeadlineExceeded,
                 "the exec plugin " + plugin.command + " did not answer in time"));
  });
  TRY(loop.Watch(output.get(), EPOLLIN, [this](std::uint32_t) { Read(); }));
  return loop.Watch(child.pidfd.get(), EPOLLIN, [this](std::uint32_t) { Ended(); });
}

void ExecRun::State::Read() {
  std::array<char, 16384> part;
  for (;;) {
    const ssize_t got = ::read(output.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      if (got == 0) loop.Unwatch(output.get());
      return;
    }
    text.append(part.data(), static_cast<std::size_t>(got));
    if (text.size() > kMaxOutput)
      return Finish(Error(Code::kResourceExhausted,
                          "the exec plugin " + plugin.command + " prints too much"));
  }
}

// A grandchild may hold the pipe open: the output that is present when the plugin ends is its
// answer.
void ExecRun::State::Ended() {
  const auto alive = shared_from_this();
  Read();
  if (done == nullptr) return;
  siginfo_t how{};
  ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(child.pidfd.get()), &how,
           WEXITED | WNOHANG);
  loop.Unwatch(child.pidfd.get());
  child.pid = 0;
  if (how.si_code == CLD_EXITED && how.si_status == 0) return Finish(std::move(text));
  Finish(Error(Code::kUnauthenticated, "the exec plugin " + plugin.command + " failed with " +
                                           (how.si_code == CLD_EXITED ? "status " : "signal ") +
                                           std::to_string(how.si_status)));
}

void ExecRun::State::Finish(base::Result<std::string> result) {
  const auto alive = shared_from_this();
  const Done then = std::exchange(done, nullptr);
  Abandon();
  if (then) then(std::move(result));
}

void ExecRun::State::Abandon() {
  loop.Cancel(std::exchange(timer, 0));
  if (output) loop.Unwatch(output.get());
  output.Reset();
  if (child.pidfd) loop.Unwatch(child.pidfd.get());
  if (child.pid > 0) KillAndReap();
  child.pidfd.Reset();
}

// The loop reaps the child later; nothing waits for one that hangs in the kernel.
void ExecRun::State::KillAndReap() {
  ::kill(-child.pid, SIGKILL);
  ::kill(std::exchange(child.pid, 0), SIGKILL);
  const auto pidfd = std::make_shared<os::UniqueFd>(std::move(child.pidfd));
  (void)loop.Watch(pidfd->get(), EPOLLIN, [&where = loop, pidfd](std::uint32_t) {
    ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd->get()), nullptr,
             WEXITED | WNOHANG);
    where.Unwatch(pidfd->get());
  });
}

ExecRun::ExecRun(os::Loop& loop, const ExecPlugin& plugin, std::vector<std::string> environment,
                 Done done, base::Duration deadline)
    : state_(std::make_shared<State>(loop, plugin, std::move(done))) {
  if (auto started = state_->Start(std::move(environment), deadline); !started.ok()) {
    loop.Post([weak = std::weak_ptr<State>(state_), error = started.error()] {
      if (const auto state = weak.lock()) state->Finish(error);
    });
  }
}

ExecRun::~ExecRun() {
  state_->done = nullptr;
  state_->Abandon();
}

}  // namespace penstock::protocol::kube
