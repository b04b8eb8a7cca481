// Describes changes of devices that take time or can fail, and encodes the journal of those that
// are under way, which a restarted agent continues.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "node/inventory/inventory.h"

namespace penstock::node::change {

/// A device that a change withdraws.
struct ChangedDevice {
  std::string id;
  std::string address;    ///< of its PCI function, by which a replaced device is detected; "": none
  std::string allocator;  ///< the one that it belonged to when the change began; "": none
  bool operator==(const ChangedDevice&) const = default;
};

/// A change of one or more devices in one operation.
struct DeviceChange {
  std::string kind;  ///< ChangeKind::name
  std::vector<ChangedDevice> devices;
  std::string step;         ///< the step under way
  base::WallTime since{};   ///< when that step began
  std::string failure;      ///< why an earlier step failed, while those that are `finally` are
                            ///< taken; empty: none did
  std::string details;      ///< of its kind, which alone reads them
  std::string waits_for;    ///< what the step waits for; not in the journal
  bool taken_over = false;  ///< an earlier agent began the step; not in the journal
  bool operator==(const DeviceChange&) const = default;

  bool Has(std::string_view device) const;
  /// The id of the device, of a kind that changes one at a time.
  const std::string& device() const { return devices.front().id; }
};

/// What became of a step so far: an empty text if it is done, else what it waits for ("held by pod
/// ml/train-0"), or why it failed.
using StepResult = base::Result<std::string>;

/// A step of a change.
struct ChangeStep {
  std::string_view name;  ///< in the journal and in messages: "withdraw"
  /// Takes the step, or finds out how it stands: called again after every change of the node until
  /// it is done or failed, and by a restarted agent. All devices are in the inventory, but for a
  /// step that is `finally`, and for one that is `recorded` and was begun before.
  std::function<StepResult(const DeviceChange&)> take;
  base::Duration most{};  ///< after this time it has failed; zero: it waits as long as it must
  /// Begins once the journal on disk names it, because its effect cannot be seen later. If the
  /// journal cannot be written within a minute, the step has failed with kUnavailable.
  bool recorded = false;
  bool finally = false;      ///< is taken even if an earlier step failed
  bool uses_driver = false;  ///< fails if another change closes the driver meanwhile
};

/// A kind of change: which changes of it are due, and their steps. On the control executor.
class ChangeKind {
 public:
  virtual ~ChangeKind() = default;
  virtual std::string_view name() const = 0;
  virtual const std::vector<ChangeStep>& steps() const = 0;

  /// Whether the devices disappear from the list of their allocator. Otherwise it lists them as
  /// unusable.
  virtual bool hides_devices() const = 0;
  /// Whether the parts of the devices are withdrawn with them.
  virtual bool includes_parts() const = 0;
  /// But for these.
  virtual std::set<std::string> KeptParts(const DeviceChange&) const { return {}; }

  /// Why a device of this change is not offered: one sentence.
  virtual std::string Explain(const DeviceChange& change, const std::string& device) const = 0;

  /// The changes that should begin now, without step and time. One that wants a device of another
  /// change does not begin, and should be returned again.
  virtual std::vector<DeviceChange> Due() = 0;

  /// Whether a change of this kind can become due although no facts of a device change: by its
  /// health, or because it is released.
  virtual bool AwaitsDevices() const { return false; }

  /// The change ended; its devices are offered again as soon as this returns. kNotFound: a device
  /// is not there; kAborted: it was replaced by another one; kDeadlineExceeded: a step took too
  /// long; otherwise the error of a step.
  virtual void Ended(const DeviceChange& change, const base::Status& result) = 0;

  /// All that could be done now was done.
  virtual void Settled() {}
};

std::string EncodeChanges(const std::vector<DeviceChange>& changes);

/// kFailedPrecondition where a newer version of the agent wrote it, kDataLoss where it is corrupt.
base::Result<std::vector<DeviceChange>> DecodeChanges(std::string_view text, std::string_view file);

/// The journal of the previous agent; empty where it is corrupt or of a newer version
/// (os::LoadKept). Blocks.
base::Result<std::vector<DeviceChange>> LoadChanges(const std::string& path);

}  // namespace penstock::node::change
