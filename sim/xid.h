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

/// The MIG instance that an XID is about; nothing: the GPU.
struct XidInstance {
  std::optional<std::uint32_t> gpu, compute;  // no compute instance: all of the GPU instance
};

/// Parses "3" and "3/0".
std::optional<XidInstance> ParseXidInstance(const std::string& text);

/// Returns "NVRM: Xid (PCI:0000:07:00): 79, …" in the format of the state's driver; errors of
/// programs name the first process on the GPU, or on the instance.
std::string XidLine(const SimState& state, const SimGpu& gpu, std::uint32_t xid,
                    const std::string& text, const XidInstance& instance = {});

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
