// Which rule of a layout applies to which device. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/config/layouts.h"
#include "base/core/result.h"
#include "device/model.h"

namespace penstock::node::partition {

/// A device, with the rule that applies to it.
struct SelectedDevice {
  const device::Facts* device = nullptr;
  const api::LayoutRule* rule = nullptr;  ///< null: none, the device stays as it is
};

struct Selection {
  std::vector<SelectedDevice> devices;  ///< all of them, in their order
  std::vector<std::string> remarks;  ///< rules for models that are not here, devices without a rule
};

/// Applies a layout to devices that are no parts. Rules that select the same device must agree.
/// kInvalidArgument, with all problems: rules that do not; indices that do not exist, or are of
/// other models than their rule; a layout that selects no device, or is for another number of them.
/// A rule for models of which there is no device is a remark, because one file serves different
/// machines.
Result<Selection> SelectDevices(const api::Layout& layout,
                                std::span<const device::Facts* const> devices);

/// The model of a device, from its details; nothing: it is no PCI device.
std::optional<api::PciModel> ModelOf(const device::Facts& device);

}  // namespace penstock::node::partition
