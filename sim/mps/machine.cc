#include "sim/mps/machine.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim/mig.h"
#include "sim/mig_files.h"

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
bool CanOpen(const std::string& path, int access) {
  const int fd = open(path.c_str(), access | O_CLOEXEC | O_NONBLOCK);
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

std::vector<Device> Machine::OpenDevices() const {
  const std::string dev = folder_ + "/../dev/";
  std::vector<Device> open;
  for (std::uint32_t slot = 0; state_ && slot < state_->gpu_count; slot++) {
    const SimGpu& gpu = state_->gpus[slot];
    if (gpu.removed || !CanOpen(dev + "nvidia" + std::to_string(gpu.minor), O_RDWR)) continue;
    if (!SimMigOn(&gpu)) {
      open.push_back({.slot = slot, .uuid = gpu.uuid});
      continue;
    }
    const auto may_use = [&](std::uint32_t instance, std::uint32_t compute) {
      const std::uint32_t minor = SimCapabilityMinor(gpu.minor, instance, compute);
      return CanOpen(dev + "nvidia-caps/nvidia-cap" + std::to_string(minor), O_RDONLY);
    };
    for (std::uint32_t i = 0; i < kSimGpuInstances; i++)
      for (std::uint32_t c = 0; gpu.instances[i].born && c < kSimComputeInstances; c++) {
        if (!gpu.instances[i].computes[c].born || !may_use(i, SIM_NA) || !may_use(i, c)) continue;
        char uuid[37];
        SimMigUuid(&gpu, i, c, uuid);
        const std::string old = std::string(gpu.uuid) + "/" + std::to_string(i) + "/" +
                                std::to_string(c);  // before 470
        open.push_back({slot, i, c, "MIG-" + (state_->driver_branch >= 470 ? uuid : old)});
      }
  }
  return open;
}

std::vector<Device> Machine::VisibleDevices() const {
  std::vector<Device> all = OpenDevices(), visible;
  const char* wanted = std::getenv("CUDA_VISIBLE_DEVICES");
  std::string word;
  for (const char c : wanted ? std::string(wanted) + "," : std::string()) {
    if (c != ',') {
      word += c;
      continue;
    }
    for (std::size_t i = 0; i < all.size(); i++)
      if (word == std::to_string(i) || word == all[i].uuid) visible.push_back(all[i]);
    word.clear();
  }
  if (!wanted) visible = all;
  const auto mig = std::find_if(visible.begin(), visible.end(),
                                [](const Device& device) { return device.is_mig(); });
  return mig == visible.end() ? visible : std::vector<Device>{*mig};
}

std::uint64_t Machine::Memory(const Device& device) const {
  const SimGpu& gpu = state_->gpus[device.slot];
  if (!device.is_mig()) return gpu.memory_total;
  const SimMigProfile* profile = SimProfileAt(&gpu, gpu.instances[device.instance].profile);
  return profile ? profile->memory_mib << 20 : 0;
}

bool Machine::PutProcess(const Device& device, std::uint32_t pid, char type, std::uint64_t bytes,
                         const std::string& name) {
  const Change change(*this);
  SimGpu& gpu = state_->gpus[device.slot];
  SimProcess* end = gpu.processes + std::min<std::uint32_t>(gpu.process_count, kSimMaxProcesses);
  SimProcess* at = std::find_if(gpu.processes, end,
                                [&](const SimProcess& process) { return process.pid == pid; });
  if (at == end) {
    if (gpu.process_count >= kSimMaxProcesses) return false;
    *at = {};
    at->pid = pid;
    at->type = static_cast<unsigned char>(type);
    at->gpu_instance = device.instance;
    at->compute_instance = device.compute;
    std::memcpy(at->name, name.data(), std::min(name.size(), sizeof at->name - 1));
    gpu.process_count++;
  }
  at->memory_bytes = bytes;
  return true;
}

void Machine::RemoveProcess(const Device& device, std::uint32_t pid) {
  const Change change(*this);
  SimGpu& gpu = state_->gpus[device.slot];
  SimProcess* end = gpu.processes + std::min<std::uint32_t>(gpu.process_count, kSimMaxProcesses);
  end = std::remove_if(gpu.processes, end,
                       [&](const SimProcess& process) { return process.pid == pid; });
  gpu.process_count = static_cast<std::uint32_t>(end - gpu.processes);
}

// Compute instances of one GPU instance share its memory.
std::uint64_t Machine::FreeBytes(const Device& device) const {
  const SimGpu& gpu = state_->gpus[device.slot];
  std::uint64_t used = device.is_mig() ? 0 : gpu.memory_reserved + gpu.memory_used;
  for (std::uint32_t i = 0; i < gpu.process_count && i < kSimMaxProcesses; i++)
    if (!device.is_mig() || gpu.processes[i].gpu_instance == device.instance)
      used += gpu.processes[i].memory_bytes;
  const std::uint64_t all = Memory(device);
  return all > used ? all - used : 0;
}

bool Machine::HasComputeProcess(const Device& device) const {
  const SimGpu& gpu = state_->gpus[device.slot];
  const SimProcess* end =
      gpu.processes + std::min<std::uint32_t>(gpu.process_count, kSimMaxProcesses);
  return std::any_of(gpu.processes, end,
                     [](const SimProcess& process) { return process.type == 'C'; });
}

}  // namespace mps
