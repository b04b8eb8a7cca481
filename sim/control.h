// What can be done to a running machine: settings, faults, healing. Changes state, tree and kernel log together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "sim/assets.h"
#include "sim/state_file.h"
#include "sim/tree.h"

namespace penstock::sim {

/// A started machine under a root.
class Control {
 public:
  struct StartOptions {
    std::string driver, seed;
    bool no_driver = false;
  };
  /// Builds the tree and the state. kAlreadyExists where a machine is there, kFailedPrecondition for a folder that holds anything else.
  static base::Result<Control> Start(const std::string& root, const Assets& assets, const Catalogue& catalogue,
                                     const LoadedMachine& machine, const StartOptions& options);
  static base::Result<Control> Open(const std::string& root, const Assets& assets);

  const SimState& state() const { return file_.state(); }
  const TreeReport& tree() const { return report_; }

  /// Slots of "3", "all", a UUID or a PCI address; kNotFound with what there is.
  base::Result<std::vector<std::uint32_t>> Find(const std::string& target) const;

  /// "key=value"s (see `penstock-sim set --help`) for some GPUs: all of them or, on an error, none.
  base::Status Set(const std::vector<std::uint32_t>& gpus, const std::vector<std::string>& settings);

  struct XidOptions {
    std::string text;          // instead of the usual one
    bool log = true;           // a line in the kernel log
    bool event = true;         // an NVML event, where this driver raises one
    bool consequences = true;  // a lost GPU, counters, the recovery action
  };
  base::Status Xid(std::uint32_t gpu, std::uint32_t xid, const XidOptions& options);
  /// Whether a GPU can have such a fault at all: kFailedPrecondition says why not.
  base::Status CheckEcc(std::uint32_t gpu) const;
  base::Status CheckRemap(std::uint32_t gpu) const;
  base::Status EccErrors(std::uint32_t gpu, std::uint64_t count, bool corrected);
  base::Status Remap(std::uint32_t gpu, bool failure);
  base::Status Lose(std::uint32_t gpu, std::uint32_t where);
  base::Status Unplug(std::uint32_t gpu);
  base::Status SetRecoveryAction(std::uint32_t gpu, std::uint32_t action);
  /// A fault of a call; gpu -1 for all. `function` empty: every call. kInvalidArgument for a name that the library has not.
  base::Status FaultCall(std::int32_t gpu, const std::string& function, std::uint32_t mode, std::uint32_t milliseconds, std::uint32_t code,
                         std::uint32_t count);
  /// What a field value says instead: the 8 bytes of its value, nvmlReturn_t, nvmlValueType_t; the rest stays as it is.
  struct FieldFault {
    std::optional<std::uint64_t> value;
    std::optional<std::uint32_t> status, type;
  };
  /// As FaultCall; `field` is NVML_FI_*'s number.
  base::Status FaultField(std::int32_t gpu, std::uint32_t field, const FieldFault& what, std::uint32_t count);
  /// A reading that is answered, with success, as `value`.
  base::Status Nonsense(std::uint32_t gpu, SimReading reading, std::uint64_t value);
  /// Process utilization has 100 samples, most of them of no process and of no sense, as some drivers answered.
  base::Status JunkProcessSamples(std::uint32_t gpu);

  /// The clock by which meters grow and samples are stamped: stands, runs on from where it stood, or is put forward.
  base::Status StopClock();
  base::Status RunClock();
  base::Status AdvanceClock(std::uint64_t microseconds);

  /// What MPS' programs do wrong from now on: "hang", "exit", "nonsense", or "" for nothing.
  base::Status FaultMps(const std::string& fault);
  /// Ends, as kill -9 does, the control daemons of this machine that run now.
  base::Status KillMps();

  base::Status UnloadDriver();
  /// Another library version beside the loaded module.
  base::Status MismatchDriver(const std::string& library_version);
  /// Installs and loads a driver, `version` empty: the one that was there, or the machine file's.
  base::Status LoadDriver(const std::string& version);

  /// Undoes faults of one GPU, plugs it in again.
  base::Status HealGpu(std::uint32_t gpu);
  /// Undoes the faults of calls on every GPU.
  base::Status HealCalls();

 private:
  Control(std::string root, Assets assets, StateFile file) : root_(std::move(root)), assets_(std::move(assets)), file_(std::move(file)) {}
  static base::Result<Control> Build(const std::string& root, const Assets& assets, const LoadedMachine& machine, SimState& state);
  base::Status Sync();
  base::Status AddFault(const SimFault& fault);
  base::Status LogXid(StateFile::Change& change, std::uint32_t gpu, std::uint32_t xid, const std::string& text);
  base::Status ChangeAction(StateFile::Change& change, std::uint32_t gpu, std::uint32_t action, bool log, bool event);
  void MarkLost(StateFile::Change& change, std::uint32_t gpu, std::uint32_t where, bool event);

  std::string root_;
  Assets assets_;
  StateFile file_;
  TreeReport report_;
};

/// Ends the control daemons of a machine as kill -9 does, before its files are removed; their servers end with the last client.
void EndMps(const std::string& root);

/// CLOCK_MONOTONIC, which nobody sets: what SimNow is given.
std::uint64_t NowMicroseconds();

/// The number of a recovery action's name ("none", "gpu-reset", …), and the names.
std::optional<std::uint32_t> RecoveryActionNumber(const std::string& name);
std::vector<std::string> RecoveryActionNames();
/// As nvidia-smi and XID 154 print it.
std::string RecoveryActionText(std::uint32_t action);

}  // namespace penstock::sim
