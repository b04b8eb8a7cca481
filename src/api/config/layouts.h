// Layouts: how the devices of a node are to be divided, by name. The files of other programs are
// translated into them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::api {

/// A model of a PCI device.
struct PciModel {
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  struct Subsystem {
    std::uint16_t vendor = 0;
    std::uint16_t device = 0;
    auto operator<=>(const Subsystem&) const = default;
  };
  std::optional<Subsystem> subsystem;  ///< nothing: any
  auto operator<=>(const PciModel&) const = default;
};

/// Parts of one profile.
struct LayoutParts {
  std::string profile;  ///< "1g.5gb", canonical
  int count = 0;        ///< at least 1
  bool operator==(const LayoutParts&) const = default;
};

/// How some devices are to be divided.
struct LayoutRule {
  std::vector<PciModel> models;  ///< only devices of these; empty: of any
  bool all_devices = false;
  std::vector<int> devices;        ///< indices, ascending, where not all
  bool partitioned = false;        ///< false: the devices are whole
  std::vector<LayoutParts> parts;  ///< ascending by profile; empty: none yet
  bool operator==(const LayoutRule&) const = default;
};

struct Layout {
  std::string name;  ///< "all-balanced"
  std::vector<LayoutRule> rules;
  bool operator==(const Layout&) const = default;
};

struct Layouts {
  std::vector<Layout> layouts;  ///< names are unique

  const Layout* Find(std::string_view name) const;
  std::vector<std::string> names() const;
  bool operator==(const Layouts&) const = default;
};

/// A layout as JSON, in which a client passes it to the agent.
std::string EncodeLayout(const Layout& layout);
/// `name` is that of the text in errors. kInvalidArgument, with all problems.
base::Result<Layout> DecodeLayout(std::string_view text, std::string_view name);

}  // namespace penstock::api
