// The labels of NFD that users of accelerators select on: PCI, kernel, distribution, processor, memory. From facts that were read before.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "os/machine_facts.h"

namespace penstock::node::label {

/// Base and sub class (0x0302) and vendor of an accelerator that is on the bus.
using PciKind = std::pair<std::uint16_t, std::uint16_t>;

/// What NFD takes for accelerators: display controllers (03), coprocessors (0b40), processing accelerators (12).
bool IsAcceleratorClass(std::uint32_t class_code);

/// As NFD names and derives them (its docs/usage/features.md), with its default list of CPUID flags that nobody selects on left out. What
/// is not known has no label.
std::map<std::string, std::string> HostFeatures(const os::MachineFacts& machine, const std::set<PciKind>& accelerators);

}  // namespace penstock::node::label
