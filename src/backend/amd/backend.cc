// Reads sysfs at each call; the topology only when its generation changed.
#include "device/backend.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "backend/amd/dialect/kinds.h"
#include "backend/amd/facts.h"
#include "backend/amd/hive.h"
#include "backend/amd/machine.h"
#include "backend/amd/missing_parts.h"
#include "backend/amd/modes.h"
#include "backend/amd/reading.h"
#include "base/core/strings.h"
#include "base/log.h"

namespace penstock::backend::amd {
namespace {

using base::Code;
using base::Error;
using base::Result;

constexpr std::size_t kMaxVersion = 4096;
/// All devices are read one after another: they share one look at the processes.
constexpr auto kRound = std::chrono::milliseconds(200);

/// The machine between Open and Close.
struct Session {
  explicit Session(os::Root sysfs)
      : machine(std::move(sysfs)), instance(machine.ModuleInstance()) {}

  const Machine machine;
  const std::string instance;  ///< of the module
  std::string generation;
  bool complete = false;  ///< no node refused to be read
  std::vector<AmdGpu> gpus;
  std::map<std::string, MostErrors> errors;  // by GPU
  HiveResets resets;
  MissingParts missing;
  struct Modes {
    std::string compute, memory;
    bool operator==(const Modes&) const = default;
  };
  std::map<std::string, Modes> modes;  // by GPU, at its last Describe
  /// Memory modes that were requested, by GPU: the driver does not show them.
  std::map<std::string, std::string> requested;
  std::vector<KfdProcess> processes;
  std::chrono::steady_clock::time_point processes_at{};
  /// What a GPU's gpu_metrics said, for its partitions, which are asked one after another.
  struct Measured {
    std::chrono::steady_clock::time_point at{};
    Result<GpuMetrics> metrics = Error(Code::kUnavailable, "not read yet");
  };
  std::map<std::string, Measured> measured;  // by GPU

  /// `again`: reads also what refused to be read the last time.
  base::Status Look(bool again);

  Result<GpuMetrics> MetricsOf(const AmdGpu& gpu);

  /// The state of a GPU. `mode`: its compute mode at the last Describe.
  device::Reading StateOf(const AmdGpu& gpu, const std::string& mode);
  Modes ModesOf(const AmdGpu& gpu) const {
    return {machine.ComputeMode(gpu), machine.MemoryMode(gpu)};
  }

  /// Those on a GPU or partition.
  std::vector<device::DeviceProcess> ProcessesOn(std::uint64_t gpu_id);
};

base::Status Session::Look(bool again) {
  if (!machine.sysfs().Exists(kModule))
    return Error(Code::kNotFound, "AMD's driver was unloaded: there is no /sys/module/amdgpu");
  if (machine.ModuleInstance() != instance)
    return Error(Code::kNotFound, "AMD's driver was loaded again");
  const auto now = ReadGeneration(machine.sysfs());
  if ((complete || !again) && now.ok() && !now->empty() && *now == generation) return {};
  auto topology = ReadTopology(machine.sysfs());
  if (!topology.ok())
    return Error(Code::kNotFound,
                 "amdgpu has no compute driver (/sys/class/kfd): this kernel was built without it, "
                 "or the driver has not found a GPU: " +
                     topology.error().message());
  if (topology->generation != generation) resets = {};  // of GPUs that may have gone
  complete = topology->refused.empty();
  generation = topology->generation;
  std::erase_if(topology->gpus,
                [](const KfdNode& node) { return InstinctArchitecture(node.gfx).empty(); });
  gpus = GroupGpus(topology->gpus,
                   [this](const device::PciAddress& pci) { return machine.Exists(pci); });
  for (AmdGpu& gpu : gpus) gpu.numa_node = machine.NumaNode(gpu.pci);
  LinkGpus(gpus, [this](unsigned node) { return ReadLinks(machine.sysfs(), node); });
  if (gpus.empty() && !complete)
    return Error(Code::kFailedPrecondition,
                 "KFD refuses to show its " + std::to_string(topology->refused.size()) +
                     " GPUs: the device cgroup of this process must allow to read and write "
                     "/dev/dri/renderD* (in a pod: run it privileged)");
  if (gpus.empty())
    return Error(Code::kNotFound, "amdgpu has no Instinct accelerator on this machine");
  if (!complete)
    base::Log(base::kWarn, "KFD refuses to show some GPUs: the device cgroup lacks their rule",
              {{"nodes", std::to_string(topology->refused.size())}});
  return {};
}

Result<GpuMetrics> Session::MetricsOf(const AmdGpu& gpu) {
  if (gpu.partitions.size() <= 1) return ReadMetrics(machine, gpu);
  const auto now = std::chrono::steady_clock::now();
  Measured& last = measured[gpu.id];
  if (now - last.at >= kRound) last = {now, ReadMetrics(machine, gpu)};
  return last.metrics;
}

device::Reading Session::StateOf(const AmdGpu& gpu, const std::string& mode) {
  bool in_reset = false;
  device::Reading reading = ReadGpu(machine, gpu, errors[gpu.id], in_reset);
  if (auto evidence = resets.Update(gpu, in_reset))
    reading.evidence.push_back(*std::move(evidence));
  // Of nodes that refuse to be read nothing is known.
  if (auto evidence = complete ? missing.Look(machine, gpus, gpu, mode, generation) : std::nullopt)
    reading.evidence.push_back(*std::move(evidence));
  return reading;
}

std::vector<device::DeviceProcess> Session::ProcessesOn(std::uint64_t gpu_id) {
  std::vector<device::DeviceProcess> found;
  if (gpu_id == 0) return found;
  if (std::chrono::steady_clock::now() - processes_at >= kRound) {
    processes = ReadProcesses(machine.sysfs());
    processes_at = std::chrono::steady_clock::now();  // however long it took
  }
  for (const KfdProcess& process : processes)
    if (const auto on = process.on.find(gpu_id); on != process.on.end())
      found.push_back({.pid = process.pid, .memory = on->second});
  return found;
}

class AmdBackend final : public device::Backend {
 public:
  explicit AmdBackend(const device::Paths& paths) : paths_(paths) {}

  std::string vendor() const override { return std::string(kVendor); }

  Result<device::Driver> Open() override {
    Close();
    auto sysfs = os::Root::Open(paths_.sysfs_root);
    if (!sysfs.ok() || !sysfs->Exists(kModule))
      return Error(Code::kNotFound,
                   "AMD's driver is not loaded (no " + paths_.sysfs_root + kModule +
                       "): run \"modprobe amdgpu\", or install the driver for this kernel");
    auto session = std::make_unique<Session>(*std::move(sysfs));
    TRY(session->Look(true));
    device::Driver driver{.vendor = vendor(), .version = Version(*session)};
    if (const auto kfd = session->machine.KfdFile()) driver.files.push_back(*kfd);
    driver.guarded = session->machine.Guarded(session->gpus);
    session_ = std::move(session);
    return driver;
  }

  Result<std::vector<std::string>> List() override {
    if (!session_) return NotOpen();
    TRY(session_->Look(true));
    std::vector<std::string> addresses;
    for (const AmdGpu& gpu : session_->gpus) addresses.push_back(ToString(gpu.pci));
    return addresses;
  }

  Result<device::Facts> Describe(const std::string& address) override {
    if (session_) TRY(session_->Look(false));
    ASSIGN(const Place place, Find(address));
    if (place.partition == nullptr) {
      session_->modes[place.gpu->id] = session_->ModesOf(*place.gpu);
      device::Facts facts = FactsOfGpu(session_->machine, session_->gpus, *place.gpu);
      if (const auto one = session_->requested.find(place.gpu->id);
          one != session_->requested.end())
        for (device::Mode& mode : facts.modes)
          if (mode.name == kMemoryPartition) mode.pending = one->second;
      return facts;
    }
    return FactsOfPart(session_->machine, session_->gpus, *place.gpu, *place.partition);
  }

  Result<device::Reading> Read(const std::string& address) override {
    ASSIGN(const Place place, Find(address));
    const AmdGpu& gpu = *place.gpu;
    if (place.partition != nullptr)
      return device::Reading{.processes = session_->ProcessesOn(place.partition->node.gpu_id)};
    const auto mode = session_->modes.find(gpu.id);
    device::Reading reading =
        session_->StateOf(gpu, mode == session_->modes.end() ? "" : mode->second.compute);
    // Of a GPU that is divided, the partitions have them. For all else the GPU answers.
    if (gpu.partitions.size() == 1)
      reading.processes = session_->ProcessesOn(gpu.partitions.front().node.gpu_id);
    else
      for (const Partition& partition : gpu.partitions)
        reading.parts.push_back(
            {PartAddress(gpu, partition.xcp), session_->ProcessesOn(partition.node.gpu_id)});
    reading.facts_changed = mode != session_->modes.end() && mode->second != session_->ModesOf(gpu);
    return reading;
  }

  Result<device::Sample> TakeSample(const std::string& address,
                                    const device::SampleRequest& request) override {
    ASSIGN(const Place place, Find(address));
    const MetricsOf metrics = [this, &place] { return session_->MetricsOf(*place.gpu); };
    if (place.partition != nullptr) return SamplePart(place.partition->xcp, metrics, request);
    device::Sample sample = SampleGpu(session_->machine, *place.gpu, metrics, request);
    for (const device::SampleRequest& part : request.parts) {
      const auto its = Find(part.address);
      if (!its.ok() || its->gpu != place.gpu || its->partition == nullptr) continue;
      sample.parts.push_back(SamplePart(its->partition->xcp, metrics, part));
      sample.parts.back().address = part.address;
    }
    return sample;
  }

  base::Status SetMode(const std::string& address, const std::string& mode,
                       const std::string& value) override {
    ASSIGN(const Place place, Find(address));
    if (place.partition != nullptr || (mode != kComputePartition && mode != kMemoryPartition))
      return Error(Code::kUnimplemented, "the driver sets no mode " + mode + " of it");
    if (mode == kMemoryPartition) {
      TRY(RequestMemoryMode(session_->machine, *place.gpu, value));
      session_->requested[place.gpu->id] = value;
      return {};
    }
    return SetComputeMode(session_->machine, paths_.proc_root, *place.gpu, value);
  }

  Result<std::vector<device::Evidence>> Wait(std::chrono::milliseconds) override {
    return Error(Code::kUnimplemented, "amdgpu has no events for the state of a device");
  }

  void Close() override { session_.reset(); }

 private:
  struct Place {
    const AmdGpu* gpu = nullptr;
    const Partition* partition = nullptr;
  };

  static Error NotOpen() { return {Code::kUnavailable, "AMD's driver is not open"}; }

  Result<Place> Find(const std::string& address) const {
    if (!session_) return NotOpen();
    const auto slash = address.find('/');
    const std::string pci = address.substr(0, slash);
    for (const AmdGpu& gpu : session_->gpus) {
      if (ToString(gpu.pci) != pci) continue;
      if (slash == std::string::npos) return Place{&gpu, nullptr};
      for (const Partition& partition : gpu.partitions)
        if (std::to_string(partition.xcp) == address.substr(slash + 1))
          return Place{&gpu, &partition};
    }
    return Error(Code::kNotFound, "KFD's topology has no GPU or partition " + address);
  }

  /// The kernel's own driver has no version: then that of the kernel.
  std::string Version(const Session& session) const {
    std::string version = session.machine.File(std::string(kModule) + "/version");
    if (!version.empty()) return version;
    const auto kernel = os::ReadFile(paths_.proc_root + "/sys/kernel/osrelease", kMaxVersion);
    return kernel.ok() ? std::string(base::Trim(*kernel)) : "";
  }

  const device::Paths paths_;
  std::unique_ptr<Session> session_;
};

}  // namespace

std::unique_ptr<device::Backend> MakeBackend(const device::Paths& paths) {
  return std::make_unique<AmdBackend>(paths);
}

}  // namespace penstock::backend::amd
