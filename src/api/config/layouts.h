// Layouts: how the devices of a node are to be divided, by name. The files of other programs are
// translated into them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::api {

/// The maker of a PCI card, and its number of the card. Not within PciModel: clang 14 cannot create
/// an optional of a class whose defaults it has not read to the end.
struct PciSubsystem {
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  auto operator<=>(const PciSubsystem&) const = default;
};

/// A model of a PCI device.
struct PciModel {
  using Subsystem = PciSubsystem;
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::optional<Subsystem> subsystem;  ///< nothing: any
  auto operator<=>(const PciModel&) const = default;
};

/// The slices of a device in which a part lies.
struct LayoutPlace {
  int start = 0, size = 0;
  bool operator==(const LayoutPlace&) const = default;
};

/// Parts of one profile.
struct LayoutParts {
  std::string profile;                    ///< "1g.5gb", canonical
  int count = 0;                          ///< at least 1
  std::optional<LayoutPlace> place = {};  ///< exactly here, of a single part; nothing: anywhere
  std::optional<LayoutPlace> outer = {};  ///< the place of the part in which they are; nothing: any
  bool vacant = false;                    ///< a part at `place` in which no other part is
  bool operator==(const LayoutParts&) const = default;
};

/// How some devices are to be divided.
struct LayoutRule {
  std::vector<PciModel> models;  ///< only devices of these; empty: of any
  bool all_devices = false;
  std::vector<int> devices;           ///< indices, ascending, where not all
  std::vector<std::string> ids = {};  ///< of devices that are selected, too
  bool partitioned = false;           ///< false: the devices are whole
  std::vector<LayoutParts> parts;     ///< ascending by profile; empty: none yet
  /// Of devices whose parts come with a mode: the values of their modes, by the vendor's names
  /// (device::Mode); then the two above have no meaning.
  std::map<std::string, std::string> modes = {};
  bool operator==(const LayoutRule&) const = default;
};

struct Layout {
  std::string name;  ///< "all-balanced"
  std::vector<LayoutRule> rules;
  int total = 0;              ///< of machines with so many devices; 0: of any
  std::string total_by = {};  ///< what says so, for messages: the keys with their values
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
