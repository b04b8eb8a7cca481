// Keeps one supervisor per desired set and publishes the state of each device. supervisor.h has the
// life of a single set.
#include "backend/nvidia/mps/service.h"

#include <algorithm>
#include <charconv>
#include <list>

#include "backend/nvidia/mps/supervisor.h"
#include "base/core/strings.h"

namespace penstock::backend::nvidia {
namespace {

using device::Isolation;
using device::SharedDevice;
using device::SharedDevices;
using device::SharedSet;

/// The first compute capability whose GPUs enforce limits on clients (NVIDIA's MPS manual, "Volta
/// MPS").
constexpr double kFirstWithLimits = 7.0;

double ComputeCapability(const device::Facts& device) {
  double version = 0;
  const std::string& text = device.architecture_version;
  std::from_chars(text.data(), text.data() + text.size(), version, std::chars_format::fixed);
  return version;
}

class MpsService final : public device::SharingService {
 public:
  MpsService(os::Loop& loop, MpsOptions options)
      : loop_(loop), options_(std::move(options)), since_(loop.clock().Now()) {}

  void Want(std::vector<SharedSet> sets) override;
  void SetDriverRoot(const std::string& root) override;
  base::Published<SharedDevices>& published() override { return published_; }
  void EndIdle() override;

 private:
  using Supervisors = std::list<std::unique_ptr<mps::Supervisor>>;
  struct Wanted {
    SharedSet set;
    mps::ServerSpec spec;  // of the set; there can be one set for each MIG device
  };

  void FindEarlier();
  void Reconcile();
  void Publish();
  const mps::Supervisor* Of(const mps::ServerSpec& spec) const;
  const mps::Supervisor* Conflicting(const mps::ServerSpec& spec) const;
  SharedDevice Describe(const Wanted& wanted, std::size_t member) const;
  void Serve(const mps::Supervisor& supervisor, const SharedSet& set, std::size_t member,
             SharedDevice& device) const;
  void AddEdits(const SharedSet& set, bool own_shm, SharedDevice& device) const;
  void Add(mps::ServerSpec spec);

  os::Loop& loop_;
  MpsOptions options_;
  const base::TimePoint since_;
  bool searched_ = false;
  std::vector<Wanted> wanted_;
  Supervisors supervisors_;
  base::Published<SharedDevices> published_;
};

void MpsService::Want(std::vector<SharedSet> sets) {
  wanted_.clear();
  for (SharedSet& set : sets) {
    if (set.members.empty()) continue;
    mps::ServerSpec spec = mps::SpecOf(set);
    wanted_.push_back({std::move(set), std::move(spec)});
  }
  if (!std::exchange(searched_, true)) FindEarlier();
  Reconcile();
}

void MpsService::SetDriverRoot(const std::string& root) {
  options_.driver_root = root;
  for (const auto& supervisor : supervisors_) supervisor->SetDriverRoot(root);
}

void MpsService::Add(mps::ServerSpec spec) {
  supervisors_.push_back(
      std::make_unique<mps::Supervisor>(loop_, options_, std::move(spec), [this] { Reconcile(); }));
  supervisors_.back()->Begin();
}

// Adds the sets that a previous agent started, desired or not.
void MpsService::FindEarlier() {
  for (mps::ServerSpec& spec : mps::ReadNotes(options_.root)) Add(std::move(spec));
}

/// Servers found running are kept for a while: a new agent first has to learn which sets are
/// desired.
void MpsService::Reconcile() {
  supervisors_.remove_if([](const auto& supervisor) { return supervisor->ended(); });
  const base::Duration settle =
      std::max<base::Duration>(since_ + options_.settle - loop_.clock().Now(), base::Duration{});
  for (const auto& supervisor : supervisors_) {
    const auto same = [&](const Wanted& one) { return one.spec == supervisor->spec(); };
    if (std::ranges::none_of(wanted_, same))
      supervisor->End(settle);
    else
      (void)supervisor->Keep();
  }
  for (const Wanted& one : wanted_)
    if (Of(one.spec) == nullptr && Conflicting(one.spec) == nullptr) Add(one.spec);
  Publish();
}

// This service's loop ends with the agent, so the work runs on a loop of its own, in a service that
// finds the servers as the next agent would.
void MpsService::EndIdle() {
  wanted_.clear();
  supervisors_.clear();
  searched_ = false;
  MpsOptions options = options_;
  options.settle = {};
  options.poll_often = std::min<base::Duration>(options.poll_often, std::chrono::milliseconds(100));
  os::Loop loop("mps-ending");
  MpsService ending(loop, std::move(options));
  ending.Want({});
  const auto only_busy = [&ending] {
    return std::ranges::all_of(
        ending.supervisors_, [](const auto& supervisor) { return supervisor->view().clients > 0; });
  };
  const base::Subscription news = ending.published().Subscribe([&](const auto&) {
    if (only_busy()) loop.Stop();
  });
  loop.PostAfter(options_.end_deadline, [&loop] { loop.Stop(); });
  if (!only_busy()) loop.Run();
  published_.Set(ending.published().Get());
}

const mps::Supervisor* MpsService::Of(const mps::ServerSpec& spec) const {
  const auto at =
      std::ranges::find_if(supervisors_, [&](const auto& one) { return one->spec() == spec; });
  return at == supervisors_.end() ? nullptr : at->get();
}

// A set that has not ended yet and has the same folder or one of the same GPUs.
const mps::Supervisor* MpsService::Conflicting(const mps::ServerSpec& spec) const {
  const std::string folder = mps::FoldersOf(options_.root, spec.set).all;
  for (const auto& supervisor : supervisors_) {
    if (mps::FoldersOf(options_.root, supervisor->spec().set).all == folder)
      return supervisor.get();
    for (const mps::ServerSpec::Gpu& gpu : supervisor->spec().gpus)
      for (const mps::ServerSpec::Gpu& wanted : spec.gpus)
        if (wanted.id == gpu.id) return supervisor.get();
  }
  return nullptr;
}

void MpsService::Publish() {
  SharedDevices devices;
  for (const Wanted& one : wanted_)
    for (std::size_t i = 0; i < one.set.members.size(); ++i)
      devices[one.set.members[i].device->id] = Describe(one, i);
  // Also sets that are ending: until they have ended, their devices may have clients.
  for (const auto& supervisor : supervisors_) {
    for (const mps::ServerSpec::Gpu& gpu : supervisor->spec().gpus) {
      const auto [at, fresh] = devices.try_emplace(gpu.id);
      at->second.servers.insert(at->second.servers.end(), supervisor->view().servers.begin(),
                                supervisor->view().servers.end());
      if (!fresh) continue;
      at->second.set = supervisor->spec().set;
      at->second.clients = supervisor->view().clients;
      at->second.reason = "its MPS server is no longer needed and exits with its last client";
    }
  }
  if (devices != *published_.Get()) published_.Set(std::move(devices));
}

SharedDevice MpsService::Describe(const Wanted& wanted, std::size_t member) const {
  SharedDevice device;
  device.set = wanted.set.name;
  if (const mps::Supervisor* own = Of(wanted.spec); own != nullptr) {
    Serve(*own, wanted.set, member, device);
    return device;
  }
  AddEdits(wanted.set, options_.own_shm, device);
  if (const mps::Supervisor* other = Conflicting(wanted.spec); other != nullptr) {
    device.clients = other->view().clients;
    device.reason = "its MPS server still has its previous settings (" + other->spec().set + ", " +
                    std::to_string(other->view().clients) +
                    " clients) and is replaced when its last client has exited";
  }
  return device;
}

// The state of the set's server, as far as it concerns this device.
void MpsService::Serve(const mps::Supervisor& supervisor, const SharedSet& set, std::size_t member,
                       SharedDevice& device) const {
  const mps::View& view = supervisor.view();
  AddEdits(set, view.ready ? view.own_shm : options_.own_shm, device);
  device.ready = view.ready;
  device.reason = view.reason;
  device.clients = view.clients;
  if (!view.ready) return;
  std::vector<std::string> remarks = view.remarks;
  const base::Bytes requested = supervisor.spec().gpus[member].memory, held = view.memory[member];
  const bool holds = ComputeCapability(*set.members[member].device) >= kFirstWithLimits;
  if (!holds) {
    remarks.emplace_back(
        "MPS does not enforce limits on this model (compute capability 7.0 is required)");
  } else {
    device.memory = held;
    device.compute_percent = view.percentage;
    if (held != requested)
      remarks.push_back("MPS of this driver does not enforce the memory limit of " +
                        base::FormatBytes(requested) + " that was requested");
    else if (view.exclusive[member])
      device.isolation = Isolation::kMemoryPerProcess;
  }
  device.reason = base::Join(remarks, "; ");
}

void MpsService::AddEdits(const SharedSet& set, bool own_shm, SharedDevice& device) const {
  static constexpr const char* kVariable = "CUDA_MPS_PIPE_DIRECTORY";
  const mps::Folders host = mps::FoldersOf(options_.host_root, set.name);
  const std::string inside = "/mps/" + set.name + "/pipe";
  const std::string shm = own_shm ? host.shm : "/dev/shm";
  device.container.environment[kVariable] = inside;
  device.container.mounts = {{inside, host.pipe, true}, {"/dev/shm", shm, false}};
  device.process.environment[kVariable] = host.pipe;
  // A process without a mount namespace of its own cannot get this mount, and cannot use this
  // server.
  if (own_shm) device.process.mounts = {{"/dev/shm", shm, false}};
}

}  // namespace

std::unique_ptr<device::SharingService> MakeMpsService(os::Loop& control, MpsOptions options) {
  return std::make_unique<MpsService>(control, std::move(options));
}

std::unique_ptr<device::SharingService> MakeSharingService(os::Loop& control,
                                                           const device::ServerOptions& options) {
  return MakeMpsService(control, {.driver_root = options.driver_root,
                                  .root = options.root,
                                  .host_root = options.host_root,
                                  .proc_root = options.proc_root,
                                  .own_shm = options.for_containers,
                                  .launcher = options.launcher});
}

bool IsServer(const std::string& proc_root, const os::ProcessInfo& process) {
  return mps::IsServer(proc_root, process);
}

std::string_view HealthSocket() { return ""; }

}  // namespace penstock::backend::nvidia
