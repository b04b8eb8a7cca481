// Implements -r: resets a GPU. NVML has no call for that, so this changes the state file, as the
// driver would.
#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim/meters.h"
#include "sim/mig.h"
#include "sim/mig_files.h"
#include "sim/nvidia-smi/commands.h"
#include "sim/workload.h"

namespace smi {
namespace {

// Returns the path that the library uses: named by the environment, or found upwards from the
// program.
std::string StatePath() {
  const char* given = std::getenv("PENSTOCK_SIM_STATE");
  if (given && given[0]) return given;
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
  std::string folder(path, size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!folder.empty()) {
    folder.resize(folder.rfind('/'));
    std::string state = folder + "/.penstock-sim/state";
    if (access(state.c_str(), F_OK) == 0) return state;
  }
  return "";
}

// Returns the machine's folder, to which dev/ and proc/ belong.
std::string RootOf(const std::string& state) {
  const std::size_t at = state.rfind("/.penstock-sim/");
  return at == std::string::npos ? "" : state.substr(0, at);
}

class Locked {
 public:
  explicit Locked(const std::string& path) : fd_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    struct stat info {};
    if (fd_ < 0 || fstat(fd_, &info) != 0 ||
        static_cast<std::size_t>(info.st_size) < sizeof(SimState))
      return;
    void* mapped = mmap(nullptr, sizeof(SimState), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (mapped == MAP_FAILED ||
        SimCheckState(static_cast<SimState*>(mapped), static_cast<std::uint64_t>(info.st_size)) !=
            kSimStateOk)
      return;
    if (flock(fd_, LOCK_EX) != 0) return;
    state_ = static_cast<SimState*>(mapped);
    __atomic_fetch_or(&state_->generation, 1u, __ATOMIC_ACQ_REL);
  }
  ~Locked() {
    if (!state_) return;
    __atomic_add_fetch(&state_->generation, 1u, __ATOMIC_ACQ_REL);
    __atomic_add_fetch(&state_->event_futex, 1u, __ATOMIC_ACQ_REL);
    syscall(SYS_futex, &state_->generation, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    syscall(SYS_futex, &state_->event_futex, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    flock(fd_, LOCK_UN);
    close(fd_);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  SimState* state() { return state_; }

 private:
  int fd_;
  SimState* state_ = nullptr;
};

std::string BusIdOf(const SimGpu& gpu) {
  char text[32];
  std::snprintf(text, sizeof text, "%08X:%02X:%02X.0", gpu.domain, gpu.bus, gpu.device);
  return text;
}

// Repairs what a reset repairs: a GPU that fell off the bus, pending remaps, volatile counters, a
// recovery action that requested at most a reset. After it no work runs on the GPU, and counts
// restart at zero.
void Reset(SimGpu& gpu, std::uint64_t now) {
  gpu.lost = 0;
  gpu.ecc_volatile = {};
  if (gpu.recovery_action != 2 && gpu.recovery_action != 7) gpu.recovery_action = 0;
  gpu.remap_pending = gpu.retire_pending = 0;
  gpu.ecc_current = gpu.ecc_pending;
  SimResetMig(&gpu);
  penstock::sim::Work(gpu, 0);
  SimZeroMeters(&gpu, now);
}

// As the driver does for every change of instances and of the mode; Locked wakes those who wait.
void AddMigEvent(SimState& state, const SimGpu& gpu) {
  const std::uint64_t sequence = state.event_head + 1;
  state.events[sequence % kSimEventSlots] = {sequence, NV_EVENT_MIG_CONFIG, 0,
                                             static_cast<std::uint32_t>(&gpu - state.gpus), 0};
  __atomic_store_n(&state.event_head, sequence, __ATOMIC_RELEASE);
}

int ResetOne(SimGpu& gpu, std::uint64_t now) {
  const std::string bus = BusIdOf(gpu);
  if (gpu.process_count > 0) {
    std::printf(
        "GPU %s is currently in use by one or more processes (e.g. CUDA application, graphics "
        "application or monitoring application).\n"
        "Unable to reset this GPU because it's being used by some other process.\n",
        bus.c_str());
    return kOther;
  }
  Reset(gpu, now);
  std::printf("GPU %s was successfully reset.\n", bus.c_str());
  return kOk;
}

bool Wanted(const std::vector<std::string>& ids, const SimGpu& gpu, unsigned index) {
  return ids.empty() || std::any_of(ids.begin(), ids.end(), [&](const std::string& id) {
           return id == std::to_string(index) || id == gpu.uuid ||
                  strcasecmp(id.c_str(), BusIdOf(gpu).c_str()) == 0 ||
                  strcasecmp(("0000" + id).c_str(), BusIdOf(gpu).c_str()) == 0;
         });
}

}  // namespace

int ResetGpus(const Nvml&, const std::vector<std::string>& wanted) {
  const std::string path = StatePath();
  if (!path.empty() && access(path.c_str(), W_OK) != 0) {
    std::puts("Unable to reset GPUs: Insufficient Permissions");
    return kNoPermission;
  }
  Locked locked(path);
  if (!locked.state()) {
    std::puts("Unable to reset GPUs: the simulated machine's state cannot be read");
    return kOther;
  }
  const auto real = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now().time_since_epoch());
  const std::uint64_t now = SimNow(locked.state(), static_cast<std::uint64_t>(real.count()));
  int status = kNotFound;
  unsigned index = 0;
  for (SimGpu* gpu = locked.state()->gpus; gpu < locked.state()->gpus + locked.state()->gpu_count;
       gpu++) {
    if (gpu->removed) continue;
    if (!Wanted(wanted, *gpu, index++)) continue;
    const bool was_divided = SimHasInstances(gpu) || gpu->mig_current != gpu->mig_pending;
    const int one = ResetOne(*gpu, now);
    if (one == kOk && was_divided) AddMigEvent(*locked.state(), *gpu);
    SimSyncInstanceFiles(RootOf(path).c_str(), locked.state(), gpu);
    status = status == kNotFound || one != kOk ? one : status;
  }
  if (status == kNotFound)
    std::puts("No devices were found");
  else if (status == kOk)
    std::puts("All done.");
  return status;
}

}  // namespace smi
