// The operations on a running simulated machine: settings, faults, healing. Each changes the state,
// the file tree and the kernel log together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "sim/files/assets.h"
#include "sim/files/tree.h"
#include "sim/state_file.h"
#include "sim/xid.h"

namespace penstock::sim {

/// A started machine under a root.
class Control {
 public:
  struct StartOptions {
    std::string driver, seed;
    bool no_driver = false;
  };
  /// Builds the tree and the state. Returns kAlreadyExists if the folder contains a machine,
  /// kFailedPrecondition if it contains anything else.
  static base::Result<Control> Start(const std::string& root, const Assets& assets,
                                     const Catalogue& catalogue, const LoadedMachine& machine,
                                     const StartOptions& options);
  static base::Result<Control> Open(const std::string& root, const Assets& assets);

  const SimState& state() const { return file_.state(); }
  const TreeReport& tree() const { return report_; }

  /// Returns the slots of "3", "all", a UUID or a PCI address; kNotFound lists the available GPUs.
  base::Result<std::vector<std::uint32_t>> Find(const std::string& target) const;

  /// Applies "key=value" settings (see `penstock-sim set --help`) to some GPUs: to all of them or,
  /// on an error, to none.
  base::Status Set(const std::vector<std::uint32_t>& gpus,
                   const std::vector<std::string>& settings);

  struct XidOptions {
    std::string text;          // replaces the usual text
    bool log = true;           // writes a line to the kernel log
    bool event = true;         // raises an NVML event, where this driver does
    bool consequences = true;  // also changes the GPU: a lost GPU, counters, the recovery action
    XidInstance instance;      // log line and event name it
  };
  base::Status Xid(std::uint32_t gpu, std::uint32_t xid, const XidOptions& options);
  /// Whether a GPU can have such a fault; kFailedPrecondition says why not.
  base::Status CheckEcc(std::uint32_t gpu) const;
  base::Status CheckRemap(std::uint32_t gpu) const;
  base::Status EccErrors(std::uint32_t gpu, std::uint64_t count, bool corrected);
  base::Status Remap(std::uint32_t gpu, bool failure);
  base::Status Lose(std::uint32_t gpu, std::uint32_t where);
  base::Status Unplug(std::uint32_t gpu);
  base::Status SetRecoveryAction(std::uint32_t gpu, std::uint32_t action);
  /// Adds a fault of a call; gpu -1 is for all GPUs. An empty `function` means every call. Returns
  /// kInvalidArgument for a name that the library does not have.
  base::Status FaultCall(std::int32_t gpu, const std::string& function, std::uint32_t mode,
                         std::uint32_t milliseconds, std::uint32_t code, std::uint32_t count);
  /// The parts of a field value that a fault replaces: the 8 bytes of its value, nvmlReturn_t,
  /// nvmlValueType_t; the others stay.
  struct FieldFault {
    std::optional<std::uint64_t> value;
    std::optional<std::uint32_t> status, type;
  };
  /// Like FaultCall; `field` is the number of an NVML_FI_* field.
  base::Status FaultField(std::int32_t gpu, std::uint32_t field, const FieldFault& what,
                          std::uint32_t count);
  /// Makes a reading return `value`, with success.
  base::Status Nonsense(std::uint32_t gpu, SimReading reading, std::uint64_t value);
  /// Makes process utilization return 100 samples, most of them for no process and with impossible
  /// values, as some drivers did.
  base::Status JunkProcessSamples(std::uint32_t gpu);

  /// The clock from which meters grow and samples get their timestamps: stops, continues from where
  /// it stopped, or moves forward.
  base::Status StopClock();
  base::Status RunClock();
  base::Status AdvanceClock(std::uint64_t microseconds);

  /// Sets the fault of the MPS programs from now on: "hang", "exit", "nonsense", or "" for none.
  base::Status FaultMps(const std::string& fault);
  /// Kills (SIGKILL) the running MPS control daemons of this machine.
  base::Status KillMps();

  base::Status UnloadDriver();

  /// Unloads the driver and removes its files: a machine as it is delivered.
  base::Status UninstallDriver();
  /// Installs another library version than the loaded module has.
  base::Status MismatchDriver(const std::string& library_version);
  /// Installs and loads a driver. `version` empty: the previous one, or the machine file's.
  /// With `module_only` the machine has none of the driver's files, only what the kernel shows: a
  /// container has the files.
  base::Status LoadDriver(const std::string& version, bool module_only = false);

  /// Removes the faults of one GPU, and plugs it in again.
  base::Status HealGpu(std::uint32_t gpu);
  /// Removes the faults of calls on every GPU.
  base::Status HealCalls();

 private:
  Control(std::string root, Assets assets, StateFile file)
      : root_(std::move(root)), assets_(std::move(assets)), file_(std::move(file)) {}
  static base::Result<Control> Build(const std::string& root, const Assets& assets,
                                     const LoadedMachine& machine, SimState& state);
  base::Status Sync();
  base::Status SyncInstances();
  base::Status AddFault(const SimFault& fault);
  base::Status LogXid(StateFile::Change& change, std::uint32_t gpu, std::uint32_t xid,
                      const std::string& text, const XidInstance& instance = {});
  base::Status ChangeAction(StateFile::Change& change, std::uint32_t gpu, std::uint32_t action,
                            bool log, bool event);
  void MarkLost(StateFile::Change& change, std::uint32_t gpu, std::uint32_t where, bool event);

  std::string root_;
  Assets assets_;
  StateFile file_;
  TreeReport report_;
};

/// Kills (SIGKILL) the MPS control daemons of a machine, before its files are removed; their
/// servers exit with the last client.
void EndMps(const std::string& root);

/// Returns CLOCK_MONOTONIC, which no one can set: the argument of SimNow.
std::uint64_t NowMicroseconds();

/// Returns the number of a recovery action's name ("none", "gpu-reset", …), and all names.
std::optional<std::uint32_t> RecoveryActionNumber(const std::string& name);
std::vector<std::string> RecoveryActionNames();
/// Returns the text that nvidia-smi and XID 154 print.
std::string RecoveryActionText(std::uint32_t action);

}  // namespace penstock::sim
