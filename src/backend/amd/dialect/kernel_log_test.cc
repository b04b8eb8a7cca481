// Tests every form of line that amdgpu is known to write of a GPU's health, and lines that only
// resemble them. Those with a comment are from real machines, with other addresses.
#include "backend/amd/dialect/kernel_log.h"

#include <string>

#include <gtest/gtest.h>

#include "backend/amd/dialect/kinds.h"

namespace penstock::backend::amd {
namespace {

using device::Severity;

struct Line {
  const char* line;
  std::string_view kind;
  std::int64_t code;
  const char* name;
  Severity severity;
};

// Prints the test's parameter in lists of tests; the default prints the object's bytes.
void PrintTo(const Line& line, std::ostream* out) { *out << line.kind << ' ' << line.code; }

class AmdKnownLine : public testing::TestWithParam<Line> {};

TEST_P(AmdKnownLine, IsUnderstood) {
  const Line& expected = GetParam();
  for (const char* tag : {"", "amdgpu: ", "amdgpu: {7}", "{7} ", "[drm] *ERROR* ",
                          "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* "}) {
    const std::string line = std::string("amdgpu 0000:26:00.0: ") + tag + expected.line;
    const auto evidence = ParseKernelLine(line);
    ASSERT_TRUE(evidence.has_value()) << line;
    EXPECT_EQ(evidence->source, device::EvidenceSource::kKernelLog);
    EXPECT_EQ(evidence->kind, expected.kind);
    ASSERT_TRUE(evidence->pci.has_value());
    EXPECT_EQ(ToString(*evidence->pci), "0000:26:00.0");
    EXPECT_EQ(evidence->code, expected.code);
    EXPECT_EQ(evidence->text, expected.name);
    EXPECT_FALSE(evidence->standing);
    const device::Verdict verdict = JudgeLine(*evidence);
    EXPECT_EQ(verdict.severity, expected.severity) << line;
    EXPECT_FALSE(verdict.reason.empty());
    EXPECT_FALSE(verdict.silences) << "an answer does not show that it is over";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, AmdKnownLine,
    testing::Values(
        Line{"uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!", kFatalError, 0, "",
             Severity::kReset},  // ROCm #4021
        Line{"Uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!", kFatalError, 0, "",
             Severity::kReset},
        Line{"socket: 0, die: 1, 2 new uncorrectable hardware errors detected in umc block",
             kUncorrectableError, 0, "umc", Severity::kReset},
        Line{"3 new uncorrectable hardware errors detected in gfx block", kUncorrectableError, 0,
             "gfx", Severity::kReset},
        Line{"Uncorrectable error detected in UMC inst: 3, channel: 1", kUncorrectableError, 0,
             "umc", Severity::kReset},
        Line{"GPU reset for umc RAS poison consumption is issued!", kPoisonConsumed, kWithReset,
             "umc", Severity::kReset},
        Line{"gfx RAS poison consumption is issued!", kPoisonConsumed, 0, "gfx", Severity::kDrain},
        Line{"[Hardware Error]: Accelerator Check Architecture events logged", kHardwareError, 0,
             "", Severity::kWarn},
        Line{"GPU reset begin!", kResetBegun, 0, "", Severity::kDrain},
        Line{"GPU reset begin!. Source:  3", kResetBegun, 0, "", Severity::kDrain},
        Line{"GPU reset(12) succeeded!", kResetDone, 0, "", Severity::kDrain},
        Line{"GPU reset(2) failed", kResetFailed, 0, "", Severity::kReset},
        Line{"GPU reset(2) failed with error -110 ", kResetFailed, 110, "", Severity::kReset},
        Line{"GPU reset end with ret = -19", kResetFailed, 19, "", Severity::kReset},
        Line{"GPU Recovery Failed: -19", kResetFailed, 19, "", Severity::kReset},
        Line{"VRAM is lost due to GPU reset!", kMemoryLost, 0, "", Severity::kDrain},
        Line{"device lost from bus!", kLost, 0, "", Severity::kGone},
        Line{"qcm fence wait loop timeout expired", kSchedulerTimeout, 0, "", Severity::kDrain},
        Line{"ring gfx_0.0.0 timeout, signaled seq=7073226, emitted seq=7073228", kRingTimeout, 0,
             "gfx_0.0.0", Severity::kWarn},
        Line{"ring comp_1.2.0 timeout, but soft recovered", kRingTimeout, 0, "comp_1.2.0",
             Severity::kWarn},
        Line{"Fence fallback timer expired on ring sdma0", kFenceFallback, 0, "sdma0",
             Severity::kIgnore},
        Line{"device wedged, needs recovery", kWedged, kNeedsRecovery, "", Severity::kReset},
        Line{"device wedged, but recovered through reset", kWedged, 0, "", Severity::kWarn},
        Line{"device wedged, but no recovery needed", kWedged, 0, "", Severity::kWarn}));

TEST(AmdKernelLine, SaysNothingWhereNothingIsSaid) {
  for (const char* line :
       {"", "amdgpu", "amdgpu ", "amdgpu : GPU reset begin!",
        "amdgpu 0000:05:00.0:", "amdgpu 0000:05:00.0: ", "amdgpu 0000:05:00.0: amdgpu: ",
        "amdgpu zz:05:00.0: GPU reset begin!", "amdgpu 0000:05:20.0: GPU reset begin!",
        "amdgpu 0000:05:00.0 GPU reset begin!", "amdgpu: GPU reset begin!",
        // Without an address: of older kernels.
        "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=1, emitted",
        "[drm] VRAM is lost due to GPU reset!",
        "amdgpu 0000:05:00.0: GPU reset succeeded, trying to resume",
        "amdgpu 0000:05:00.0: GPU reset end with ret = 0",
        "amdgpu 0000:05:00.0: GPU reset() succeeded!",
        "amdgpu 0000:05:00.0: GPU reset(99999999999999999999) succeeded!",
        "amdgpu 0000:05:00.0: Ring gfx_0.0.0 reset succeeded",
        "amdgpu 0000:05:00.0: ring  timeout, signaled seq=1",
        "amdgpu 0000:05:00.0: socket: 0, die: x, 2 new uncorrectable hardware errors detected in "
        "umc block",
        "amdgpu 0000:05:00.0: 4 new correctable hardware errors detected in umc block",
        "amdgpu 0000:05:00.0: {GPU reset begin!", "amdgpu 0000:05:00.0: [drm:GPU reset begin!",
        "xe 0000:05:00.0: [drm] device wedged, needs recovery",
        "nvidia 0000:05:00.0: GPU reset begin!"})
    EXPECT_FALSE(ParseKernelLine(line).has_value()) << line;
}

TEST(AmdKernelLine, ReportsThatTheDriverWasLoaded) {
  const auto evidence = ParseKernelLine("amdgpu: Topology: Add CPU node");
  ASSERT_TRUE(evidence.has_value());
  EXPECT_EQ(evidence->kind, "driver-loaded");
  EXPECT_FALSE(evidence->pci.has_value());
  EXPECT_FALSE(ParseKernelLine("amdgpu: Topology: Add dGPU node [0x74a1:0x1002]"))
      << "also at a change of the mode";
}

/// A program chooses its name, which the driver writes into its lines.
TEST(AmdKernelLine, IsNotFooledByTheNameOfAProgram) {
  const std::string gpu = "amdgpu 0000:05:00.0: ";
  for (const char* name :
       {"GPU reset begin!", "device lost from bus!", "amdgpu: device wedged, needs recovery",
        ": device lost from bus!", "amdgpu 0000:05:00.0: device lost from bus!",
        "x\\x0aamdgpu 0000:05:00.0: device lost from bus!", "ring gfx timeout, signaled seq=1"}) {
    const std::string task = std::string(name) + " pid 4711 thread " + name + " pid 4711";
    for (const std::string& line :
         {gpu + "amdgpu: Process information: process " + task, gpu + "amdgpu:  Process " + task,
          gpu + " Process " + task,
          gpu + "amdgpu: [gfxhub] page fault (src_id:0 ring:153 vmid:8 pasid:32771, for process " +
              task + ")",
          "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process " + task,
          "audit: comm=\"" + std::string(name) + "\"",
          // The longest name of a program begins a line of the kernel.
          std::string(name).substr(0, 15) + "[4711]: segfault at 0 ip 0 sp 0 error 4",
          "systemd[1]: " + gpu + name})
      EXPECT_FALSE(ParseKernelLine(line).has_value()) << line;
  }
}

TEST(AmdKernelLine, KeepsNamesOfRingsWithinBounds) {
  const std::string gpu = "amdgpu 0000:05:00.0: ring ";
  EXPECT_FALSE(ParseKernelLine(gpu + std::string(100000, 'x') + " timeout, signaled seq=1"));
  EXPECT_FALSE(ParseKernelLine(gpu + "gfx\xff\"\n timeout, signaled seq=1"));
}

}  // namespace
}  // namespace penstock::backend::amd
