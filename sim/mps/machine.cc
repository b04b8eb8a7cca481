#include "sim/mps/machine.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace mps {
namespace {

std::string StatePath() {
  const char* given = std::getenv("PENSTOCK_SIM_STATE");
  if (given && given[0]) return given;
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
  std::string folder(path, size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!folder.empty()) {
    folder.resize(std::min(folder.rfind('/'), folder.size()));
    std::string state = folder + "/.penstock-sim/state";
    if (access(state.c_str(), F_OK) == 0) return state;
  }
  return "";
}

// As in the library: a GPU whose device file may not be opened does not exist for this program.
// Simulated device files have no driver.
bool CanOpen(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0) close(fd);
  return fd >= 0 || errno == ENXIO || errno == ENODEV;
}

}  // namespace

// Holds the file's lock with an odd generation, as every writer of the state does.
class Machine::Change {
 public:
  explicit Change(const Machine& machine) : fd_(machine.fd_), state_(machine.state_) {
    while (flock(fd_, LOCK_EX) != 0)
      if (errno != EINTR) break;
    __atomic_fetch_or(&state_->generation, 1u, __ATOMIC_ACQ_REL);
  }
  ~Change() {
    __atomic_add_fetch(&state_->generation, 1u, __ATOMIC_ACQ_REL);
    __atomic_add_fetch(&state_->event_futex, 1u, __ATOMIC_ACQ_REL);
    syscall(SYS_futex, &state_->generation, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    syscall(SYS_futex, &state_->event_futex, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    flock(fd_, LOCK_UN);
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  int fd_;
  SimState* state_;
};

Machine::Machine() {
  const std::string path = StatePath();
  if (path.empty()) return;
  folder_ = path.substr(0, path.rfind('/'));
  fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat info {};
  if (fd_ < 0 || fstat(fd_, &info) != 0 ||
      static_cast<std::size_t>(info.st_size) < sizeof(SimState))
    return;
  void* mapped = mmap(nullptr, sizeof(SimState), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (mapped == MAP_FAILED) return;
  if (SimCheckState(static_cast<SimState*>(mapped), static_cast<std::uint64_t>(info.st_size)) ==
      kSimStateOk)
    state_ = static_cast<SimState*>(mapped);
  else
    munmap(mapped, sizeof(SimState));
}

Machine::~Machine() {
  if (state_) munmap(state_, sizeof(SimState));
  if (fd_ >= 0) close(fd_);
}

Fault Machine::fault() const {
  char word[32] = {};
  const int fd = open((folder_ + "/mps-fault").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Fault::kNone;
  (void)!read(fd, word, sizeof word - 1);
  close(fd);
  const std::string_view text(word);
  if (text.starts_with("hang")) return Fault::kHang;
  if (text.starts_with("exit")) return Fault::kExit;
  return text.starts_with("nonsense") ? Fault::kNonsense : Fault::kNone;
}

std::vector<std::uint32_t> Machine::OpenGpus() const {
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; state_ && i < state_->gpu_count; i++)
    if (!state_->gpus[i].removed &&
        CanOpen(folder_ + "/../dev/nvidia" + std::to_string(state_->gpus[i].minor)))
      all.push_back(i);
  return all;
}

std::vector<std::uint32_t> Machine::VisibleGpus() const {
  std::vector<std::uint32_t> all = OpenGpus();
  std::vector<std::uint32_t> visible;
  const char* wanted = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!wanted) return all;
  std::string word;
  for (const char c : std::string(wanted) + ",") {
    if (c != ',') {
      word += c;
      continue;
    }
    for (std::size_t i = 0; i < all.size(); i++)
      if (word == std::to_string(i) || word == state_->gpus[all[i]].uuid) visible.push_back(all[i]);
    word.clear();
  }
  return visible;
}

bool Machine::PutProcess(std::uint32_t slot, std::uint32_t pid, char type, std::uint64_t bytes,
                         const std::string& name) {
  const Change change(*this);
  SimGpu& gpu = state_->gpus[slot];
  SimProcess* end = gpu.processes + std::min<std::uint32_t>(gpu.process_count, kSimMaxProcesses);
  SimProcess* at = std::find_if(gpu.processes, end,
                                [&](const SimProcess& process) { return process.pid == pid; });
  if (at == end) {
    if (gpu.process_count >= kSimMaxProcesses) return false;
    *at = {};
    at->pid = pid;
    at->type = static_cast<unsigned char>(type);
    at->gpu_instance = at->compute_instance = SIM_NA;
    std::memcpy(at->name, name.data(), std::min(name.size(), sizeof at->name - 1));
    gpu.process_count++;
  }
  at->memory_bytes = bytes;
  return true;
}

void Machine::RemoveProcess(std::uint32_t slot, std::uint32_t pid) {
  const Change change(*this);
  SimGpu& gpu = state_->gpus[slot];
  SimProcess* end = gpu.processes + std::min<std::uint32_t>(gpu.process_count, kSimMaxProcesses);
  end = std::remove_if(gpu.processes, end,
                       [&](const SimProcess& process) { return process.pid == pid; });
  gpu.process_count = static_cast<std::uint32_t>(end - gpu.processes);
}

std::uint64_t Machine::FreeBytes(std::uint32_t slot) const {
  const SimGpu& gpu = state_->gpus[slot];
  std::uint64_t used = gpu.memory_reserved + gpu.memory_used;
  for (std::uint32_t i = 0; i < gpu.process_count && i < kSimMaxProcesses; i++)
    used += gpu.processes[i].memory_bytes;
  return gpu.memory_total > used ? gpu.memory_total - used : 0;
}

bool Machine::HasComputeProcess(std::uint32_t slot) const {
  const SimGpu& gpu = state_->gpus[slot];
  const SimProcess* end =
      gpu.processes + std::min<std::uint32_t>(gpu.process_count, kSimMaxProcesses);
  return std::any_of(gpu.processes, end,
                     [](const SimProcess& process) { return process.type == 'C'; });
}

}  // namespace mps
