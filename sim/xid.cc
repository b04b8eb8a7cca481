#include "sim/xid.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "base/core/strings.h"

namespace penstock::sim {
namespace {

template <std::size_t N>
bool In(const std::uint32_t (&list)[N], std::uint32_t xid) {
  return std::find(std::begin(list), std::end(list), xid) != std::end(list);
}

// Errors of a program's own channel: the line names the process.
constexpr std::uint32_t kOfPrograms[] = {8, 11, 13, 25, 31, 32, 43, 45, 68, 69, 94, 109};
// Written to the log, never delivered by NVML (as of 595).
constexpr std::uint32_t kOnlyLogged[] = {78, 110, 136, 140, 143, 154, 167, 175};
constexpr std::uint32_t kAskReset[] = {46,  48,  62,  64,  74,  79,  95,  109, 110,
                                       119, 120, 136, 140, 143, 150, 155, 156, 158};
constexpr std::uint32_t kAskDrain[] = {63, 94};

constexpr std::uint64_t kEventXid = 0x8;

const SimProcess* FirstProcess(const SimGpu& gpu, const XidInstance& instance) {
  for (std::uint32_t i = 0; i < gpu.process_count; i++) {
    const SimProcess& process = gpu.processes[i];
    if ((!instance.gpu || process.gpu_instance == *instance.gpu) &&
        (!instance.compute || process.compute_instance == *instance.compute))
      return &process;
  }
  return nullptr;
}

}  // namespace

std::string XidText(std::uint32_t xid) {
  switch (xid) {
    case 13:
      return "Graphics Exception: ESR 0x515e48=0x1000e 0x515e50=0x4 0x515e44=0xd3eff2 "
             "0x515e4c=0x17f";
    case 31:
      return "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ "
             "0x7f2b_c0000000. Fault is of type FAULT_PDE "
             "ACCESS_TYPE_VIRT_READ";
    case 43: return "Ch 00000010, engmask 00000101";
    case 45: return "Ch 00000010";
    case 48:
      return "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer "
             "at partition 1, subpartition 0.";
    case 62: return "2027(278c) 00000000 00000000";
    case 63:
      return "Row Remapper: New row (0x00000000014a3c40) marked for remapping, reset gpu to "
             "activate.";
    case 64:
      return "Row Remapper: Error while attempting to remap row: All reserved rows for bank are "
             "remapped";
    case 74: return "NVLink: fatal error detected on link 3(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)";
    case 79: return "GPU has fallen off the bus.";
    case 92: return "High single-bit ECC error rate";
    case 94: return "Contained: LTC TAG (0x2,0x1). RST: No, D-RST: No";
    case 95: return "Uncontained: LTC TAG (0x2,0x1). RST: Yes, D-RST: No";
    case 109: return "Ch 00000010, errorString CTX SWITCH TIMEOUT, Info 0x1c001";
    case 119:
      return "Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 "
             "(GSP_RM_CONTROL) (0x20800a4c 0x4).";
    case 120: return "GSP task panic: watchdog timeout @ pc:0x4c6a4, partition:4#0, task:3";
    default: return "simulated";
  }
}

std::optional<XidInstance> ParseXidInstance(const std::string& text) {
  constexpr std::uint64_t kMostInstance = 0xfffe;
  const std::size_t slash = text.find('/');
  const auto gpu = base::ParseUint(text.substr(0, slash));
  if (!gpu || *gpu > kMostInstance) return std::nullopt;
  XidInstance instance{static_cast<std::uint32_t>(*gpu), std::nullopt};
  if (slash == std::string::npos) return instance;
  const auto compute = base::ParseUint(text.substr(slash + 1));
  if (!compute || *compute > kMostInstance) return std::nullopt;
  instance.compute = static_cast<std::uint32_t>(*compute);
  return instance;
}

std::string XidLine(const SimState& state, const SimGpu& gpu, std::uint32_t xid,
                    const std::string& text, const XidInstance& instance) {
  char head[96], on[48] = "";
  if (instance.gpu && instance.compute)
    std::snprintf(on, sizeof on, " GPU-I:%02u GPU-CI:%02u", *instance.gpu, *instance.compute);
  else if (instance.gpu)
    std::snprintf(on, sizeof on, " GPU-I:%02u", *instance.gpu);
  std::snprintf(head, sizeof head, "NVRM: Xid (PCI:%04x:%02x:%02x%s): %u, ", gpu.domain, gpu.bus,
                gpu.device, on, xid);
  const SimProcess* process = In(kOfPrograms, xid) ? FirstProcess(gpu, instance) : nullptr;
  const bool named = process != nullptr;
  const std::string pid = named ? std::to_string(process->pid) : "";
  const std::string name = named ? std::string(process->name) : "";
  std::string who;
  if (state.driver_branch < 515)
    who = named ? "pid=" + pid + ", " : "";
  else if (named)
    who = "pid=" + pid + ", name=" + name + ", ";
  else if (state.driver_branch < 570)
    who = "pid='<unknown>', name=<unknown>, ";
  return head + who + text;
}

std::vector<XidEvent> XidEvents(std::uint32_t branch, std::uint32_t xid) {
  if (xid == 154)
    return branch >= 565 ? std::vector<XidEvent>{{kEventRecoveryAction, 0}}
                         : std::vector<XidEvent>{};
  if (In(kOnlyLogged, xid)) return {};
  if (xid == 79 || xid == 119 || xid == 120) {
    std::vector<XidEvent> events;
    if (branch >= 565 && xid != 120) events.push_back({kEventUnavailable, 0});
    if (branch >= 590 && xid != 119) events.push_back({kEventXid, xid});
    return events;
  }
  return {{kEventXid, xid}};
}

std::optional<std::uint32_t> XidRecoveryAction(std::uint32_t branch, std::uint32_t xid) {
  if (In(kAskReset, xid)) return 1;
  if (In(kAskDrain, xid) && branch >= 570) return 4;
  return std::nullopt;
}

}  // namespace penstock::sim
