// Computes the NFD labels that users of accelerators select on: PCI, kernel, distribution,
// processor, memory. Does no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "os/machine_facts.h"

namespace penstock::node::label {

/// Base class and subclass (0x0302), and vendor, of an accelerator on the PCI bus.
using PciKind = std::pair<std::uint16_t, std::uint16_t>;

/// Whether NFD takes the PCI class for an accelerator: display controllers (03), coprocessors
/// (0b40), processing accelerators (12).
bool IsAcceleratorClass(std::uint32_t class_code);

/// Returns the labels with NFD's names and derivations (its docs/usage/features.md), without the
/// CPUID flags of NFD's default exclusion list. A fact that is unknown gets no label.
std::map<std::string, std::string> HostFeatures(const os::MachineFacts& machine,
                                                const std::set<PciKind>& accelerators);

}  // namespace penstock::node::label
