// Checks the layouts of a file of mig-parted against the devices of a machine, as `penstock mig
// plan` would. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "api/config/layouts.h"
#include "base/core/result.h"
#include "node/inventory/inventory.h"

namespace penstock::app {

/// A layout on a machine.
struct CheckedLayout {
  struct Device {
    std::string number;   ///< by which users know it
    std::string parts;    ///< what it is divided into: "7 of 1g.5gb"; "whole"
    std::string problem;  ///< why it cannot be; empty: it can
  };
  std::string name;
  std::string problem;          ///< of the layout as a whole; `devices` is then empty
  std::vector<Device> devices;  ///< those that it selects
  std::vector<std::string> remarks;
};

/// kInvalidArgument: all problems with their positions.
base::Result<api::Layouts> ReadLayouts(std::string_view text, std::string_view file);

std::vector<CheckedLayout> CheckLayouts(const api::Layouts& layouts,
                                        const node::inventory::Snapshot& machine);

/// Lines for users, indented.
std::string ShowLayouts(const std::vector<CheckedLayout>& layouts);
nlohmann::ordered_json JsonOf(const std::vector<CheckedLayout>& layouts);

}  // namespace penstock::app
