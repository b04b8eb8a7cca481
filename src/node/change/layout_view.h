// What a layout wants of each device, and which changes that needs now. Changes nothing.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "node/change/divisions.h"

namespace penstock::node::change {

// Steps of a change of this kind.
inline constexpr std::string_view kAwaitRelease = "await release", kStopClients = "stop clients",
                                  kDivide = "divide", kRestore = "restore";

/// Of a device that waits only for this agent.
inline constexpr std::string_view kAboutToBegin = "it is about to be divided";

/// Whether the change has not come to kDivide yet.
bool IsBeforeDivision(const DeviceChange& change);

/// A device under a layout, and the change that it needs.
struct LayoutCandidate {
  DeviceDivision division;
  bool awaits_reload = false;  ///< a mode of it takes effect when the driver is loaded again
  std::string requested = {};  ///< its value, where the driver was asked for it
  std::optional<DeviceChange> due;
};

/// What the candidates of a vendor need of its driver. `request`: ReloadNeed::request.
ReloadNeed NeedOf(const std::vector<LayoutCandidate>& candidates, int request);

/// Completes the reasons of those whose mode was requested.
void ExplainReload(std::vector<LayoutCandidate>& candidates, const ReloadOutlook& outlook);

/// The record of a change; an empty one where that is corrupt.
DivisionRecord RecordOf(const DeviceChange& change);

/// On the control executor. Compares each device with the rule of the layout that selects it.
class LayoutView {
 public:
  /// `vendor_of` must outlive it. `kind`: ChangeKind::name of the divisions.
  LayoutView(const Divisions::Node& node, const Divisions::VendorOf& vendor_of, std::string kind)
      : node_(node), vendor_of_(vendor_of), kind_(std::move(kind)) {}

  /// Sets the devices of which a layout sets only the mode (share::OnDemandDevices). Returns those
  /// before.
  std::vector<std::string> SetOnDemand(std::vector<std::string> devices);

  /// AppliedLayout::selected, of the devices that are there. kInvalidArgument: the layout cannot be
  /// applied to them.
  base::Result<std::map<std::string, int>> Select(const api::Layout& layout) const;

  /// All devices that can be divided, under this layout. `why_paused` returns why a device is not
  /// tried again yet; empty: it can be.
  using WhyPaused = std::function<std::string(const std::string& device)>;
  std::vector<LayoutCandidate> LookAt(const AppliedLayout& layout,
                                      const WhyPaused& why_paused) const;

  /// Whether the layout wants of the device what the change does.
  bool Wants(const AppliedLayout& layout, const DeviceChange& change) const;

  /// Whether it is a whole device that is there, and its driver divides devices.
  bool CanBeDivided(const inventory::Entry& entry) const;

  /// Whether the driver of devices that can be divided is not there.
  bool AnyWithoutDriver() const;

 private:
  bool CanBeDivided(const Divisions::Vendor& vendor) const;
  void Decide(const AppliedLayout& layout, const api::LayoutRule& rule, const device::Facts& device,
              const WhyPaused& why_paused, LayoutCandidate& candidate) const;
  bool IsModeOnly(const AppliedLayout& layout, const device::Facts& device) const;

  const Divisions::Node node_;
  const Divisions::VendorOf& vendor_of_;
  const std::string kind_;
  std::vector<std::string> on_demand_;
};

}  // namespace penstock::node::change
