// Tests CPUID's bits with made-up answers, and compares this machine's answers with its kernel's.
#include "os/cpu_features.h"

#include <cstring>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/strings.h"
#include "os/core/file.h"

namespace penstock::os {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

using Answers = std::map<std::pair<std::uint32_t, std::uint32_t>, CpuidRegisters>;

CpuidRegisters First(const char* vendor, std::uint32_t most) {
  CpuidRegisters first{.eax = most};
  std::memcpy(&first.ebx, vendor, 4);
  std::memcpy(&first.edx, vendor + 4, 4);
  std::memcpy(&first.ecx, vendor + 8, 4);
  return first;
}

CpuFeatures Decode(const Answers& answers, std::uint64_t xcr0 = 0xe7) {
  const auto ask = [&](std::uint32_t leaf, std::uint32_t subleaf) {
    const auto found = answers.find({leaf, subleaf});
    return found == answers.end() ? CpuidRegisters{} : found->second;
  };
  return DecodeCpuid(ask, xcr0);
}

/// Sapphire Rapids: family 6, model 143, with XSAVE, AVX, AVX2, AVX-512F, AMX.
Answers Intel() {
  return {{{0, 0}, First("GenuineIntel", 7)},
          {{1, 0}, {.eax = 0x000806f8, .ecx = 7u << 26 | 1u << 12, .edx = 1u << 26}},
          {{7, 0}, {.ebx = 1u << 5 | 1u << 16, .edx = 1u << 24}}};
}

TEST(CpuFeatures, AreNamedAsNfdNamesThem) {
  const CpuFeatures cpu = Decode(Intel());
  EXPECT_EQ(cpu.vendor, "Intel");
  EXPECT_EQ(cpu.family, 6);
  EXPECT_EQ(cpu.model, 143);
  EXPECT_THAT(cpu.flags,
              ElementsAre("AMXTILE", "AVX", "AVX2", "AVX512F", "FMA3", "OSXSAVE", "SSE2", "XSAVE"));
}

TEST(CpuFeatures, CountOnlyWhatTheKernelKeeps) {
  EXPECT_THAT(Decode(Intel(), 0x7).flags,
              AllOf(Contains("AVX2"), Not(Contains("AVX512F")), Not(Contains("AMXTILE"))));
  EXPECT_THAT(Decode(Intel(), 0x1).flags,
              AllOf(Not(Contains("AVX")), Not(Contains("AVX2")), Contains("FMA3")));
  Answers off = Intel();
  off[{1, 0}].ecx &= ~(1u << 27);
  EXPECT_THAT(Decode(off).flags, ElementsAre("SSE2", "XSAVE"));
}

TEST(CpuFeatures, AskNoLeafThatIsNotThere) {
  Answers old = Intel();
  old[{0, 0}] = First("GenuineIntel", 1);
  old[{0x80000001, 0}] = {
      .ecx = 1u << 2};  // Intel processors answer an unknown leaf with another leaf's data
  EXPECT_THAT(Decode(old).flags,
              AllOf(Contains("AVX"), Not(Contains("AVX2")), Not(Contains("SVM"))));
  EXPECT_THAT(Decode({}).flags, IsEmpty());
  EXPECT_EQ(Decode({}).vendor, "VendorUnknown");
}

TEST(CpuFeatures, KeepAmdsOwnLeavesToAmd) {
  Answers answers{{{0, 0}, First("AuthenticAMD", 7)},     {{1, 0}, {.eax = 0x00a00f11}},
                  {{0x80000000, 0}, {.eax = 0x8000001f}}, {{0x80000001, 0}, {.ecx = 1u << 2}},
                  {{0x8000000a, 0}, {.edx = 1}},          {{0x8000001f, 0}, {.eax = 3}}};
  const CpuFeatures cpu = Decode(answers);
  EXPECT_EQ(cpu.vendor, "AMD");
  EXPECT_EQ(cpu.family, 25);
  EXPECT_EQ(cpu.model, 1);
  EXPECT_THAT(cpu.flags, ElementsAre("SEV", "SME", "SVM", "SVMNP"));
  answers[{0, 0}] = First("HygonGenuine", 7);
  EXPECT_THAT(Decode(answers).flags, ElementsAre("SVM", "SVMNP"));
}

TEST(CpuFeatures, OfArmComeFromCpuinfo) {
  const CpuFeatures grace = DecodeCpuinfo(
      "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd sve2\nCPU implementer\t: "
      "0x41\nCPU architecture: 8\n"
      "CPU variant\t: 0x0\nCPU part\t: 0xd4f\nCPU revision\t: 0\n\nprocessor\t: 1\nFeatures\t: "
      "other\nCPU implementer\t: 0x4e\n");
  EXPECT_EQ(grace, (CpuFeatures{"ARM", 0x0f, 0xd4f0, {"ASIMD", "FP", "SVE2"}}));
  EXPECT_EQ(DecodeCpuinfo("CPU implementer : 0x4e\n").vendor, "NVIDIA");
  EXPECT_EQ(DecodeCpuinfo("processor: 0\nvendor_id: IBM\n"), CpuFeatures{});
}

#if defined(__x86_64__)
TEST(CpuFeatures, OfThisMachineAgreeWithItsKernel) {
  const auto text = ReadFile("/proc/cpuinfo");
  ASSERT_TRUE(text.ok());
  const auto line = text->find("\nflags");
  ASSERT_NE(line, std::string::npos);
  const auto words = base::Split(
      std::string_view(*text).substr(line + 1, text->find('\n', line + 1) - line - 1), ' ');
  const std::set<std::string> kernel(words.begin(), words.end());
  const CpuFeatures cpu = ReadCpuFeatures("/nonexistent");
  const std::set<std::string> ours(cpu.flags.begin(), cpu.flags.end());
  EXPECT_NE(cpu.vendor, "");
  const std::pair<const char*, const char*> same[] = {{"avx", "AVX"},
                                                      {"avx2", "AVX2"},
                                                      {"fma", "FMA3"},
                                                      {"aes", "AESNI"},
                                                      {"avx512f", "AVX512F"},
                                                      {"avx512_vnni", "AVX512VNNI"},
                                                      {"sha_ni", "SHA"},
                                                      {"gfni", "GFNI"},
                                                      {"avx512_bf16", "AVX512BF16"},
                                                      {"amx_tile", "AMXTILE"},
                                                      {"hypervisor", "HYPERVISOR"}};
  for (const auto& [theirs, name] : same)
    EXPECT_EQ(ours.contains(name), kernel.contains(theirs)) << name;
}
#endif

}  // namespace
}  // namespace penstock::os
