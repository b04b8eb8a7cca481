#include "sim/control.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <unistd.h>

#include "base/core/strings.h"
#include "sim/compile.h"
#include "sim/meters.h"
#include "sim/mig.h"
#include "sim/mig_files.h"
#include "sim/workload.h"
#include "sim/xid.h"

namespace penstock::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kEventSingleBit = 0x1, kEventDoubleBit = 0x2, kEventRemap = 0x400,
                        kEventRemapFailure = 0x800;

struct Action {
  std::uint32_t number;
  const char *name, *text;
};
constexpr Action kActions[] = {{0, "none", "None"},
                               {1, "gpu-reset", "GPU Reset Required"},
                               {2, "node-reboot", "Node Reboot Required"},
                               {3, "drain-p2p", "Drain P2P"},
                               {4, "drain-and-reset", "Drain and Reset"},
                               {5, "recover-imex-domain", "Recover IMEX Domain"},
                               {6, "bus-reset", "Bus Reset"},
                               {7, "system-reboot", "System Reboot"}};

base::Status WriteText(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return base::ErrnoError(errno, "write " + path);
  return {};
}

/// Whether the driver's files are somewhere else than below the root.
base::Status PutFilesElsewhere(const std::string& root, bool elsewhere) {
  const std::string mark = root + "/" + kFilesElsewhere;
  if (elsewhere) return WriteText(mark, "");
  std::error_code error;
  fs::remove(mark, error);
  return error ? base::ErrnoError(error.value(), "remove " + mark) : base::Status();
}

// Checks that the folder may be filled: it is absent or empty.
base::Status CheckRoot(const std::string& root) {
  std::error_code error;
  if (fs::exists(root + "/.penstock-sim", error))
    return Error(Code::kAlreadyExists, "a simulated machine already exists at " + root +
                                           "; stop it (penstock-sim stop --root " + root +
                                           ") or start with --replace");
  if (!fs::exists(root, error)) {
    fs::create_directories(root, error);
    if (error) return base::ErrnoError(error.value(), "create " + root);
    return {};
  }
  if (!fs::is_directory(root, error))
    return Error(Code::kFailedPrecondition, root + " is not a folder");
  if (!fs::is_empty(root, error))
    return Error(Code::kFailedPrecondition,
                 root + " holds other files; pass an empty or new folder as --root");
  return {};
}

}  // namespace

std::uint64_t NowMicroseconds() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

std::optional<std::uint32_t> RecoveryActionNumber(const std::string& name) {
  for (const Action& action : kActions)
    if (name == action.name) return action.number;
  return std::nullopt;
}

std::vector<std::string> RecoveryActionNames() {
  std::vector<std::string> names;
  for (const Action& action : kActions) names.emplace_back(action.name);
  return names;
}

std::string RecoveryActionText(std::uint32_t action) {
  return action < std::size(kActions) ? kActions[action].text : "Unknown";
}

// The state file, by which the library finds the machine, is written last.
base::Result<Control> Control::Build(const std::string& root, const Assets& assets,
                                     const LoadedMachine& machine, SimState& state) {
  ASSIGN(const std::string models, ReadText(assets.share_folder + "/models/nvidia.yaml"));
  TRY(WriteText(root + "/.penstock-sim/models.yaml", models));
  TRY(WriteText(root + "/.penstock-sim/machine.yaml", machine.text));
  ASSIGN(const TreeReport report, SyncTree(root, assets, state));
  // The machine's clock starts at the wall clock's time and is then independent of it, so that
  // setting the time does not change what GPUs count.
  const auto wall = std::chrono::duration_cast<std::chrono::microseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
  state.clock_ahead = wall - static_cast<std::int64_t>(NowMicroseconds());
  for (SimGpu& gpu : state.gpus) {
    SimZeroMeters(&gpu, SimNow(&state, NowMicroseconds()));
    Follow(gpu);
  }
  ASSIGN(StateFile file, StateFile::Create(root, state));
  TRY(NameState(root, state));
  Control control(root, assets, std::move(file));
  control.report_ = report;
  return control;
}

base::Result<Control> Control::Start(const std::string& root, const Assets& assets,
                                     const Catalogue& catalogue, const LoadedMachine& machine,
                                     const StartOptions& options) {
  TRY(CheckRoot(root));
  SimState state;
  Compile(machine.machine, catalogue, {options.driver, options.no_driver, options.seed}, state);
  std::error_code error;
  fs::create_directories(root + "/.penstock-sim", error);
  if (error) return base::ErrnoError(error.value(), "create " + root + "/.penstock-sim");
  auto control = Build(root, assets, machine, state);
  if (!control.ok()) (void)RemoveTree(root);  // leave nothing half built
  return control;
}

base::Result<Control> Control::Open(const std::string& root, const Assets& assets) {
  ASSIGN(StateFile file, StateFile::Open(root));
  return Control(root, assets, std::move(file));
}

base::Result<std::vector<std::uint32_t>> Control::Find(const std::string& target) const {
  const SimState& now = state();
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < now.gpu_count; i++) {
    const SimGpu& gpu = now.gpus[i];
    const std::string address = ToString(PciAddress{gpu.domain, gpu.bus, gpu.device});
    if (target == "all" || target == std::to_string(i) || target == gpu.uuid ||
        base::ToLower(target) == address)
      found.push_back(i);
  }
  if (!found.empty() || (target == "all" && now.gpu_count == 0)) return found;
  const std::string there = now.gpu_count == 0   ? "none"
                            : now.gpu_count == 1 ? "only GPU 0"
                                                 : "GPUs 0 to " + std::to_string(now.gpu_count - 1);
  return Error(Code::kNotFound, "unknown GPU \"" + target + "\": this machine has " + there +
                                    "; use a number, UUID or PCI address, or all");
}

base::Status Control::Sync() {
  auto report = SyncTree(root_, assets_, file_.state());
  if (!report.ok()) return report.error();
  report_ = *report;
  return SyncInstances();
}

// Under the lock, because programs create instances at any time.
base::Status Control::SyncInstances() {
  ASSIGN(StateFile::Change change, file_.Begin());
  for (std::uint32_t i = 0; i < change->gpu_count; i++)
    SimSyncInstanceFiles(root_.c_str(), &*change, &change->gpus[i]);
  return {};
}

base::Status Control::LogXid(StateFile::Change& change, std::uint32_t gpu, std::uint32_t xid,
                             const std::string& text, const XidInstance& instance) {
  SimGpu& device = change->gpus[gpu];
  char address[32];
  std::snprintf(address, sizeof address, "%04x:%02x:%02x", device.domain, device.bus,
                device.device);
  if (!device.announced) {
    device.announced = 1;
    TRY(AppendKernelLog(root_, std::string("NVRM: GPU at PCI:") + address + ": " + device.uuid));
  }
  return AppendKernelLog(root_, XidLine(*change, device, xid, text, instance));
}

base::Status Control::ChangeAction(StateFile::Change& change, std::uint32_t gpu,
                                   std::uint32_t action, bool log, bool event) {
  SimGpu& device = change->gpus[gpu];
  const std::uint32_t before = device.recovery_action;
  device.recovery_action = action;
  // Drivers before 565 do not report a recovery action.
  if (before == action || change->driver_branch < 565) return {};
  char text[160];
  std::snprintf(text, sizeof text, "GPU recovery action changed from 0x%x (%s) to 0x%x (%s)",
                before, RecoveryActionText(before).c_str(), action,
                RecoveryActionText(action).c_str());
  if (log) TRY(LogXid(change, gpu, 154, text));
  if (event) change.AddEvent(gpu, kEventRecoveryAction, 0);
  return {};
}

void Control::MarkLost(StateFile::Change& change, std::uint32_t gpu, std::uint32_t where,
                       bool event) {
  change->gpus[gpu].lost = where;
  if (event && change->driver_branch >= 565) change.AddEvent(gpu, kEventUnavailable, 0);
}

base::Status Control::Xid(std::uint32_t gpu, std::uint32_t xid, const XidOptions& options) {
  ASSIGN(StateFile::Change change, file_.Begin());
  SimGpu& device = change->gpus[gpu];
  // A driver logs what it has found.
  if (options.consequences && xid == 79)
    MarkLost(change, gpu, kSimLostInHandle | kSimLostInGetter, false);
  if (options.log)
    TRY(LogXid(change, gpu, xid, options.text.empty() ? XidText(xid) : options.text,
               options.instance));
  const std::uint32_t instance = (options.instance.gpu ? *options.instance.gpu + 1 : 0) |
                                 (options.instance.compute ? *options.instance.compute + 1 : 0)
                                     << 16;
  if (options.event)
    for (const XidEvent& event : XidEvents(change->driver_branch, xid))
      change.AddEvent(gpu, event.type, event.data, instance);
  if (!options.consequences) return {};
  if (xid == 48) device.ecc_volatile.count[1][1]++, device.ecc_aggregate.count[1][1]++;
  if (xid == 63 && device.has_remapper) device.remap_pending = 1;
  if (xid == 64 && device.has_remapper) device.remap_failure = 1;
  if (const auto action = XidRecoveryAction(change->driver_branch, xid))
    return ChangeAction(change, gpu, *action, options.log, options.event);
  return {};
}

base::Status Control::CheckEcc(std::uint32_t gpu) const {
  const SimGpu& device = state().gpus[gpu];
  if (device.ecc_current == 1) return {};
  return Error(Code::kFailedPrecondition,
               "GPU " + std::to_string(gpu) + " (" + device.name + ") has no ECC");
}

base::Status Control::CheckRemap(std::uint32_t gpu) const {
  const SimGpu& device = state().gpus[gpu];
  if (device.has_remapper || device.has_retirement) return {};
  return Error(Code::kFailedPrecondition, "GPU " + std::to_string(gpu) + " (" + device.name +
                                              ") neither remaps rows nor retires pages");
}

base::Status Control::EccErrors(std::uint32_t gpu, std::uint64_t count, bool corrected) {
  TRY(CheckEcc(gpu));
  ASSIGN(StateFile::Change change, file_.Begin());
  SimGpu& device = change->gpus[gpu];
  device.ecc_volatile.count[corrected ? 0 : 1][1] += count;
  device.ecc_aggregate.count[corrected ? 0 : 1][1] += count;
  change.AddEvent(gpu, corrected ? kEventSingleBit : kEventDoubleBit, 0);
  return {};
}

base::Status Control::Remap(std::uint32_t gpu, bool failure) {
  TRY(CheckRemap(gpu));
  ASSIGN(StateFile::Change change, file_.Begin());
  SimGpu& device = change->gpus[gpu];
  const std::uint32_t xid = failure ? 64 : 63;
  TRY(LogXid(change, gpu, xid, XidText(xid)));
  for (const XidEvent& event : XidEvents(change->driver_branch, xid))
    change.AddEvent(gpu, event.type, event.data);
  if (!device.has_remapper) {
    device.retired_double++;
    device.retire_pending = 1;
    return {};
  }
  if (failure)
    device.remap_failure = 1;
  else
    device.remap_pending = 1, device.remapped_uncorrectable++;
  if (change->driver_branch >= 550)
    change.AddEvent(gpu, failure ? kEventRemapFailure : kEventRemap, 0);
  if (const auto action = XidRecoveryAction(change->driver_branch, xid))
    return ChangeAction(change, gpu, *action, true, true);
  return {};
}

base::Status Control::Lose(std::uint32_t gpu, std::uint32_t where) {
  ASSIGN(StateFile::Change change, file_.Begin());
  const SimGpu& device = change->gpus[gpu];
  MarkLost(change, gpu, where, true);
  TRY(AppendKernelLog(root_, "NVRM: GPU " +
                                 ToString(PciAddress{device.domain, device.bus, device.device}) +
                                 ": GPU has fallen off the bus."));
  return ChangeAction(change, gpu, 1, true, true);
}

base::Status Control::Unplug(std::uint32_t gpu) {
  {
    ASSIGN(StateFile::Change change, file_.Begin());
    change->gpus[gpu].removed = 1;
    change->gpus[gpu].process_count = 0;
    SimForgetMig(&change->gpus[gpu]);
  }
  return Sync();
}

base::Status Control::SetRecoveryAction(std::uint32_t gpu, std::uint32_t action) {
  ASSIGN(StateFile::Change change, file_.Begin());
  return ChangeAction(change, gpu, action, true, true);
}

base::Status Control::UnloadDriver() {
  {
    ASSIGN(StateFile::Change change, file_.Begin());
    change->loaded = 0;
    for (SimGpu& gpu : change->gpus) SimForgetMig(&gpu);
  }
  return Sync();
}

base::Status Control::UninstallDriver() {
  TRY(PutFilesElsewhere(root_, true));
  return UnloadDriver();
}

base::Status Control::MismatchDriver(const std::string& library_version) {
  {
    ASSIGN(StateFile::Change change, file_.Begin());
    if (!change->driver_version[0])
      return Error(Code::kFailedPrecondition, "this machine has no driver");
    std::string version = library_version;
    if (version.empty()) {
      // Simulates the result of an unattended upgrade: the next patch of the library beside the old
      // module.
      auto parts = base::Split(change->driver_version, '.');
      parts.back() = std::to_string(base::ParseUint(parts.back()).value_or(0) + 1);
      if (parts.back().size() < 2) parts.back().insert(0, "0");
      version = base::Join(parts, ".");
    }
    std::memset(change->library_version, 0, sizeof change->library_version);
    std::memcpy(change->library_version, version.data(),
                std::min(version.size(), sizeof change->library_version - 1));
  }
  return Sync();
}

base::Status Control::LoadDriver(const std::string& version, bool module_only) {
  const std::string models_path = root_ + "/.penstock-sim/models.yaml",
                    machine_path = root_ + "/.penstock-sim/machine.yaml";
  ASSIGN(const std::string models, ReadText(models_path));
  ASSIGN(const Catalogue catalogue, ReadCatalogue(models, models_path));
  ASSIGN(const std::string text, ReadText(machine_path));
  ASSIGN(const Machine machine, ReadMachine(text, machine_path, catalogue));
  std::string wanted = !version.empty() ? version : state().driver_version;
  if (wanted.empty()) wanted = machine.driver;
  if (wanted.empty()) return {};  // the machine never had a driver
  {
    ASSIGN(StateFile::Change change, file_.Begin());
    const bool same = change->loaded && wanted == change->driver_version;
    if (!same) {
      change->load_count++;
      for (SimGpu& gpu : change->gpus) {
        gpu.announced = 0;
        gpu.ecc_volatile = {};
        SimForgetMig(&gpu);
        SimZeroMeters(&gpu, SimNow(&*change, NowMicroseconds()));
      }
    }
    ApplyDriver(machine, catalogue, wanted, *change);
    change->loaded = 1;
  }
  TRY(PutFilesElsewhere(root_, module_only));
  return Sync();
}

base::Status Control::HealGpu(std::uint32_t gpu) {
  {
    ASSIGN(StateFile::Change change, file_.Begin());
    SimGpu& device = change->gpus[gpu];
    if (device.removed) SimZeroMeters(&device, SimNow(&*change, NowMicroseconds()));
    device.removed = device.lost = 0;
    device.nonsense = device.junk_process_samples = 0;
    device.recovery_action = 0;
    device.ecc_volatile = device.ecc_aggregate = {};
    device.sram_threshold_exceeded = 0;
    device.remapped_correctable = device.remapped_uncorrectable = device.remap_pending =
        device.remap_failure = 0;
    device.retired_single = device.retired_double = device.retire_pending = 0;
    for (SimFault& fault : change->faults)
      if (fault.gpu == static_cast<std::int32_t>(gpu)) fault = {};
    // Counted faults free their own slot, so the number is counted again.
    change->fault_count = static_cast<std::uint32_t>(
        std::count_if(std::begin(change->faults), std::end(change->faults),
                      [](const SimFault& fault) { return fault.mode != kSimFaultNone; }));
  }
  return Sync();
}

}  // namespace penstock::sim
