// The texts: Linux, drivers/gpu/drm/amd/amdgpu (amdgpu_device.c, amdgpu_ras.c, amdgpu_job.c,
// amdgpu_fence.c, amdgpu_aca.c), amdkfd (kfd_device_queue_manager.c, kfd_topology.c), and
// drivers/gpu/drm/drm_drv.c (drm_dev_wedged_event).
#include "backend/amd/dialect/kernel_log.h"

#include <algorithm>
#include <array>
#include <string>

#include "backend/amd/dialect/kinds.h"
#include "base/core/strings.h"
#include "device/kinds.h"

namespace penstock::backend::amd {
namespace {

using device::Evidence;
using device::Severity;

constexpr std::size_t kLongestAddress = 16, kLongestName = 32;

/// Of a driver's own names: rings, blocks of the chip, functions.
bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

bool Skip(std::string_view& line, std::string_view prefix) {
  if (!line.starts_with(prefix)) return false;
  line.remove_prefix(prefix.size());
  return true;
}

std::string_view TakeName(std::string_view& line) {
  const auto end = std::ranges::find_if_not(line, IsNameCharacter);
  const std::string_view name = line.substr(0, static_cast<std::size_t>(end - line.begin()));
  line.remove_prefix(name.size());
  return name.size() > kLongestName ? std::string_view() : name;
}

/// A number without or with a sign.
std::optional<std::int64_t> TakeNumber(std::string_view& line) {
  constexpr std::size_t kMaxDigits = 18;
  const bool negative = Skip(line, "-");
  const auto end = std::ranges::find_if_not(line, [](char c) { return c >= '0' && c <= '9'; });
  const std::string_view digits = line.substr(0, static_cast<std::size_t>(end - line.begin()));
  if (digits.empty() || digits.size() > kMaxDigits) return std::nullopt;
  line.remove_prefix(digits.size());
  const auto number = base::ParseInt(digits);
  return number && negative ? -*number : number;
}

/// "[drm:amdgpu_job_timedout [amdgpu]] ".
bool SkipFunction(std::string_view& line) {
  std::string_view rest = line;
  if (!Skip(rest, "[drm:") || TakeName(rest).empty()) return false;
  (void)Skip(rest, " [amdgpu]");
  if (!Skip(rest, "] ")) return false;
  line = rest;
  return true;
}

/// "{12}", "{12} ": the number of the event.
bool SkipEventNumber(std::string_view& line) {
  std::string_view rest = line;
  if (!Skip(rest, "{") || !TakeNumber(rest) || !Skip(rest, "}")) return false;
  (void)Skip(rest, " ");
  line = rest;
  return true;
}

/// What precedes the message behind the address, by the driver's version.
void SkipTags(std::string_view& line) {
  while (Skip(line, "amdgpu: ") || Skip(line, "[drm] ") || Skip(line, "*ERROR* ") ||
         SkipFunction(line) || SkipEventNumber(line)) {}
}

/// A message that begins so.
struct Beginning {
  std::string_view text, kind;
  std::int64_t code = 0;
};
constexpr std::array kBeginnings{
    Beginning{"uncorrectable hardware error(ERREVENT", kFatalError},
    Beginning{"Uncorrectable hardware error(ERREVENT", kFatalError},
    Beginning{"[Hardware Error]: Accelerator Check Architecture events logged", kHardwareError},
    Beginning{"GPU reset begin!", kResetBegun},
    Beginning{"VRAM is lost due to GPU reset!", kMemoryLost},
    Beginning{"device lost from bus!", kLost},
    Beginning{"qcm fence wait loop timeout expired", kSchedulerTimeout},
    Beginning{"device wedged, needs recovery", kWedged, kNeedsRecovery},
    Beginning{"device wedged, but recovered through reset", kWedged},
    Beginning{"device wedged, but no recovery needed", kWedged},
};

struct Said {
  std::string_view kind;
  std::int64_t code = 0;
  std::string_view name;
};

/// "GPU reset(3) succeeded!", "GPU reset(3) failed", "… failed with error -110", "GPU reset end
/// with ret = -19", "GPU Recovery Failed: -19". The code of a failure is the error without its
/// sign; 0: not said.
std::optional<Said> ResetEnded(std::string_view line) {
  const auto failed = [](std::optional<std::int64_t> error) {
    return Said{kResetFailed, error.value_or(0) < 0 ? -*error : error.value_or(0)};
  };
  if (Skip(line, "GPU reset end with ret = ") || Skip(line, "GPU Recovery Failed: ")) {
    const auto error = TakeNumber(line);
    return error && *error != 0 ? std::optional(failed(error)) : std::nullopt;
  }
  if (!Skip(line, "GPU reset(") || !TakeNumber(line) || !Skip(line, ") ")) return std::nullopt;
  if (Skip(line, "succeeded!")) return Said{kResetDone};
  if (!Skip(line, "failed")) return std::nullopt;
  return failed(Skip(line, " with error ") ? TakeNumber(line) : std::nullopt);
}

/// "GPU reset for umc RAS poison consumption is issued!", "gfx RAS poison consumption is issued!".
std::optional<Said> PoisonConsumed(std::string_view line) {
  const bool with_reset = Skip(line, "GPU reset for ");
  const std::string_view block = TakeName(line);
  if (block.empty() || !Skip(line, " RAS poison consumption is issued!")) return std::nullopt;
  return Said{kPoisonConsumed, with_reset ? kWithReset : 0, block};
}

/// "socket: 0, die: 1, 2 new uncorrectable hardware errors detected in umc block", also without
/// socket and die; "Uncorrectable error detected in UMC inst: 1, …".
std::optional<Said> ErrorsCounted(std::string_view line) {
  if (line.starts_with("Uncorrectable error detected in UMC inst: "))
    return Said{kUncorrectableError, 0, "umc"};
  for (const std::string_view place : {"socket: ", "die: "})
    if (Skip(line, place) && (!TakeNumber(line) || !Skip(line, ", "))) return std::nullopt;
  if (!TakeNumber(line) || !Skip(line, " new uncorrectable hardware errors detected in "))
    return std::nullopt;
  const std::string_view block = TakeName(line);
  if (block.empty() || !Skip(line, " block")) return std::nullopt;
  return Said{kUncorrectableError, 0, block};
}

/// "ring gfx_0.0.0 timeout, signaled seq=12, emitted seq=14", "ring sdma0 timeout, but soft
/// recovered", "Fence fallback timer expired on ring sdma0".
std::optional<Said> RingTimedOut(std::string_view line) {
  if (Skip(line, "Fence fallback timer expired on ring ")) {
    const std::string_view ring = TakeName(line);
    return ring.empty() ? std::nullopt : std::optional(Said{kFenceFallback, 0, ring});
  }
  if (!Skip(line, "ring ")) return std::nullopt;
  const std::string_view ring = TakeName(line);
  if (ring.empty() || !Skip(line, " timeout, ")) return std::nullopt;
  if (!line.starts_with("signaled seq=") && !line.starts_with("but soft recovered"))
    return std::nullopt;
  return Said{kRingTimeout, 0, ring};
}

std::optional<Said> MessageOf(std::string_view line) {
  for (const Beginning& one : kBeginnings)
    if (line.starts_with(one.text)) return Said{one.kind, one.code};
  for (const auto form : {ResetEnded, PoisonConsumed, ErrorsCounted, RingTimedOut})
    if (const auto said = form(line)) return said;
  return std::nullopt;
}

}  // namespace

std::optional<Evidence> ParseKernelLine(std::string_view line) {
  if (line.starts_with("amdgpu: Topology: Add CPU node"))
    return Evidence{.source = device::EvidenceSource::kKernelLog,
                    .kind = std::string(device::kDriverLoaded)};
  if (!Skip(line, "amdgpu ")) return std::nullopt;
  const auto colon = line.substr(0, kLongestAddress + 2).find(": ");
  if (colon == std::string_view::npos) return std::nullopt;
  const auto pci = device::ParsePciAddress(line.substr(0, colon));
  if (!pci) return std::nullopt;
  line.remove_prefix(colon + 2);
  SkipTags(line);
  const auto said = MessageOf(line);
  if (!said) return std::nullopt;
  return Evidence{.source = device::EvidenceSource::kKernelLog,
                  .pci = pci,
                  .kind = std::string(said->kind),
                  .code = said->code,
                  .text = std::string(said->name)};
}

device::Verdict JudgeLine(const Evidence& evidence) {
  const std::string_view kind = evidence.kind;
  const std::string in_block = evidence.text.empty() ? "" : " in block " + evidence.text;
  if (kind == kFatalError) return {Severity::kReset, "the GPU had a fatal hardware error"};
  if (kind == kUncorrectableError)
    return {Severity::kReset, "the driver found uncorrectable errors" + in_block};
  if (kind == kPoisonConsumed && evidence.code == kWithReset)
    return {Severity::kReset, "data that was marked as bad was used" + in_block +
                                  ", for which the driver resets the GPU"};
  if (kind == kPoisonConsumed)
    return {Severity::kDrain, "data that was marked as bad was used" + in_block};
  if (kind == kHardwareError) return {Severity::kWarn, "the driver recorded a hardware error"};
  if (kind == kResetBegun) return {Severity::kDrain, "the driver began to reset the GPU"};
  if (kind == kResetDone)
    return {Severity::kDrain, "the driver has reset the GPU, by which running work was lost"};
  if (kind == kResetFailed)
    return {Severity::kReset,
            "the driver could not reset the GPU" +
                (evidence.code == 0 ? std::string()
                                    : " (error " + std::to_string(evidence.code) + ")")};
  if (kind == kMemoryLost) return {Severity::kDrain, "a reset lost what was in the GPU's memory"};
  if (kind == kLost) return {Severity::kGone, "the GPU is no longer on the bus"};
  if (kind == kSchedulerTimeout)
    return {Severity::kDrain, "the GPU did not stop its running work in time"};
  if (kind == kRingTimeout)
    return {Severity::kWarn, "a command did not end in time on ring " + evidence.text};
  if (kind == kWedged && evidence.code == kNeedsRecovery)
    return {Severity::kReset, "the driver gave the GPU up (wedged)"};
  if (kind == kWedged) return {Severity::kWarn, "the GPU hung and the driver recovered it"};
  // Of the rest, a late interrupt is usual while the driver starts.
  return {Severity::kIgnore, kind == kFenceFallback
                                 ? "an interrupt did not arrive on ring " + evidence.text
                                 : evidence.kind};
}

}  // namespace penstock::backend::amd
