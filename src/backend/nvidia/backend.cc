// Holds an initialized NVML and the described GPUs, and detects changes of the driver.
#include "backend/nvidia/backend.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "backend/nvidia/dialect/kinds.h"
#include "backend/nvidia/events.h"
#include "backend/nvidia/facts.h"
#include "backend/nvidia/mig.h"
#include "backend/nvidia/mig_control.h"
#include "backend/nvidia/reading.h"
#include "backend/nvidia/sampling/sampling.h"
#include "base/core/strings.h"

namespace penstock::backend::nvidia {
namespace {

constexpr unsigned kMaxGpus = 1024;

/// NVML between nvmlInit and nvmlShutdown.
class Session {
 public:
  static Result<std::shared_ptr<Session>> Start(Nvml nvml) {
    const abi::Return answer = nvml->init();
    if (answer != abi::kSuccess) return ToError(answer, nvml->init.name);
    return std::shared_ptr<Session>(new Session(std::move(nvml)));
  }
  ~Session() {
    sampling.reset();
    events.reset();
    nvml->shutdown();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Nvml nvml;
  const base::SystemClock clock;
  std::unique_ptr<Events> events;
  std::unique_ptr<Sampling> sampling;
  std::map<std::string, Gpu> gpus;  // by address, as last described

  /// The GPU that has this MIG device; null where none has.
  const Gpu* GpuOf(const std::string& mig_device) const {
    for (const auto& [address, gpu] : gpus)
      if (std::ranges::find(gpu.mig.devices, mig_device, &MigDevice::uuid) != gpu.mig.devices.end())
        return &gpu;
    return nullptr;
  }

 private:
  explicit Session(Nvml loaded)
      : nvml(std::move(loaded)),
        events(std::make_unique<Events>(nvml)),
        sampling(std::make_unique<Sampling>(nvml.functions(), clock)) {}
};

/// nvmlInit's errors as sentences that say what to do.
Error CannotInitialize(const Error& error, const std::string& module_version) {
  if (error.code() == Code::kFailedPrecondition) {
    const std::string module = module_version.empty()
                                   ? "the loaded kernel module"
                                   : "the loaded kernel module (" + module_version + ")";
    return {Code::kFailedPrecondition, "the NVIDIA driver library and " + module +
                                           " have different versions: reboot, or reload the kernel "
                                           "module, to finish the driver's update"};
  }
  if (error.code() == Code::kUnavailable && module_version.empty())
    return {Code::kNotFound,
            "the NVIDIA kernel driver is not loaded: run \"modprobe nvidia\", or install the "
            "driver for this kernel"};
  if (error.code() == Code::kPermissionDenied)
    return {Code::kFailedPrecondition,
            "no permission to use the NVIDIA driver (" + error.message() +
                "): check the permissions of /dev/nvidiactl and the device rules of this cgroup"};
  if (error.code() == Code::kNotFound)
    return {Code::kNotFound, "the NVIDIA driver found no GPU (" + error.message() + ")"};
  return {Code::kUnavailable,
          "the NVIDIA driver cannot be initialized (" + error.message() + "); see the kernel log"};
}

std::string VersionText(int cuda) {
  return std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
}

class NvidiaBackend final : public device::Backend {
 public:
  explicit NvidiaBackend(const device::Paths& paths) : paths_(paths), files_(paths) {}

  std::string vendor() const override { return std::string(kVendor); }
  Result<device::Driver> Open() override;
  Result<std::vector<std::string>> List() override;
  Result<device::Facts> Describe(const std::string& address) override;
  Result<device::Reading> Read(const std::string& address) override;
  Result<device::Sample> TakeSample(const std::string& address,
                                    const device::SampleRequest& request) override;
  base::Status SetMode(const std::string& address, const std::string& mode,
                       const std::string& value) override;
  Result<std::string> CreatePart(const std::string& device, const device::NewPart& part) override;
  base::Status DestroyPart(const std::string& address) override;
  Result<std::vector<device::Evidence>> Wait(std::chrono::milliseconds most) override;
  void Close() override { Use(nullptr); }

 private:
  std::shared_ptr<Session> Current() const {
    std::lock_guard lock(mutex_);
    return session_;
  }
  void Use(std::shared_ptr<Session> session) {
    std::lock_guard lock(mutex_);
    session_.swap(session);
  }
  base::Status CheckDriver() const;
  Result<device::Reading> ReadPart(const Session& session, const std::string& address) const;
  static Result<device::Sample> SamplePart(const Session& session, const std::string& address,
                                           const std::optional<GpuInstanceAddress>& instance,
                                           const device::SampleRequest& request);
  static Error NoPart(const std::string& address) {
    return {Code::kNotFound, "no GPU has the part " + address};
  }
  static Error NotOpen() { return {Code::kUnavailable, "the NVIDIA driver is not open"}; }
  static Error Gone(const Error& error) {
    return {Code::kUnavailable, "the NVIDIA driver is gone: " + error.message()};
  }

  const device::Paths paths_;
  const MachineFiles files_;
  mutable std::mutex mutex_;
  std::shared_ptr<Session> session_;  // Wait runs in parallel with the others, so they copy it
  std::string module_at_open_;
};

Result<device::Driver> NvidiaBackend::Open() {
  Close();
  ASSIGN(Nvml nvml, Nvml::Load(paths_));
  module_at_open_ = files_.ModuleVersion().value_or("");
  auto started = Session::Start(std::move(nvml));
  if (!started.ok()) return CannotInitialize(started.error(), module_at_open_);
  const std::shared_ptr<Session> session = *std::move(started);

  device::Driver driver;
  driver.vendor = kVendor;
  std::array<char, abi::kVersionLength + 1> version{};
  if (session->nvml->driver_version(version.data(), abi::kVersionLength) == abi::kSuccess)
    driver.version = version.data();
  int cuda = 0;
  if (session->nvml->cuda_version(&cuda) == abi::kSuccess && cuda > 0)
    driver.runtime_version = VersionText(cuda);
  driver.files = files_.ControlFiles();
  driver.guarded = files_.GuardedNumbers();
  Use(session);
  return driver;
}

/// The library answers from what it knew at initialization; the module's file shows what the kernel
/// has now. Without such a file at Open (a simulated /sys, another kernel) there is nothing to
/// compare. A file that cannot be read now, for lack of memory or descriptors, counts as unchanged,
/// because every GPU is withdrawn if the driver went away.
base::Status NvidiaBackend::CheckDriver() const {
  if (module_at_open_.empty()) return {};
  const auto now = files_.ModuleVersion();
  if (!now.ok() && now.error().code() == Code::kNotFound)
    return Error(Code::kNotFound, "the NVIDIA driver is gone: its kernel module was unloaded");
  if (!now.ok() || now->empty() || *now == module_at_open_) return {};
  return Error(Code::kFailedPrecondition,
               "the NVIDIA driver " + module_at_open_ + " was replaced by " + *now);
}

Result<std::vector<std::string>> NvidiaBackend::List() {
  const auto session = Current();
  if (!session) return NotOpen();
  TRY(CheckDriver());
  unsigned count = 0;
  const abi::Return answer = session->nvml->count(&count);
  if (answer == abi::kDriverNotLoaded)
    return Error(Code::kNotFound, "the NVIDIA driver was unloaded");
  if (answer != abi::kSuccess) return Gone(ToError(answer, session->nvml->count.name));
  if (count > kMaxGpus)
    return Error(Code::kInternal, "the NVIDIA driver reports " + std::to_string(count) + " GPUs");
  std::vector<std::string> addresses;
  for (unsigned index = 0; index < count; ++index) addresses.push_back(std::to_string(index));
  std::erase_if(session->gpus, [count](const auto& gpu) {
    return base::ParseUint(gpu.first).value_or(count) >= count;
  });
  session->events->Expect(count);
  return addresses;
}

/// Looks up a handle by address; on failure `answer` is the reason.
Result<abi::Device> FindHandle(const Session& session, const std::string& address,
                               abi::Return& answer) {
  const auto index = base::ParseUint(address);
  if (!index || *index >= kMaxGpus)
    return Error(Code::kInvalidArgument, "\"" + address + "\" is not a GPU index");
  abi::Device handle = nullptr;
  answer = session.nvml->handle_by_index(static_cast<unsigned>(*index), &handle);
  if (answer == abi::kSuccess && handle != nullptr) return handle;
  const Error error = ToError(answer, session.nvml->handle_by_index.name);
  if (IsDriverGone(answer))
    return Error(Code::kUnavailable, "the NVIDIA driver is gone: " + error.message());
  if (answer == abi::kInvalidArgument || answer == abi::kNotFound)
    return Error(Code::kNotFound, "there is no GPU " + address);
  return Error(Code::kDataLoss, "GPU " + address + " does not answer: " + error.message());
}

/// Looks a MIG device up on its GPU: by its UUID alone, the library would ask all GPUs, of which
/// another one may be lost. kNotFound: it is not what was described any more.
Result<abi::Device> FindMigDevice(const Session& session, const std::string& uuid,
                                  abi::Return& answer) {
  const Error none{Code::kNotFound, "no GPU has the part " + uuid};
  const Gpu* gpu = session.GpuOf(uuid);
  if (gpu == nullptr) return none;
  const auto device = std::ranges::find(gpu->mig.devices, uuid, &MigDevice::uuid);
  abi::Device handle = nullptr;
  std::array<char, abi::kUuidLength + 1> found{};
  answer =
      session.nvml->mig_device_by_index(gpu->handle, static_cast<unsigned>(device->index), &handle);
  if (answer == abi::kSuccess) answer = session.nvml->uuid(handle, found.data(), abi::kUuidLength);
  if (answer == abi::kSuccess && uuid == found.data()) return handle;
  if (answer == abi::kSuccess || answer == abi::kNotFound || answer == abi::kInvalidArgument)
    return none;
  const std::string what = ToError(answer, session.nvml->mig_device_by_index.name).message();
  if (IsDriverGone(answer)) return Error(Code::kUnavailable, "the NVIDIA driver is gone: " + what);
  return Error(Code::kDataLoss, "MIG device " + uuid + " does not answer: " + what);
}

bool InMigMode(const device::Facts& gpu) {
  return std::ranges::any_of(gpu.modes, [](const device::Mode& mode) {
    return mode.name == "mig" && mode.current == "enabled";
  });
}

Result<device::Facts> NvidiaBackend::Describe(const std::string& address) {
  const auto session = Current();
  if (!session) return NotOpen();
  if (const auto part = ParseGpuInstance(address)) {
    const auto gpu = session->gpus.find(part->gpu);
    if (gpu == session->gpus.end()) return NoPart(address);
    return GpuInstanceFacts(gpu->second.mig, gpu->second.facts, *part);
  }
  if (IsMigDevice(address)) {
    const Gpu* gpu = session->GpuOf(address);
    return gpu == nullptr ? NoPart(address) : MigDeviceFacts(gpu->mig, files_, gpu->facts, address);
  }
  abi::Return answer = abi::kSuccess;
  ASSIGN(const abi::Device handle, FindHandle(*session, address, answer));
  ASSIGN(device::Facts facts, GatherFacts(session->nvml, files_, handle, address));
  Mig mig;
  if (!facts.modes.empty()) mig = ReadMigProfiles(session->nvml, handle, facts.memory);
  auto changeable = Changeable(session->nvml, handle, mig);
  if (!changeable.ok())
    return Error(Code::kDataLoss, "GPU " + address + " does not say how it is divided: " +
                                      changeable.error().message());
  ReadComputePlacements(session->nvml, handle, mig);
  facts.parts = mig.Addresses(address);
  if (!facts.parts.empty()) facts.withheld.clear();  // the inventory says that it is divided
  if (!facts.withheld.empty() && !mig.permitted)
    facts.withheld = "MIG mode is enabled, and this process may not list the MIG devices";
  facts.profiles = mig.profiles;
  Gpu& gpu = session->gpus[address];
  // In another mode the device answers other calls.
  if (gpu.id != facts.id || gpu.changeable != *changeable) {
    session->sampling->Forget(address);
    for (const MigDevice& device : gpu.mig.devices) session->sampling->Forget(device.uuid);
    for (const GpuInstance& instance : gpu.mig.instances)
      session->sampling->Forget(address + "/" + std::to_string(instance.id));
  }
  gpu = {handle,
         facts.id,
         facts.pci,
         CountLanes(session->nvml, files_, handle),
         facts,
         std::move(mig),
         *std::move(changeable)};
  facts.links = GatherLinks(session->nvml, gpu, session->gpus);
  session->events->Register(handle, facts.id);
  return facts;
}

Result<device::Reading> NvidiaBackend::Read(const std::string& address) {
  const auto session = Current();
  if (!session) return NotOpen();
  if (ParseGpuInstance(address) || IsMigDevice(address)) return ReadPart(*session, address);
  const auto known = session->gpus.find(address);
  const std::string id = known != session->gpus.end() ? known->second.id : "";
  abi::Return answer = abi::kSuccess;
  const auto handle = FindHandle(*session, address, answer);
  if (handle.ok()) {
    const bool in_mig_mode = known != session->gpus.end() && InMigMode(known->second.facts);
    ASSIGN(device::Reading reading, TakeReading(session->nvml, *handle, id, in_mig_mode));
    if (reading.reachable && known != session->gpus.end()) {
      Mig now = known->second.mig;
      const auto changeable = Changeable(session->nvml, *handle, now);
      reading.facts_changed = changeable.ok() && *changeable != known->second.changeable;
    }
    return reading;
  }
  // A lost GPU may show only here.
  if (handle.error().code() == Code::kDataLoss)
    return Unreachable(answer, session->nvml->handle_by_index.name, id);
  return handle.error();
}

/// A GPU instance that is no MIG device has no handle: what is wrong with it shows on its GPU.
Result<device::Reading> NvidiaBackend::ReadPart(const Session& session,
                                                const std::string& address) const {
  if (const auto instance = ParseGpuInstance(address)) {
    const auto gpu = session.gpus.find(instance->gpu);
    if (gpu == session.gpus.end()) return NoPart(address);
    TRY(GpuInstanceFacts(gpu->second.mig, gpu->second.facts, *instance));
    return device::Reading{.reports_recovery = true};
  }
  abi::Return answer = abi::kSuccess;
  const auto handle = FindMigDevice(session, address, answer);
  if (handle.ok()) return TakeMigReading(session.nvml, *handle, address);
  if (handle.error().code() == Code::kDataLoss)
    return Unreachable(answer, session.nvml->mig_device_by_index.name, address);
  return handle.error();
}

Result<device::Sample> NvidiaBackend::TakeSample(const std::string& address,
                                                 const device::SampleRequest& request) {
  const auto session = Current();
  if (!session) return NotOpen();
  const auto instance = ParseGpuInstance(address);
  if (instance || IsMigDevice(address)) return SamplePart(*session, address, instance, request);
  abi::Return answer = abi::kSuccess;
  ASSIGN(const abi::Device handle, FindHandle(*session, address, answer));
  const auto known = session->gpus.find(address);
  const bool in_mig_mode = known != session->gpus.end() && InMigMode(known->second.facts);
  return session->sampling->Take(handle, address, request,
                                 in_mig_mode ? ProcessesOf::kGpuAlone : ProcessesOf::kDevice);
}

/// A GPU instance that is no MIG device is measured through one of the devices on it; one without
/// any runs nothing, and NVML has nothing of it.
Result<device::Sample> NvidiaBackend::SamplePart(const Session& session, const std::string& address,
                                                 const std::optional<GpuInstanceAddress>& instance,
                                                 const device::SampleRequest& request) {
  const auto known = instance ? session.gpus.find(instance->gpu) : session.gpus.end();
  const Gpu* gpu = !instance                     ? session.GpuOf(address)
                   : known != session.gpus.end() ? &known->second
                                                 : nullptr;
  if (gpu == nullptr) return NoPart(address);
  if (instance) TRY(GpuInstanceFacts(gpu->mig, gpu->facts, *instance));
  const auto device = std::ranges::find_if(gpu->mig.devices, [&](const MigDevice& one) {
    return instance ? one.gpu_instance == instance->instance : one.uuid == address;
  });
  if (device == gpu->mig.devices.end()) return device::Sample{.unsupported = request.quantities};
  abi::Return answer = abi::kSuccess;
  ASSIGN(const abi::Device handle, FindMigDevice(session, device->uuid, answer));
  const bool measured = instance || device->fills_its_gpu_instance();
  return session.sampling->Take(
      {.device = handle,
       .gpu = gpu->handle,
       .gpu_instance = measured ? std::optional(device->gpu_instance) : std::nullopt,
       .has_processes = !instance},
      address, request);
}

/// The GPU with this address, as it is divided now, so that calls about its parts are not about
/// those that it had when it was described.
Result<Gpu> FindGpu(const Session& session, const std::string& address) {
  const auto known = session.gpus.find(address);
  if (known == session.gpus.end())
    return Error(Code::kNotFound, "there is no GPU " + address + " that was described");
  Gpu gpu = known->second;
  abi::Return answer = abi::kSuccess;
  ASSIGN(gpu.handle, FindHandle(session, address, answer));
  std::array<char, abi::kUuidLength + 1> uuid{};
  if (session.nvml->uuid(gpu.handle, uuid.data(), abi::kUuidLength) == abi::kSuccess &&
      gpu.id != uuid.data())
    return Error(Code::kNotFound, "GPU " + address + " is another one now");
  TRY(ReadMigParts(session.nvml, gpu.handle, gpu.mig));
  return gpu;
}

base::Status NvidiaBackend::SetMode(const std::string& address, const std::string& mode,
                                    const std::string& value) {
  const auto session = Current();
  if (!session) return NotOpen();
  if (mode != "mig") return Error(Code::kUnimplemented, "GPUs have no mode \"" + mode + "\"");
  ASSIGN(const Gpu gpu, FindGpu(*session, address));
  return SetMigMode(session->nvml, gpu, value);
}

Result<std::string> NvidiaBackend::CreatePart(const std::string& device,
                                              const device::NewPart& part) {
  const auto session = Current();
  if (!session) return NotOpen();
  ASSIGN(const Gpu gpu, FindGpu(*session, device));
  return CreateMigPart(session->nvml, gpu, part);
}

base::Status NvidiaBackend::DestroyPart(const std::string& address) {
  const auto session = Current();
  if (!session) return NotOpen();
  std::string of;
  if (const auto instance = ParseGpuInstance(address))
    of = instance->gpu;
  else if (const Gpu* gpu = session->GpuOf(address))
    of = gpu->facts.address;
  if (of.empty()) return NoPart(address);
  ASSIGN(const Gpu gpu, FindGpu(*session, of));
  return DestroyMigPart(session->nvml, gpu, address);
}

Result<std::vector<device::Evidence>> NvidiaBackend::Wait(std::chrono::milliseconds most) {
  const auto session = Current();
  if (!session) return NotOpen();
  return session->events->Wait(most);
}

}  // namespace

std::unique_ptr<device::Backend> MakeBackend(const device::Paths& paths) {
  return std::make_unique<NvidiaBackend>(paths);
}

}  // namespace penstock::backend::nvidia
