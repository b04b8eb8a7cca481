// How an XID shows: its line in the kernel log, the NVML events it raises, the recovery action it asks for, by driver branch. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/state.h"

namespace penstock::sim {

/// The usual message of an XID.
std::string XidText(std::uint32_t xid);

/// "NVRM: Xid (PCI:0000:07:00): 79, …" in the form of the state's driver; the first process on the GPU is named for errors of programs.
std::string XidLine(const SimState& state, const SimGpu& gpu, std::uint32_t xid, const std::string& text);

struct XidEvent {
  std::uint64_t type, data;
};
/// What nvmlEventSetWait delivers. Some XIDs are only logged.
std::vector<XidEvent> XidEvents(std::uint32_t branch, std::uint32_t xid);

/// The recovery action that NVIDIA's catalogue ties to the XID, as NVML numbers it.
std::optional<std::uint32_t> XidRecoveryAction(std::uint32_t branch, std::uint32_t xid);

}  // namespace penstock::sim
