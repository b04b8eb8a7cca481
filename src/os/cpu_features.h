// Identifies the processor and its features, by the names that Node Feature Discovery uses (those
// of the Go package klauspost/cpuid on x86, of the kernel's hwcaps on Arm).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::os {

struct CpuFeatures {
  std::string vendor;  ///< "Intel", "AMD", "ARM", "NVIDIA"
  int family = 0, model = 0;
  std::vector<std::string> flags;  ///< "AVX2", sorted
  bool operator==(const CpuFeatures&) const = default;
};

/// Reads the features of the processor that this thread runs on: with the CPUID instruction on x86,
/// otherwise from /proc/cpuinfo. Any thread.
CpuFeatures ReadCpuFeatures(const std::string& proc_root);

/// The registers that the CPUID instruction sets.
struct CpuidRegisters {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};
using Cpuid = std::function<CpuidRegisters(std::uint32_t leaf, std::uint32_t subleaf)>;

/// Decodes CPUID (Intel SDM volume 2, CPUID; AMD APM volume 3, appendix E). `xcr0` (XGETBV 0) says
/// which registers the kernel saves: AVX cannot be used if the kernel does not save its registers.
CpuFeatures DecodeCpuid(const Cpuid& cpuid, std::uint64_t xcr0);

/// Decodes the text of /proc/cpuinfo on 64-bit Arm.
CpuFeatures DecodeCpuinfo(std::string_view cpuinfo);

}  // namespace penstock::os
