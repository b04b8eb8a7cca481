// nvidia-cuda-mps-server of a simulated machine: serves the clients of one user, one thread each,
// within the limits with which it was started. Only the control daemon starts it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/mps/machine.h"
#include "sim/mps/wire.h"

namespace mps {
namespace {

constexpr int kControl = 3;
constexpr std::uint32_t kExclusiveProcess = 3, kProhibited = 2;
constexpr std::uint64_t kOwnMemory = 30u << 20;
constexpr const char* kOutOfMemory = "error 2 CUDA_ERROR_OUT_OF_MEMORY";

void LogServer(const std::string& text) { Log("server.log", "Server", text); }

class Server {
 public:
  Server(std::string percentage, const std::string& limits)
      : percentage_(std::move(percentage)), devices_(machine_.VisibleDevices()) {
    for (std::size_t at = 1; at < limits.size(); at = limits.find(',', at) + 1) {
      const std::string entry = limits.substr(at, limits.find(',', at) - at);
      const std::size_t colon = entry.find(':');
      limits_[Number(entry.substr(0, colon)).value_or(0)] =
          Number(entry.substr(colon + 1)).value_or(0);
    }
  }

  int Run() {
    if (const std::string problem = TakeDevices(); !problem.empty()) {
      LogServer("Failed to start : " + problem);
      return 1;
    }
    MakeShared();
    Send(kControl, "ready");
    while (const auto message = Receive(kControl)) OnControl(*message);
    // The control daemon is gone: serve the connected clients until they finish.
    std::unique_lock lock(mutex_);
    while (!clients_.empty()) {
      lock.unlock();
      usleep(20000);
      lock.lock();
    }
    Leave();
    return 0;
  }

  /// Runs in a signal handler: must not allocate memory or take a lock of this process.
  void End() {
    unlink(shared_path_);
    for (const Device& device : devices_)
      machine_.RemoveProcess(device, static_cast<std::uint32_t>(getpid()));
    _exit(0);
  }

 private:
  // A GPU in MIG mode has no compute mode but DEFAULT (MIG user guide, "MIG with CUDA MPS").
  std::string TakeDevices() {
    if (devices_.empty()) return "no device";
    for (const Device& device : devices_) {
      const std::uint32_t mode = device.is_mig() ? 0 : machine_.gpu(device.slot).compute_mode;
      if (mode == kProhibited) return "device prohibited";
      if (mode == kExclusiveProcess && machine_.HasComputeProcess(device)) return "device busy";
    }
    for (const Device& device : devices_)
      machine_.PutProcess(device, static_cast<std::uint32_t>(getpid()), 'C', kOwnMemory,
                          "nvidia-cuda-mps-server");
    return "";
  }

  // Creates the file that clients must find under the same name in their /dev/shm.
  void MakeShared() {
    char name[64];
    std::snprintf(name, sizeof name, "cuda.shm.%x.%x.1", static_cast<unsigned>(getuid()),
                  static_cast<unsigned>(getpid()));
    shared_ = name;
    std::snprintf(shared_path_, sizeof shared_path_, "/dev/shm/%s", name);
    const Fd fd(
        open(("/dev/shm/" + shared_).c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (fd) (void)!write(fd.get(), shared_.data(), shared_.size());
    if (fd) (void)!ftruncate(fd.get(), 4096);
  }

  void Leave() {
    unlink(("/dev/shm/" + shared_).c_str());
    for (const Device& device : devices_)
      machine_.RemoveProcess(device, static_cast<std::uint32_t>(getpid()));
  }

  void OnControl(const Message& message) {
    const std::string verb = Word(message.text, 0);
    const auto pid = static_cast<pid_t>(Number(Word(message.text, 1)).value_or(0));
    if (verb == "shutdown") {
      const std::scoped_lock lock(mutex_);
      for (const auto& [client, fd] : clients_) LeaveDevices(client);
      Leave();
      _exit(0);
    }
    if (verb == "terminate") {
      const std::scoped_lock lock(mutex_);
      if (const auto at = clients_.find(pid); at != clients_.end())
        ::shutdown(at->second, SHUT_RDWR);
    }
    if (verb != "client") return;
    const int fd = const_cast<Message&>(message).passed.Release();
    std::thread([this, fd, pid] { Serve(Fd(fd), pid); }).detach();
  }

  // Serves one client from its greeting to its end.
  void Serve(Fd fd, pid_t pid) {
    Send(fd.get(), "shm " + shared_);
    const auto found = Receive(fd.get());
    if (!found || found->text != "found " + shared_) return;
    {
      const std::scoped_lock lock(mutex_);
      clients_[pid] = fd.get();
    }
    LogServer("Client {PID: " + std::to_string(pid) + "} connected");
    Send(kControl, "connected " + std::to_string(pid));
    std::string uuids;
    for (const Device& device : devices_)
      uuids += std::string(uuids.empty() ? "" : ",") + device.uuid;
    Send(fd.get(), "welcome " + std::to_string(getpid()) + " " + uuids);
    std::map<unsigned long long, std::uint64_t> allocated;
    while (const auto request = Receive(fd.get())) {
      if (!Send(fd.get(), Answer(pid, request->text, allocated))) break;
    }
    const std::scoped_lock lock(mutex_);
    LeaveDevices(pid);
    clients_.erase(pid);
    LogServer("Client process disconnected: " + std::to_string(pid));
    Send(kControl, "gone " + std::to_string(pid));
  }

  void LeaveDevices(pid_t pid) {
    for (const Device& device : devices_)
      machine_.RemoveProcess(device, static_cast<std::uint32_t>(pid));
  }

  // Returns the index of the device with this UUID; devices_.size() if there is none.
  std::size_t Find(const std::string& uuid) const {
    std::size_t at = 0;
    while (at < devices_.size() && uuid != devices_[at].uuid) at++;
    return at;
  }

  // Answers "limit DEVICE", with which a client begins to use a GPU, and "allocate DEVICE BYTES".
  std::string Answer(pid_t pid, const std::string& request,
                     std::map<unsigned long long, std::uint64_t>& allocated) {
    const std::size_t number = Find(Word(request, 1));
    if (number >= devices_.size()) return "error 101 CUDA_ERROR_INVALID_DEVICE";
    const Device& device = devices_[number];
    // GPUs before Volta do not support limits.
    const bool limits = machine_.gpu(device.slot).cc_major >= 7;
    const auto entry = limits_.find(number);
    const std::uint64_t limit =
        entry == limits_.end() || !limits ? machine_.Memory(device) : entry->second;
    if (Word(request, 0) == "limit") {
      const std::scoped_lock lock(mutex_);
      machine_.PutProcess(device, static_cast<std::uint32_t>(pid), 'M', allocated[number],
                          "client");
      return "limit " + std::to_string(limit) + " " +
             (limits ? percentage_.substr(0, percentage_.find('.') + 2) : "100.0");
    }
    if (Word(request, 0) != "allocate") return "error 1 CUDA_ERROR_INVALID_VALUE";
    const std::uint64_t bytes = Number(Word(request, 2)).value_or(0);
    const std::scoped_lock lock(mutex_);
    std::uint64_t& mine = allocated[number];
    if (mine + bytes > limit || bytes > machine_.FreeBytes(device)) return kOutOfMemory;
    mine += bytes;
    machine_.PutProcess(device, static_cast<std::uint32_t>(pid), 'M', mine, "client");
    return "allocated " + std::to_string(mine);
  }

  Machine machine_;
  std::string percentage_, shared_;
  char shared_path_[128] = "";
  std::vector<Device> devices_;
  std::map<unsigned long long, std::uint64_t> limits_;
  std::mutex mutex_;  // also protects the machine's state, whose own lock works only between
                      // processes
  std::map<pid_t, int> clients_;
};

}  // namespace
}  // namespace mps

static mps::Server* g_server;

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  struct stat info {};
  if (argc != 3 || fstat(mps::kControl, &info) != 0 || !S_ISSOCK(info.st_mode)) {
    std::fputs("nvidia-cuda-mps-server is started by nvidia-cuda-mps-control\n", stderr);
    return 1;
  }
  fcntl(mps::kControl, F_SETFD, FD_CLOEXEC);
  mps::Server server(argv[1], argv[2]);
  g_server = &server;
  signal(SIGTERM, [](int) { g_server->End(); });
  return server.Run();
}
