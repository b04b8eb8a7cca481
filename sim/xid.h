// Defines how an XID appears: its line in the kernel log, the NVML events it raises, and the
// recovery action it requests, by driver branch. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/state.h"

namespace penstock::sim {

/// Returns the usual message of an XID.
std::string XidText(std::uint32_t xid);

/// Returns "NVRM: Xid (PCI:0000:07:00): 79, …" in the format of the state's driver; errors of
/// programs name the first process on the GPU.
std::string XidLine(const SimState& state, const SimGpu& gpu, std::uint32_t xid,
                    const std::string& text);

/// NVML's events for a GPU that has become unavailable, and for a change of the recovery action.
inline constexpr std::uint64_t kEventUnavailable = 0x4000, kEventRecoveryAction = 0x8000;

struct XidEvent {
  std::uint64_t type, data;
};
/// Returns the events that nvmlEventSetWait delivers. Some XIDs are only logged.
std::vector<XidEvent> XidEvents(std::uint32_t branch, std::uint32_t xid);

/// Returns the recovery action that NVIDIA's catalogue assigns to the XID, with NVML's number.
std::optional<std::uint32_t> XidRecoveryAction(std::uint32_t branch, std::uint32_t xid);

}  // namespace penstock::sim
