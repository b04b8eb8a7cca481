// Watching: the pidfd shows the daemon's death, questions show a hang, counting shows the clients.
#include "backend/nvidia/mps/supervisor.h"

#include <algorithm>
#include <csignal>

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/nvidia/mps/answers.h"
#include "base/core/strings.h"
#include "base/log.h"
#include "os/process/process.h"

namespace penstock::backend::nvidia::mps {
namespace {

constexpr int kPatientRounds = 20;

}  // namespace

Supervisor::Supervisor(os::Loop& loop, const MpsOptions& options, ServerSpec spec,
                       std::function<void()> changed)
    : loop_(loop),
      options_(options),
      spec_(std::move(spec)),
      folders_(FoldersOf(options_.root, spec_.set)),
      changed_(std::move(changed)),
      retry_(options_.first_retry, options_.last_retry) {
  view_.reason = "its MPS server is starting";
}

Supervisor::~Supervisor() {
  loop_.Cancel(timer_);
  if (daemon_fd_) loop_.Unwatch(daemon_fd_.get());
}

void Supervisor::Later(base::Duration delay, void (Supervisor::*what)()) {
  loop_.Cancel(timer_);
  timer_ = loop_.PostAfter(delay, [this, what] {
    timer_ = 0;
    (this->*what)();
  });
}

void Supervisor::Notify() {
  loop_.Post([alive = std::weak_ptr(alive_), this] {
    if (!alive.expired()) changed_();
  });
}

void Supervisor::Set(View view) {
  if (view == view_) return;
  if (view.ready != view_.ready)
    base::Log(view.ready ? base::kInfo : base::kWarn,
              view.ready ? "MPS server is ready" : "MPS server is not ready",
              {{"set", spec_.set}, {"reason", view.reason}});
  view_ = std::move(view);
  Notify();
}

void Supervisor::Run(Row row, std::function<void()> then) {
  row_ = std::move(row);
  then_ = std::move(then);
  Next();
}

void Supervisor::Next() {
  command_.reset();
  if (row_.empty()) {
    if (const auto then = std::exchange(then_, nullptr)) then();
    return;
  }
  Step step = std::move(row_.front());
  row_.pop_front();
  os::Command::Options run;
  run.spawn.arguments = step.program->command;
  run.spawn.arguments.insert(run.spawn.arguments.end(), step.arguments.begin(),
                             step.arguments.end());
  run.spawn.environment = step.program->environment;
  run.input = std::move(step.input);
  run.deadline = options_.answer_deadline;
  command_ = std::make_unique<os::Command>(loop_, std::move(run),
                                           [this, take = std::move(step.take)](auto result) {
                                             if (take(std::move(result))) Next();
                                           });
}

void Supervisor::Watch(const DaemonProcess& daemon) {
  auto fd = os::OpenPidfd(daemon.pid);
  const auto start = os::ReadProcessStart(options_.proc_root, daemon.pid);
  if (!fd.ok() || !start.ok() || *start != daemon.start) return;
  daemon_fd_ = *std::move(fd);
  if (!loop_.Watch(daemon_fd_.get(), EPOLLIN, [this](std::uint32_t) { OnDeath(); }).ok())
    daemon_fd_.Reset();
}

void Supervisor::OnDeath() {
  loop_.Unwatch(daemon_fd_.get());
  daemon_fd_.Reset();
  if (quitting_) return Finish();
  command_.reset();  // its failure would hide the reason
  Fail("its MPS control daemon has exited");
}

// Asks the daemon for its servers and each server's clients.
void Supervisor::Check() {
  TrimLogs(folders_);
  Row row;
  row.push_back(ControlStep("get_server_list", [this](const std::string& answer) {
    const auto servers = ReadPids(answer);
    if (!servers) {
      Fail("its MPS control daemon answered " + Quote(answer) + " instead of a list of servers");
      return false;
    }
    QueryClients(*servers);
    return false;
  }));
  Run(std::move(row), nullptr);
}

void Supervisor::QueryClients(const std::vector<pid_t>& servers) {
  const auto clients = std::make_shared<int>(0);
  Row row;
  for (const pid_t server : servers) {
    const std::size_t before = CountThreads(options_.proc_root, server);
    row.push_back(ControlStep("get_client_list " + std::to_string(server),
                              [this, server, before, clients](const std::string& answer) {
                                const auto pids = ReadPids(answer);
                                // A server that has just ended has no clients, whatever the answer
                                // says.
                                if (!pids && CountThreads(options_.proc_root, server) > 0) {
                                  Fail("its MPS control daemon answered " + Quote(answer) +
                                       " instead of a list of clients");
                                  return false;
                                }
                                const std::size_t count = pids ? pids->size() : 0;
                                *clients += static_cast<int>(count);
                                const std::size_t threads =
                                    std::min(before, CountThreads(options_.proc_root, server));
                                std::size_t& idle =
                                    idle_threads_.try_emplace(server, threads).first->second;
                                idle = std::min(idle, threads > count ? threads - count : 1);
                                return true;
                              }));
  }
  Run(std::move(row), [this, servers, clients] { TakeClients(servers, *clients); });
}

void Supervisor::TakeClients(const std::vector<pid_t>& servers, int clients) {
  std::erase_if(idle_threads_, [&](const auto& entry) {
    return std::ranges::find(servers, entry.first) == servers.end();
  });
  View view = view_;
  view.clients = clients;
  view.servers = servers;
  if (foreign_) return clients == 0 ? Recover() : Later(options_.poll_often, &Supervisor::Check);
  if (!view.ready) {
    // The daemon recovered from trouble: read back whether it still enforces its limits.
    fresh_ = std::move(view);
    return Limit();
  }
  Set(std::move(view));
  if (loop_.clock().Now() - ready_since_ >= options_.poll_every) retry_.Reset();
  if (ending_ && clients == 0 && loop_.clock().Now() >= end_from_) return Quit();
  Later(ending_ ? options_.poll_often : options_.poll_every, &Supervisor::Check);
}

// Reports the set as not ready at once, then tries to recover.
void Supervisor::Fail(std::string reason) {
  row_.clear();
  View view = view_;
  view.ready = false;
  view.reason = std::move(reason);
  const std::vector<std::string> servers = Occupied();
  if (!servers.empty())
    view.reason += "; it is restarted when the clients of its server have exited";
  view.remarks.clear();
  if (view.reason != view_.reason && !servers.empty())  // process ids stay on the node
    base::Log(base::kInfo, "MPS server still has clients",
              {{"set", spec_.set}, {"servers", base::Join(servers, ", ")}});
  Set(std::move(view));
  Later(retry_.Next(), &Supervisor::Recover);
}

// Servers that may have clients. If a server's clients were never counted, only a single thread
// proves that it has none.
std::vector<std::string> Supervisor::Occupied() const {
  std::vector<std::string> occupied;
  for (const ServerProcess& server : FindServers(options_.proc_root, folders_)) {
    const auto idle = idle_threads_.find(server.pid);
    if (server.threads > (idle == idle_threads_.end() ? 1 : idle->second))
      occupied.push_back(std::to_string(server.pid));
  }
  return occupied;
}

void Supervisor::Recover() {
  // A daemon that hung may answer again.
  if (!Occupied().empty())
    return Later(options_.poll_often, daemon_fd_ ? &Supervisor::Check : &Supervisor::Recover);
  // A server cleans up when it gets SIGTERM; a hanging daemon cannot be asked to end it.
  const int signal = ending_rounds_++ < kPatientRounds ? SIGTERM : SIGKILL;
  for (const ServerProcess& server : FindServers(options_.proc_root, folders_))
    Signal(options_.proc_root, server.pid, server.start, signal);
  if (daemon_fd_) {
    loop_.Unwatch(daemon_fd_.get());
    (void)::syscall(SYS_pidfd_send_signal, daemon_fd_.get(), SIGKILL, nullptr, 0);
    daemon_fd_.Reset();
  }
  for (const DaemonProcess& daemon : FindDaemons(options_.proc_root, folders_))
    Signal(options_.proc_root, daemon.pid, daemon.start, SIGKILL);
  foreign_ = false;
  if (!FindDaemons(options_.proc_root, folders_).empty() ||
      !FindServers(options_.proc_root, folders_).empty())
    return Later(std::chrono::milliseconds(50), &Supervisor::Recover);
  ending_rounds_ = 0;
  idle_threads_.clear();
  ending_ ? Finish() : Start();
}

void Supervisor::End(base::Duration wait) {
  const base::TimePoint from = loop_.clock().Now() + wait;
  if (quitting_ || ended_ || (ending_ && from >= end_from_)) return;
  ending_ = true;
  end_from_ = from;
  if (view_.ready) Later(wait, &Supervisor::Check);
}

bool Supervisor::Keep() {
  if (quitting_ || ended_) return false;
  ending_ = false;
  return true;
}

void Supervisor::Quit() {
  quitting_ = true;
  Row row;
  row.push_back({&*control_, {}, "quit\n", [this](const base::Result<os::Command::Outcome>&) {
                   // The daemon ends by itself, if it has not ended already: its pidfd shows that.
                   // If a client connected meanwhile, the daemon waits for it.
                   daemon_fd_ ? Later(options_.poll_often, &Supervisor::ForceQuit) : Finish();
                   return false;
                 }});
  Run(std::move(row), nullptr);
}

// The daemon has not ended: a client connected meanwhile, or it hangs.
void Supervisor::ForceQuit() {
  if (Occupied().empty() && daemon_fd_)
    (void)::syscall(SYS_pidfd_send_signal, daemon_fd_.get(), SIGKILL, nullptr, 0);
  Later(options_.poll_often, &Supervisor::ForceQuit);
}

// Sets the compute modes back to DEFAULT and removes the folders.
void Supervisor::Finish() {
  quitting_ = true;
  loop_.Cancel(std::exchange(timer_, 0));
  auto smi = FindProgram(options_.driver_root, "nvidia-smi");
  Row row;
  if (smi.ok()) {
    smi_ = *std::move(smi);
    for (const ServerSpec::Gpu& gpu : spec_.gpus) {
      if (gpu.is_mig_device()) continue;
      Step step = ModeStep(gpu, "DEFAULT");
      step.take = [](const base::Result<os::Command::Outcome>&) { return true; };
      row.push_back(std::move(step));
    }
  }
  Run(std::move(row), [this] {
    RemoveFolders(folders_);
    ended_ = true;
    base::Log(base::kInfo, "MPS server stopped", {{"set", spec_.set}});
    Notify();
  });
}

}  // namespace penstock::backend::nvidia::mps
