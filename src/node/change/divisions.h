// Divides devices into parts as a layout says: the one that a user or the cluster applied last. A
// division is a change of the device (device_changes.h); node/partition plans it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/config/layouts.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "device/actions.h"
#include "device/backend.h"
#include "device/dialect.h"
#include "node/change/device_changes.h"
#include "node/change/division_journal.h"
#include "node/change/layout_answer.h"
#include "node/change/layout_state.h"
#include "node/change/reload_need.h"

namespace penstock::node::change {

/// A request to divide devices.
struct LayoutRequest {
  api::Layout layout;
  std::string source;       ///< "user", "label"
  bool mode_only = false;   ///< the parts do not count
  bool skip_reset = false;  ///< a device that needs a reset is not divided; with `mode_only` its
                            ///< mode stays pending
  std::optional<base::Duration> wait;  ///< how long to wait for holders; nothing: where one is in
                                       ///< the way, nothing is changed
  std::optional<std::string> label = {};  ///< AppliedLayout::label from now on; nothing: as before
};

/// For LayoutRequest::wait: as long as it takes, also if the layout cannot be applied now.
inline constexpr base::Duration kStanding = std::chrono::hours(24 * 3650);

/// The longest that dividing a device takes: with a reset, and another that is waited for before.
inline constexpr base::Duration kDividesWithin =
    2 * device::kLongestReset + std::chrono::minutes(15);

/// ChangeKind::name of the divisions of a vendor, before PartTerms::kept_as.
inline constexpr std::string_view kDivideKind = "divide";

/// On the control executor. Those of one vendor's devices: the layouts of vendors are independent
/// of each other. A device is divided once: what other programs do to it afterwards stays
/// until the layout is applied again, but it is divided again after a reboot, a reset and when the
/// driver was loaded again, because these destroy its parts.
///
/// The steps of a change: withdraw the device and those of its parts that do not stay; wait until
/// they are unused; stop clients; divide it; where that failed, divide it as it was before. A
/// device for which that fails too is withheld, and tried again.
class Divisions final : public ChangeKind {
 public:
  /// The parts of a vendor that take part in a division.
  struct Vendor {
    device::AsyncBackend* backend = nullptr;   ///< null: its devices cannot be divided
    const device::Dialect* dialect = nullptr;  ///< null, or without part_terms: likewise
    std::function<bool()> ready;               ///< its devices have addresses now
    std::function<void(std::function<void()> done)>
        describe;                                        ///< inventory::Discovery::DescribeNow
    device::Actions* actions = nullptr;                  ///< null: its devices cannot be reset
    std::function<void(std::function<void()>)> release;  ///< inventory::Discovery::Release
    std::function<void()> reopen;                        ///< inventory::Discovery::Reopen
  };
  using VendorOf = std::function<Vendor(std::string_view vendor)>;
  /// Why the driver of a device, which may not be there, cannot divide it now; empty: it can.
  static std::string WhyNotReady(const inventory::Entry* device, const VendorOf& vendor_of);
  struct Node {
    inventory::Inventory& inventory;
    ledger::Ledger& ledger;
    DeviceChanges& changes;
  };

  /// Adds itself to `changes`, which calls it until it is destroyed. `path` is that of layout.json,
  /// which is written on `io`; `remembered` is what LoadAppliedLayout read from it. `kind`: the
  /// name of these changes; each vendor has its own.
  Divisions(base::Executor& control, base::Executor& io, Node node, VendorOf vendor_of,
            const std::string& path, AppliedLayout remembered, std::string boot_id,
            std::string kind = std::string(kDivideKind));
  ~Divisions() override;

  /// Of devices on which parts are created on demand, a layout sets only the mode.
  void SetOnDemand(const std::vector<std::string>& devices);

  /// Applies a layout in place of the one before; devices that failed are tried again at once.
  /// `progress` is called for each new state of a device, and `done` once; neither after the
  /// destructor. Errors that change nothing: kInvalidArgument, the layout cannot be applied here;
  /// kFailedPrecondition, a holder is in the way and the request does not wait. Later errors:
  /// kAborted, a device could not be divided; kDeadlineExceeded, a holder is still there;
  /// kCancelled, another layout was applied.
  using Progress = LayoutAnswer::Progress;
  using Done = LayoutAnswer::Done;
  void Apply(const LayoutRequest& request, Progress progress, Done done);

  /// A layout that was asked for is none: shows that as a failure, in place of the state of the
  /// layout that applies, until a layout is applied.
  void Refuse(const std::string& layout, const std::string& source, const std::string& why);

  /// What was refused is in order now: shows the state of the layout that applies.
  void Accept();

  /// The Node's label was removed: the same value is followed again once it is set.
  void ForgetLabel();

  /// What applies now, or applied last.
  const AppliedLayout& applied() const;

  const LayoutState& state() const;
  /// Called after each change of the state, and of stops_clients_of.
  void OnState(std::function<void()> changed);

  /// Calls the function once: when no device is being divided that was divided before a reboot,
  /// and otherwise after `most`. Call after DeviceChanges::Start.
  void WhenRestored(base::Duration most, std::function<void()> restored);

  /// By when it is called at the latest, while that function was not called yet.
  std::optional<base::WallTime> restored_by() const;

  /// Whether a mode waits for the driver to be loaded again.
  const ReloadNeed& reload_need() const;
  /// `outlook` returns what becomes of such a need. Without it, the agent loads no driver.
  void SetReloads(std::function<ReloadOutlook(const ReloadNeed&)> outlook);

  /// Programs of the cluster that hold devices are stopped for a layout that a label asked for.
  /// `await` returns what is still waited for before the device is divided; empty: nothing.
  void SetClients(std::function<std::string(const device::Facts& device)> await);

  /// The devices whose clients are to be stopped now.
  std::set<std::string> stops_clients_of() const;

  std::string_view name() const override;
  const std::vector<ChangeStep>& steps() const override;
  bool hides_devices() const override { return true; }
  bool includes_parts() const override { return true; }
  std::set<std::string> KeptParts(const DeviceChange& change) const override;
  std::string Explain(const DeviceChange& change, const std::string& device) const override;
  std::vector<DeviceChange> Due() override;
  bool AwaitsDevices() const override;
  void Ended(const DeviceChange& change, const base::Status& result) override;
  void Settled() override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::change
