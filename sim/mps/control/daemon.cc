#include "sim/mps/control/daemon.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mps {
namespace {

void LogControl(const std::string& text) { Log("control.log", "Control", text); }

constexpr std::uint32_t kFirstWithPidFile = 550;  // 535 has none; the versions between were not
                                                  // examined

void WriteText(const std::string& path, const std::string& text) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (fd) fchmod(fd.get(), 0666);
  if (fd) (void)!write(fd.get(), text.data(), text.size());
}

}  // namespace

// Limits from the environment apply to servers until a command changes them.
Daemon::Daemon() {
  if (const char* percentage = std::getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"))
    percentage_ = std::atof(percentage);
  if (const char* limits = std::getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT")) ReadLimits(limits);
}

bool Daemon::Open() {
  if (mkdir(pipe_.c_str(), 0755) != 0 && errno != EEXIST) return std::perror(pipe_.c_str()), false;
  lock_ = Fd(open((pipe_ + "/control_lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock_) return std::perror("control_lock"), false;
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    std::fputs("An instance of this daemon is already running\n", stderr);
    return false;
  }
  chmod((pipe_ + "/control_lock").c_str(), 0666);
  control_ = Listen(pipe_ + "/control", 0666);
  privileged_ = Listen(pipe_ + "/control_privileged", 0755);
  if (!control_ || !privileged_) {
    LogControl(std::string("Failed to listen in ") + pipe_ + ": " + std::strerror(errno));
    return false;
  }
  const std::string log = pipe_ + "/log";
  if (mkfifo(log.c_str(), 0777) == 0) chmod(log.c_str(), 0777);
  changes_ = Fd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  inotify_add_watch(changes_.get(), machine_.folder().c_str(),
                    IN_CREATE | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_TO);
  return true;
}

int Daemon::Run(void (*ready)()) {
  std::signal(SIGCHLD, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  if (machine_.driver_branch() >= kFirstWithPidFile)
    WriteText(pipe_ + "/nvidia-cuda-mps-control.pid", std::to_string(getpid()));
  LogControl("Starting control daemon using socket " + pipe_ + "/control");
  LogControl("To connect CUDA applications to this daemon, set env CUDA_MPS_PIPE_DIRECTORY=" +
             pipe_);
  ready();
  while (!MayEnd()) Wait();
  for (Server& server : servers_) Send(server.fd.get(), "shutdown");
  LogControl("Exit");
  for (const char* name : {"/nvidia-cuda-mps-control.pid", "/log"}) unlink((pipe_ + name).c_str());
  for (Fd& connection : connections_) Send(connection.get(), "");
  return 0;
}

bool Daemon::MayEnd() const {
  return quitting_ &&
         (forced_ || std::all_of(servers_.begin(), servers_.end(),
                                 [](const Server& server) { return server.clients.empty(); }));
}

// Blocks completely until the fault is healed.
bool Daemon::Hangs() {
  if (machine_.fault() != Fault::kHang) return false;
  pollfd wake{changes_.get(), POLLIN, 0};
  poll(&wake, 1, 500);
  char drained[4096];
  while (read(changes_.get(), drained, sizeof drained) > 0) continue;
  return true;
}

void Daemon::Wait() {
  if (Hangs()) return;
  std::vector<pollfd> ready = {
      {control_.get(), POLLIN, 0}, {privileged_.get(), POLLIN, 0}, {changes_.get(), POLLIN, 0}};
  for (const Fd& fd : newcomers_) ready.push_back({fd.get(), POLLIN, 0});
  for (const Fd& fd : connections_) ready.push_back({fd.get(), POLLIN, 0});
  for (const Server& server : servers_) ready.push_back({server.fd.get(), POLLIN, 0});
  if (poll(ready.data(), ready.size(), -1) < 0 || machine_.fault() == Fault::kHang) return;
  std::size_t at = 0;
  const auto is_ready = [&] { return ready[at++].revents != 0; };
  Fd newcomer(is_ready() ? accept4(control_.get(), nullptr, nullptr, SOCK_CLOEXEC) : -1);
  Fd connection(is_ready() ? accept4(privileged_.get(), nullptr, nullptr, SOCK_CLOEXEC) : -1);
  if (is_ready()) {
    char drained[4096];
    while (read(changes_.get(), drained, sizeof drained) > 0) continue;
  }
  std::vector<Fd> old = std::move(newcomers_);
  newcomers_.clear();
  for (Fd& fd : old) is_ready() ? OnNewcomer(std::move(fd)) : newcomers_.push_back(std::move(fd));
  for (Fd& fd : connections_)
    if (is_ready()) OnCommand(fd);
  for (Server& server : servers_)
    if (is_ready()) OnServer(server);
  std::erase_if(connections_, [](const Fd& fd) { return !fd; });
  servers_.remove_if([](const Server& server) { return !server.fd; });
  if (newcomer) newcomers_.push_back(std::move(newcomer));
  if (connection) connections_.push_back(std::move(connection));
  Place();
}

void Daemon::OnNewcomer(Fd fd) {
  const auto hello = Receive(fd.get());
  if (!hello || Word(hello->text, 0) != "client")
    return LogControl("User did not send valid credentials");
  const pid_t seen = PeerPid(fd.get());
  Client client{std::move(fd),
                seen ? seen : static_cast<pid_t>(Number(Word(hello->text, 1)).value_or(0)), 0};
  client.uid = PeerUid(client.fd.get());
  LogControl("NEW CLIENT " + std::to_string(client.pid) + " from user " +
             std::to_string(client.uid));
  if (quitting_) return;
  waiting_.push_back(std::move(client));
}

// Only one server at a time: another user's server exits when its last client has gone.
void Daemon::Place() {
  while (!waiting_.empty()) {
    Client& client = waiting_.front();
    if (servers_.empty()) {
      if (!StartServer(client.uid)) return waiting_.clear();
      return;
    }
    Server& server = servers_.front();
    if (!server.ready || server.ending) return;
    if (server.uid != client.uid) {
      if (!server.clients.empty()) return;
      server.ending = true;
      Send(server.fd.get(), "shutdown");
      return;
    }
    Send(server.fd.get(), "client " + std::to_string(client.pid), client.fd.get());
    waiting_.pop_front();
  }
}

bool Daemon::StartServer(uid_t uid) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return false;
  std::string limits = "-";
  auto all = limits_;
  all.insert(given_.begin(), given_.end());
  for (const auto& [device, bytes] : all)
    limits += std::to_string(device) + ":" + std::to_string(bytes) + ",";
  const std::string percentage = std::to_string(percentage_), program = "nvidia-cuda-mps-server";
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(pair[1], 3);  // also clears the close-on-exec flag
    if (getuid() == 0 && (setgid(uid) != 0 || setuid(uid) != 0)) _exit(127);
    execlp(program.c_str(), program.c_str(), percentage.c_str(), limits.c_str(), nullptr);
    _exit(127);
  }
  close(pair[1]);
  Server server;
  server.fd = Fd(pair[0]);
  server.pid = pid;
  server.uid = uid;
  LogControl("Starting new server " + std::to_string(pid) + " for user " + std::to_string(uid));
  servers_.push_back(std::move(server));
  return pid > 0;
}

void Daemon::OnServer(Server& server) {
  const auto message = Receive(server.fd.get());
  const std::string pid = std::to_string(server.pid);
  if (!message) {
    LogControl("Server " + pid + " exited");
    // Clients that it refused must not retry indefinitely.
    if (!server.ready) waiting_.clear();
    server.fd = Fd();
    return;
  }
  const std::string verb = Word(message->text, 0);
  const auto client = static_cast<pid_t>(Number(Word(message->text, 1)).value_or(0));
  if (verb == "ready") {
    server.ready = true;
    LogControl("NEW SERVER " + pid + ": Ready");
  } else if (verb == "connected") {
    server.clients.push_back(client);
  } else if (verb == "gone") {
    const auto at = std::find(server.clients.begin(), server.clients.end(), client);
    if (at != server.clients.end()) server.clients.erase(at);
  }
}

void Daemon::OnCommand(Fd& connection) {
  const auto message = Receive(connection.get());
  if (!message) {
    connection = Fd();
    return;
  }
  LogControl("Cmd:" + message->text);
  if (Word(message->text, 0) == "quit") {
    quitting_ = true;
    forced_ = Word(message->text, 1) == "-t";
    return;  // answered when it is done
  }
  const bool garbled = machine_.fault() == Fault::kNonsense;
  // The answer is never empty: an empty message would mean the end of the connection.
  Send(connection.get(),
       "=" + (garbled ? std::string("\x01\xff%s 3 pears \x7f\nNaN%%\n") : Answer(message->text)));
}

}  // namespace mps
