// Layouts that are made from the profiles of this machine's devices, and the layout that describes
// how they are divided now. Pure.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "api/config/layouts.h"
#include "device/dialect.h"
#include "device/model.h"
#include "node/partition/division.h"

namespace penstock::node::partition {

struct GeneratedLayouts {
  api::Layouts layouts;
  std::vector<std::string> remarks;  ///< models without a balanced layout
};

/// The layouts that mig-parted generates, under its names: "all-disabled", "all-enabled"; of each
/// profile that is created on the device itself, as many as there can be ("all-1g.5gb+me" as
/// "all-1g.5gb.me"); and "all-balanced", a mix that takes all slices. Rules name models where the
/// devices have several; a model without PCI ids has no rule then. `devices` are no parts.
GeneratedLayouts GenerateLayouts(std::span<const device::Facts* const> devices);

/// A device as it is divided now.
struct DividedDevice {
  const device::Facts* device = nullptr;
  const Division* division = nullptr;
  bool partitioned = false;  ///< its mode says that it is divided, perhaps into nothing
};

/// The layout that has these devices as they are divided now, with as few rules as possible.
api::Layout ExportLayout(const std::string& name, std::span<const DividedDevice> devices);

/// The parts that a holder can have, counted by profile.
std::vector<api::LayoutParts> PartsOf(const Division& division);

/// Of devices whose parts come with a mode: for each value that all of them can have, a layout of
/// its name in lower case ("cpx") that gives it to all devices.
api::Layouts ModeLayouts(std::span<const device::Facts* const> devices, const std::string& mode);

/// The layouts that labels can name where there is no file of them, for all devices of a vendor
/// that are no parts: those above. Where its users have no files at all (PartTerms::program), also
/// one of each profile that is created within others, as many as there can be ("all-eighth").
api::Layouts LayoutsFor(std::span<const device::Facts* const> devices,
                        const device::PartTerms& terms);

}  // namespace penstock::node::partition
