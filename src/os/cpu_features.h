// What the processor is and can do, by the names that Node Feature Discovery gives it (those of the Go package klauspost/cpuid on x86, of
// the kernel's hwcaps on Arm).
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

/// Of the processor this runs on: by the CPUID instruction on x86, else from /proc/cpuinfo. Any thread.
CpuFeatures ReadCpuFeatures(const std::string& proc_root);

/// The registers that CPUID leaves.
struct CpuidRegisters {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};
using Cpuid = std::function<CpuidRegisters(std::uint32_t leaf, std::uint32_t subleaf)>;

/// What the answers mean: Intel SDM volume 2, CPUID; AMD APM volume 3, appendix E. `xcr0` tells which registers the kernel keeps (XGETBV
/// 0): AVX that it does not keep cannot be used.
CpuFeatures DecodeCpuid(const Cpuid& cpuid, std::uint64_t xcr0);

/// What /proc/cpuinfo says on 64-bit Arm.
CpuFeatures DecodeCpuinfo(std::string_view cpuinfo);

}  // namespace penstock::os
