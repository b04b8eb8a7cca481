// Where the sources disagree, a comment beside the row gives the choice and its reason.
#include "backend/nvidia/dialect/xid.h"

#include <array>
#include <optional>
#include <utility>

#include "base/core/strings.h"

namespace penstock::backend::nvidia {
namespace {

using device::Severity;
using device::Verdict;
using enum Severity;

constexpr std::string_view kCatalog = "NVIDIA Xid Catalog";
constexpr std::string_view kArchive = "NVIDIA Xid Catalog and Xid Errors archive";
constexpr std::string_view kModules = "NVIDIA open GPU kernel modules";
constexpr std::string_view kInferred = "inferred";
constexpr std::string_view kUnused = "unused since Ampere";
constexpr std::string_view kUnusedNow = "no longer used";
constexpr std::string_view kCopyEngine = "copy engine error";
constexpr std::string_view kMediaEngine = "NVDEC, NVJPG or OFA error";
constexpr std::string_view kDriverFault = "driver fault in a context switch or access";

// Ordered by number.
constexpr std::array kXids{
    Xid{1, 7, kUnused, kWarn, kCatalog},
    Xid{8, 8, "GPU stopped processing", kWarn, kArchive},
    Xid{9, 10, kUnused, kWarn, kCatalog},
    Xid{11, 11, "bad push buffer or class error", kWarn, kArchive},
    Xid{12, 12, kUnused, kWarn, kCatalog},
    Xid{13, 13, "graphics engine exception", kIgnore, kCatalog},
    Xid{14, 14, "test message", kIgnore, kCatalog},
    Xid{15, 24, kUnused, kWarn, kCatalog},
    Xid{25, 25, "bad push buffer or class error", kWarn, kArchive},
    Xid{26, 30, kUnused, kWarn, kCatalog},
    Xid{31, 31, "GPU memory page fault", kIgnore, kCatalog},
    // Catalog: restart the application; its text blames PCIe. Some detectors call it fatal.
    Xid{32, 32, "push buffer DMA error", kWarn, kCatalog},
    Xid{33, 36, kUnused, kWarn, kCatalog},
    Xid{37, 37, "driver firmware error", kIgnore, kCatalog},
    Xid{38, 38, kDriverFault, kWarn, kCatalog},
    Xid{39, 41, kCopyEngine, kWarn, kCatalog},
    Xid{42, 42, kUnusedNow, kWarn, kCatalog},
    Xid{43, 43, "an application hit a software fault", kIgnore, kCatalog},
    Xid{44, 44, kDriverFault, kWarn, kCatalog},
    // A consequence of another error; treating it as fatal gave 672 false alarms in three hours on
    // 288 nodes (NVSentinel 1710).
    Xid{45, 45, "channels removed after an abort", kIgnore, kCatalog},
    Xid{46, 46, "GPU timeout", kReset, kCatalog},
    Xid{47, 47, kUnusedNow, kWarn, kCatalog},
    // Catalog: reset at once, or with 63, 64 or 94 drain first; a reset here always waits until the
    // work has ended.
    Xid{48, 48, "uncorrectable ECC error", kReset, kCatalog},
    Xid{49, 53, kUnused, kWarn, kCatalog},
    Xid{54, 54, "auxiliary power is not connected", kGone, kCatalog},
    Xid{55, 55, kUnused, kWarn, kCatalog},
    Xid{56, 58, "display or video memory error", kWarn, kArchive},
    Xid{59, 59, kUnused, kWarn, kCatalog},
    Xid{60, 60, "SEC2 engine error", kWarn, kCatalog},
    Xid{61, 61, "internal micro-controller breakpoint", kWarn, kArchive},
    Xid{62, 62, "internal micro-controller halt", kReset, kArchive},
    // Catalog: ignore, it takes effect with the next reset; others call it fatal.
    Xid{63, 63, "row remapping or page retirement recorded", kWarn, kCatalog},
    Xid{64, 64, "row remapping or page retirement failed", kReset, kCatalog},
    Xid{65, 65, kUnusedNow, kWarn, kCatalog},
    Xid{66, 67, kDriverFault, kWarn, kCatalog},
    // Catalog: restart the application; NVIDIA's device plugin ignores it.
    Xid{68, 68, kMediaEngine, kWarn, kCatalog},
    Xid{69, 69, "bad push buffer or class error", kWarn, kArchive},
    Xid{70, 72, kCopyEngine, kWarn, kCatalog},
    Xid{73, 73, kUnusedNow, kWarn, kCatalog},
    Xid{74, 74, "NVLink error", kReset, kCatalog},
    Xid{75, 77, kCopyEngine, kWarn, kCatalog},
    Xid{78, 78, "vGPU start failed", kWarn, kCatalog},
    // Catalog: reboot the node. The recovery action of a lost GPU says "reset", which cannot reach
    // the GPU.
    Xid{79, 79, "GPU has fallen off the bus", kGone, kArchive},
    Xid{80, 80, "corrupted push buffer (CRC)", kWarn, kCatalog},
    Xid{81, 81, "display or video memory error", kWarn, kArchive},
    Xid{82, 84, kMediaEngine, kWarn, kCatalog},
    Xid{85, 85, kCopyEngine, kWarn, kCatalog},
    Xid{86, 86, kMediaEngine, kWarn, kCatalog},
    Xid{87, 87, kUnusedNow, kWarn, kCatalog},
    Xid{88, 89, kMediaEngine, kWarn, kCatalog},
    Xid{90, 91, kUnusedNow, kWarn, kCatalog},
    Xid{92, 92, "high rate of corrected ECC errors", kWarn, kCatalog},
    Xid{93, 93, "InfoROM wear limit reached", kWarn, kCatalog},
    // Catalog: restart the application, reset when convenient; NVIDIA's device plugin withdraws the
    // device indefinitely.
    Xid{94, 94, "contained memory error", kWarn, kCatalog},
    Xid{95, 95, "uncontained memory error", kReset, kCatalog},
    Xid{96, 105, kMediaEngine, kWarn, kCatalog},
    Xid{106, 107, "test message", kIgnore, kCatalog},
    Xid{108, 108, "NVLink remote access fault", kIgnore, kCatalog},
    // NVIDIA's device plugin ignored it until it was shown to be the GPU's fault (device plugin
    // 1974).
    Xid{109, 109, "context switch timeout", kReset, kArchive},
    Xid{110, 110, "security fault", kReset, kCatalog},
    Xid{111, 118, kUnusedNow, kWarn, kCatalog},
    Xid{119, 119, "GSP RPC timeout", kReset, kCatalog},
    Xid{120, 120, "GSP error", kReset, kCatalog},
    Xid{121, 121, "corrected C2C link errors", kWarn, kCatalog},
    Xid{122, 125, kUnusedNow, kWarn, kCatalog},
    Xid{126, 135, kCopyEngine, kWarn, kCatalog},
    Xid{136, 136, "NVLink training failed", kReset, kCatalog},
    Xid{137, 137, "NVLink remote access fault", kIgnore, kCatalog},
    Xid{138, 138, kUnusedNow, kWarn, kCatalog},
    Xid{139, 139, kMediaEngine, kWarn, kCatalog},
    Xid{140, 140, "unrecovered ECC error", kReset, kCatalog},
    Xid{141, 141, "CUDA fast path error", kIgnore, kCatalog},
    Xid{142, 142, "NVENC error", kWarn, kCatalog},
    Xid{143, 143, "GPU initialization error", kReset, kCatalog},
    // 144 to 150: judged by text; these rows apply to an event without one.
    Xid{144, 144, "NVLink SAW error", kWarn, kCatalog},
    Xid{145, 145, "NVLink RLW error", kWarn, kCatalog},
    Xid{146, 146, "NVLink TLW error", kWarn, kCatalog},
    Xid{147, 147, "NVLink TREX error", kWarn, kCatalog},
    Xid{148, 148, "NVLink NVLPW error", kWarn, kCatalog},
    Xid{149, 149, "NVLink NETIR error", kWarn, kCatalog},
    Xid{150, 150, "NVLink firmware (MSE) error", kWarn, kCatalog},
    Xid{151, 151, "key rotation failed", kGone, kCatalog},
    Xid{152, 153, "driver or DLA method error", kIgnore, kCatalog},
    Xid{154, 154, "GPU recovery action changed", kWarn, kModules},
    Xid{155, 155, "NVLink disabled intentionally", kReset, kCatalog},
    Xid{156, 156, "resource retired", kReset, kCatalog},
    Xid{157, 157, "resource retirement failed", kWarn, kCatalog},
    Xid{158, 158, "fatal GPU timeout", kReset, kCatalog},
    Xid{159, 159, "CHI non-data error (C2C)", kReset, kCatalog},
    Xid{160, 160, "memory channel repair recorded", kWarn, kCatalog},
    Xid{161, 161, "memory channel repair failed", kWarn, kCatalog},
    Xid{162, 162, "power smoothing re-enabled", kIgnore, kCatalog},
    Xid{163, 165, "power smoothing disabled, worn out or nearly so", kWarn, kCatalog},
    Xid{166, 166, "NVLink encryption error", kWarn, kInferred},
    Xid{167, 167, "PCIe timeout", kReset, kModules},
    Xid{168, 168, "reduced memory capacity, ECC is disabled", kWarn, kInferred},
    Xid{169, 169, "SEC2 halt", kReset, kModules},
    Xid{170, 170, "NVLink encryption error", kWarn, kInferred},
    Xid{171, 172, "detail of an uncorrectable ECC error", kWarn, kInferred},
    Xid{173, 173, "fatal C2C error", kReset, kModules},
    Xid{174, 174, "a process was terminated silently", kIgnore, kModules},
    Xid{175, 175, "GSP memory error", kReset, kModules},
    Xid{176, 176, "corrected PCIe errors", kWarn, kInferred},
    Xid{185, 185, "memory sparing", kWarn, "NVIDIA driver 620 release notes"},
};
constexpr Xid kUndocumented{0, 0, "not documented", kWarn, kInferred};

struct RecoveryAction {
  std::string_view name;
  Severity severity;
};

// Ordered by value.
constexpr std::array kRecoveryActions{
    RecoveryAction{"none", kIgnore},
    RecoveryAction{"reset the GPU", kReset},
    RecoveryAction{"reboot the node", kGone},
    RecoveryAction{"end peer-to-peer users and check again", kDrain},
    // It lasts until the GPU is reset, and Penstock never ends a process for a reset of its own:
    // that is the drain.
    RecoveryAction{"drain and reset the GPU", kReset},
    RecoveryAction{"recover the IMEX domain", kWarn},  // the device itself stays usable
    RecoveryAction{"reset the bus", kReset},
    RecoveryAction{"reboot the system", kGone},
};

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// The number after the last "to 0x" of "GPU recovery action changed from 0x0 (None) to 0x2 (Node
/// Reboot Required)".
std::optional<std::int64_t> TargetAction(std::string_view text) {
  const auto at = text.rfind(" to 0x");
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + 6);
  return base::ParseInt(rest.substr(0, rest.find(' ')), 16);
}

/// Why a link went down: bits 25:20 of the first word in the last parentheses.
std::optional<unsigned> LinkDownReason(std::string_view text) {
  const auto at = text.rfind("(0x");
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + 3);
  const auto word = base::ParseUint(rest.substr(0, rest.find_first_of(" )")), 16);
  if (!word) return std::nullopt;
  return static_cast<unsigned>(*word >> 20) & 0x3f;
}

/// XIDs 144 to 150 (NVLink 5): sub-unit, then Fatal or Nonfatal.
Severity OfNvLink5(std::string_view text, Severity otherwise) {
  if (Contains(text, "NETIR_BER")) return kIgnore;
  if (!Contains(text, " Fatal")) return otherwise;
  if (!Contains(text, "NETIR_LINK")) return kReset;
  const auto reason = LinkDownReason(text);
  // These two reasons mean that the other end was taken down.
  return reason == 0x26u || reason == 0x28u ? kWarn : kDrain;
}

}  // namespace

const Xid& FindXid(std::int64_t number) {
  for (const Xid& xid : kXids)
    if (number >= xid.first && number <= xid.last) return xid;
  return kUndocumented;
}

std::span<const Xid> Xids() { return kXids; }

Verdict JudgeXid(std::int64_t number, std::string_view text) {
  if (number == 999) return {kWarn, "an XID that the driver did not identify"};
  const Xid& xid = FindXid(number);
  Verdict verdict{xid.severity, "XID " + std::to_string(number) + ": " + std::string(xid.name)};
  if (number >= 144 && number <= 150) verdict.severity = OfNvLink5(text, xid.severity);
  if (number != 154) return verdict;
  if (const auto action = TargetAction(text)) {
    verdict.severity = JudgeRecoveryAction(*action).severity;
    verdict.reason += " to \"" + std::string(RecoveryActionName(*action)) + "\"";
  }
  return verdict;
}

std::string_view RecoveryActionName(std::int64_t action) {
  if (action < 0 || action >= static_cast<std::int64_t>(kRecoveryActions.size())) return "unknown";
  return kRecoveryActions[static_cast<std::size_t>(action)].name;
}

Verdict JudgeRecoveryAction(std::int64_t action) {
  const bool known = action >= 0 && action < static_cast<std::int64_t>(kRecoveryActions.size());
  // An unknown action of a newer driver is something that no known action does: treat it as a
  // reboot.
  const Severity severity =
      known ? kRecoveryActions[static_cast<std::size_t>(action)].severity : kGone;
  std::string name = known ? std::string(RecoveryActionName(action))
                           : "an unknown action (" + std::to_string(action) + ")";
  return {severity, "the driver requests: " + std::move(name)};
}

}  // namespace penstock::backend::nvidia
