// A table of CPUID bits, and code for the few features that depend on more than one bit.
#include "os/cpu_features.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/core/strings.h"
#include "os/core/file.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace penstock::os {
namespace {

constexpr std::uint32_t kExtended = 0x80000000;

/// Bits of one register. `needs` is a required flag; "ymm" and "zmm": the kernel must save these
/// registers; "amd": only on AMD processors.
struct Bits {
  std::uint32_t leaf, subleaf;
  std::uint32_t CpuidRegisters::*part;
  const char* needs;
  const char* flags;  ///< "bit:name", separated by blanks
};

/// Ordered so that required flags come before the entries that need them.
constexpr Bits kTable[] = {
    {0x1, 0, &CpuidRegisters::edx, "",
     "0:X87 8:CMPXCHG8 11:SYSEE 15:CMOV 23:MMX 24:FXSR 25:FXSROPT 25:SSE 26:SSE2"},
    {0x1, 0, &CpuidRegisters::ecx, "",
     "0:SSE3 1:CLMUL 5:VMX 9:SSSE3 13:CX16 19:SSE4 20:SSE42 22:MOVBE 23:POPCNT 25:AESNI 26:XSAVE "
     "27:OSXSAVE 29:F16C 30:RDRAND "
     "31:HYPERVISOR"},
    {0x1, 0, &CpuidRegisters::ecx, "OSXSAVE", "12:FMA3"},
    {0x1, 0, &CpuidRegisters::ecx, "ymm", "28:AVX"},
    {0x7, 0, &CpuidRegisters::ebx, "",
     "2:SGX 3:BMI1 4:HLE 9:ERMS 11:RTM 14:MPX 18:RDSEED 19:ADX 29:SHA"},
    {0x7, 0, &CpuidRegisters::ebx, "AVX", "5:AVX2"},
    {0x7, 0, &CpuidRegisters::ebx, "BMI1", "8:BMI2"},
    {0x7, 0, &CpuidRegisters::ebx, "zmm",
     "16:AVX512F 17:AVX512DQ 21:AVX512IFMA 26:AVX512PF 27:AVX512ER 28:AVX512CD 30:AVX512BW "
     "31:AVX512VL"},
    {0x7, 0, &CpuidRegisters::ecx, "",
     "5:WAITPKG 7:CETSS 8:GFNI 9:VAES 10:VPCLMULQDQ 13:TME 23:KEYLOCKER 25:CLDEMOTE 27:MOVDIRI "
     "28:MOVDIR64B 29:ENQCMD 30:SGXLC"},
    {0x7, 0, &CpuidRegisters::ecx, "zmm",
     "1:AVX512VBMI 3:AMXFP8 6:AVX512VBMI2 11:AVX512VNNI 12:AVX512BITALG 14:AVX512VPOPCNTDQ"},
    {0x7, 0, &CpuidRegisters::edx, "",
     "4:FSRM 9:SRBDS_CTRL 10:MD_CLEAR 11:RTM_ALWAYS_ABORT 14:SERIALIZE 15:HYBRID_CPU 16:TSXLDTRK "
     "18:PCONFIG 20:CETIBT 26:IBPB 27:STIBP "
     "28:FLUSH_L1D 29:IA32_ARCH_CAP 30:IA32_CORE_CAP 31:SPEC_CTRL_SSBD"},
    {0x7, 0, &CpuidRegisters::edx, "zmm",
     "8:AVX512VP2INTERSECT 22:AMXBF16 23:AVX512FP16 24:AMXTILE 25:AMXINT8"},
    {0x7, 1, &CpuidRegisters::eax, "",
     "1:SM3_X86 2:SM4_X86 7:CMPCCXADD 10:MOVSB_ZL 11:STOSB_SHORT 12:CMPSB_SCADBS_SHORT 17:FRED "
     "22:HRESET 23:AVXIFMA 26:LAM"},
    {0x7, 1, &CpuidRegisters::eax, "AVX", "4:AVXVNNI"},
    {0x7, 1, &CpuidRegisters::eax, "zmm", "5:AVX512BF16 19:WRMSRNS 21:AMXFP16 27:MSRLIST"},
    {0x7, 1, &CpuidRegisters::edx, "",
     "4:AVXVNNIINT8 5:AVXNECONVERT 6:AMXTRANSPOSE 7:AMXTF32 8:AMXCOMPLEX 10:AVXVNNIINT16 "
     "14:PREFETCHI 19:AVX10 21:APX_F"},
    {0x7, 2, &CpuidRegisters::edx, "", "0:PSFD 1:IDPRED_CTRL 2:RRSBA_CTRL 4:BHI_CTRL 5:MCDT_NO"},
    {0xd, 1, &CpuidRegisters::eax, "XSAVE", "0:XSAVEOPT 1:XSAVEC 2:XGETBV1 3:XSAVES"},
    {0x12, 0, &CpuidRegisters::eax, "SGX", "12:SGXPQC"},
    {0x24, 0, &CpuidRegisters::ebx, "AVX10", "16:AVX10_128 17:AVX10_256 18:AVX10_512"},
    {0x80000001, 0, &CpuidRegisters::ecx, "",
     "0:LAHF 2:SVM 5:LZCNT 5:POPCNT 6:SSE4A 10:IBS 22:TOPEXT"},
    {0x80000001, 0, &CpuidRegisters::ecx, "AVX", "11:XOP 16:FMA4"},
    {0x80000001, 0, &CpuidRegisters::edx, "",
     "11:SYSCALL 20:NX 22:MMXEXT 23:MMX 24:FXSR 25:FXSROPT 27:RDTSCP 30:AMD3DNOWEXT 31:AMD3DNOW"},
    {0x80000007, 0, &CpuidRegisters::ebx, "", "0:MCAOVERFLOW 1:SUCCOR 2:HWA"},
    {0x80000007, 0, &CpuidRegisters::edx, "", "9:CPBOOST"},
    {0x80000008, 0, &CpuidRegisters::ebx, "",
     "0:CLZERO 1:MSRIRC 3:INVLPGB 4:RDPRU 8:MCOMMIT 9:WBNOINVD 12:IBPB 13:INT_WBINVD 14:IBRS "
     "15:STIBP 17:STIBP_ALWAYSON 18:IBRS_PREFERRED "
     "19:IBRS_PROVIDES_SMP 20:EFER_LMSLE_UNS 21:TLB_FLUSH_NESTED 23:PPIN 24:SPEC_CTRL_SSBD 27:CPPC "
     "28:PSFD"},
    {0x8000000a, 0, &CpuidRegisters::edx, "SVM",
     "0:SVMNP 1:LBRVIRT 2:SVML 3:NRIPS 4:TSCRATEMSR 5:VMCBCLEAN 6:SVMFBASID 7:SVMDA 10:SVMPF "
     "12:SVMPFT"},
    {0x8000001a, 0, &CpuidRegisters::eax, "", "0:FP128 1:MOVU 2:FP256"},
    {0x8000001b, 0, &CpuidRegisters::eax, "IBS",
     "0:IBSFFV 1:IBSFETCHSAM 2:IBSOPSAM 3:IBSRDWROPCNT 4:IBSOPCNT 5:IBSBRNTRGT 6:IBSOPCNTEXT "
     "7:IBSRIPINVALIDCHK 8:IBS_OPFUSE "
     "9:IBS_FETCH_CTLX 10:IBS_OPDATA4 11:IBS_ZEN4"},
    {0x8000001f, 0, &CpuidRegisters::eax, "amd",
     "0:SME 1:SEV 2:MSR_PAGEFLUSH 3:SEV_ES 4:SEV_SNP 5:VMPL 10:SME_COHERENT 11:SEV_64BIT "
     "12:SEV_RESTRICTED 13:SEV_ALTERNATIVE "
     "14:SEV_DEBUGSWAP 15:IBS_PREVENTHOST 16:VTE 24:VMSA_REGPROT"},
    {0x80000021, 0, &CpuidRegisters::eax, "amd",
     "5:TSA_VERW_CLEAR 23:AVX512BMM 27:SBPB 28:IBPB_BRTYPE 29:SRSO_NO 30:SRSO_USER_KERNEL_NO "
     "31:SRSO_MSR_FIX"},
    {0x80000021, 0, &CpuidRegisters::ecx, "amd", "1:TSA_L1_NO 2:TSA_SQ_NO"},
};

std::string Vendor(const CpuidRegisters& first) {
  std::string text(12, '\0');
  std::memcpy(text.data(), &first.ebx, 4);
  std::memcpy(text.data() + 4, &first.edx, 4);
  std::memcpy(text.data() + 8, &first.ecx, 4);
  static constexpr std::pair<std::string_view, const char*> kVendors[] = {
      {"GenuineIntel", "Intel"}, {"AuthenticAMD", "AMD"}, {"AMDisbetter!", "AMD"},
      {"HygonGenuine", "Hygon"}, {"CentaurHauls", "VIA"}, {"VIA VIA VIA ", "VIA"},
      {"TCGTCGTCGTCG", "QEMU"}};
  for (const auto& [name, vendor] : kVendors)
    if (text == name) return vendor;
  return "VendorUnknown";
}

void SetFamily(std::uint32_t signature, CpuFeatures& cpu) {
  cpu.family = static_cast<int>(signature >> 8 & 0xf);
  cpu.model = static_cast<int>(signature >> 4 & 0xf);
  const bool extended = cpu.family == 0x6 || cpu.family == 0xf;
  if (cpu.family == 0xf) cpu.family += static_cast<int>(signature >> 20 & 0xff);
  if (extended) cpu.model += static_cast<int>(signature >> 12 & 0xf0);
}

/// Which of the wide registers the kernel saves across task switches: XCR0's bits 1, 2 and 5 to 7.
void AddKept(const CpuidRegisters& features, std::uint64_t xcr0, std::set<std::string>& flags) {
  constexpr std::uint32_t kXsaveAndEnabled = 3u << 26;
  if ((features.ecx & kXsaveAndEnabled) != kXsaveAndEnabled || (xcr0 & 0x6) != 0x6) return;
  flags.insert("ymm");
  if ((xcr0 & 0xe0) == 0xe0) flags.insert("zmm");
}

void AddByHand(const CpuFeatures& cpu, const Cpuid& cpuid, std::uint32_t most,
               std::set<std::string>& flags) {
  const bool amd = cpu.vendor == "AMD";
  if (flags.contains("AVX") && ((cpu.vendor == "Intel" && cpu.family == 6 && cpu.model < 60) ||
                                (amd && (cpu.family < 23 || (cpu.family == 23 && cpu.model < 49)))))
    flags.insert("AVXSLOW");
  if (flags.contains("KEYLOCKER") && most >= 0x19 && (cpuid(0x19, 0).ebx & 5) == 5)
    flags.insert("KEYLOCKERW");
  // AMD-SB-7029: these processors are not affected, but do not report it.
  const bool not_affected =
      cpu.family < 0x19 ||
      (cpu.family == 0x1a && (cpu.model <= 0x4f || (cpu.model >= 0x60 && cpu.model <= 0x7f)));
  if (amd && not_affected) flags.insert({"TSA_L1_NO", "TSA_SQ_NO"});
}

std::string ArmVendor(std::uint64_t implementer) {
  static constexpr std::pair<unsigned, const char*> kVendors[] = {
      {0x41, "ARM"},      {0x42, "Broadcom"}, {0x43, "Cavium"}, {0x44, "DEC"},  {0x46, "Fujitsu"},
      {0x49, "Infineon"}, {0x4d, "Motorola"}, {0x4e, "NVIDIA"}, {0x50, "AMCC"}, {0x51, "Qualcomm"},
      {0x56, "Marvell"},  {0x69, "Intel"},    {0xc0, "Ampere"}};
  for (const auto& [number, vendor] : kVendors)
    if (number == implementer) return vendor;
  return "VendorUnknown";
}

std::uint64_t HexOr0(std::string_view text) {
  if (text.starts_with("0x")) return base::ParseUint(text.substr(2), 16).value_or(0);
  return base::ParseUint(text).value_or(0);
}

}  // namespace

CpuFeatures DecodeCpuid(const Cpuid& cpuid, std::uint64_t xcr0) {
  CpuFeatures cpu;
  const CpuidRegisters first = cpuid(0, 0);
  cpu.vendor = Vendor(first);
  if (first.eax < 1) return cpu;
  const CpuidRegisters features = cpuid(1, 0);
  SetFamily(features.eax, cpu);

  std::set<std::string> flags;
  AddKept(features, xcr0, flags);
  if (cpu.vendor == "AMD") flags.insert("amd");
  const std::uint32_t most_extended = cpuid(kExtended, 0).eax;
  for (const Bits& bits : kTable) {
    if (bits.leaf > (bits.leaf >= kExtended ? most_extended : first.eax)) continue;
    if (*bits.needs != '\0' && !flags.contains(bits.needs)) continue;
    const CpuidRegisters answer = cpuid(bits.leaf, bits.subleaf);
    for (const std::string& flag : base::Split(bits.flags, ' ')) {
      const auto colon = flag.find(':');
      const auto bit = base::ParseUint(std::string_view(flag).substr(0, colon));
      if (bit && (answer.*bits.part >> *bit & 1) != 0) flags.insert(flag.substr(colon + 1));
    }
  }
  AddByHand(cpu, cpuid, first.eax, flags);
  for (const char* condition : {"ymm", "zmm", "amd"}) flags.erase(condition);
  cpu.flags.assign(flags.begin(), flags.end());
  return cpu;
}

CpuFeatures DecodeCpuinfo(std::string_view cpuinfo) {
  CpuFeatures cpu;
  std::uint64_t variant = 0, part = 0, revision = 0;
  for (const std::string& line : base::Split(cpuinfo, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) {
      if (!cpu.vendor.empty()) break;  // end of the first processor's paragraph
      continue;
    }
    const std::string_view key = base::Trim(std::string_view(line).substr(0, colon)),
                           value = base::Trim(std::string_view(line).substr(colon + 1));
    if (key == "CPU implementer") cpu.vendor = ArmVendor(HexOr0(value));
    if (key == "CPU variant") variant = HexOr0(value);
    if (key == "CPU part") part = HexOr0(value);
    if (key == "CPU revision") revision = HexOr0(value);
    if (key != "Features") continue;
    for (std::string flag : base::Split(value, ' ')) {
      std::ranges::transform(flag, flag.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      });
      if (!flag.empty()) cpu.flags.push_back(std::move(flag));
    }
  }
  if (cpu.vendor.empty()) return {};
  // NFD's numbering: variant and architecture (0xf: see the ID registers), and part and revision,
  // of MIDR_EL1.
  cpu.family = static_cast<int>((variant & 0xf) << 4 | 0xf);
  cpu.model = static_cast<int>((part & 0xfff) << 4 | (revision & 0xf));
  std::ranges::sort(cpu.flags);
  return cpu;
}

#if defined(__x86_64__) || defined(__i386__)

CpuFeatures ReadCpuFeatures(const std::string&) {
  const auto get = [](std::uint32_t leaf, std::uint32_t subleaf) {
    CpuidRegisters answer;
    __cpuid_count(leaf, subleaf, answer.eax, answer.ebx, answer.ecx, answer.edx);
    return answer;
  };
  constexpr std::uint32_t kOsxsave = 1u << 27;
  std::uint32_t low = 0, high = 0;
  // XGETBV faults if the kernel did not enable it.
  if ((get(1, 0).ecx & kOsxsave) != 0) __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return DecodeCpuid(get, low | static_cast<std::uint64_t>(high) << 32);
}

#else

CpuFeatures ReadCpuFeatures(const std::string& proc_root) {
  const auto text = ReadFile(proc_root + "/cpuinfo");
  return text.ok() ? DecodeCpuinfo(*text) : CpuFeatures{};
}

#endif

}  // namespace penstock::os
