// One function for each feature source of NFD.
#include "node/label/host_features.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <string_view>
#include <vector>

#include "api/labels.h"
#include "base/core/strings.h"

namespace penstock::node::label {
namespace {

using Set = std::map<std::string, std::string>;

void Add(Set& labels, const std::string& name, std::string value) {
  labels[std::string(api::kFeaturePrefix) + name] = std::move(value);
}

std::string Hex(std::uint16_t number) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04x", static_cast<unsigned>(number));
  return text.data();
}

/// The numeric parts of a version's beginning: "6.1.0-18-amd64" → 6, 1, 0. Empty if a part is not a
/// number.
std::vector<std::string> Numbers(std::string_view version, std::string_view end) {
  version = version.substr(0, version.find_first_of(end));
  auto parts = base::Split(version, '.');
  for (const std::string& part : parts)
    if (part.empty() || part.find_first_not_of("0123456789") != std::string::npos) return {};
  return parts;
}

/// Both forms that the GPU Operator looks for: by vendor, and by class and vendor (NFD's default).
void AddPci(Set& labels, const std::set<PciKind>& accelerators) {
  for (const auto& [kind, vendor] : accelerators) {
    Add(labels, "pci-" + Hex(vendor) + ".present", "true");
    Add(labels, "pci-" + Hex(kind) + "_" + Hex(vendor) + ".present", "true");
  }
}

void AddKernel(Set& labels, const std::string& release) {
  std::string full = release;
  for (char& c : full)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.') c = '_';
  const auto fits = [](char c) { return c != '-' && c != '_' && c != '.'; };
  full.erase(full.begin(), std::ranges::find_if(full, fits));
  full.erase(std::find_if(full.rbegin(), full.rend(), fits).base(), full.end());
  if (full.empty()) return;
  Add(labels, "kernel-version.full", full);
  const auto numbers = Numbers(full, "-");
  if (numbers.size() > 3) return;
  constexpr std::array<const char*, 3> kParts{"major", "minor", "revision"};
  for (std::size_t i = 0; i < numbers.size(); ++i)
    Add(labels, std::string("kernel-version.") + kParts[i], numbers[i]);
}

void AddOs(Set& labels, const os::MachineFacts& machine) {
  if (!machine.os_id.empty()) Add(labels, "system-os_release.ID", machine.os_id);
  const std::string& version = machine.os_version_id;
  if (version.empty()) return;
  Add(labels, "system-os_release.VERSION_ID", version);
  const auto parts = base::Split(version, '.');
  const auto major = Numbers(parts[0], "");
  if (major.empty()) return;
  Add(labels, "system-os_release.VERSION_ID.major", major[0]);
  if (parts.size() < 2) return;
  if (const auto minor = Numbers(parts[1], ""); !minor.empty())
    Add(labels, "system-os_release.VERSION_ID.minor", minor[0]);
}

/// cpu.cpuid.attributeBlacklist of NFD's default configuration.
bool IsIgnored(std::string_view flag) {
  static constexpr std::array<std::string_view, 26> kFlags{
      "AVX10", "BMI1", "BMI2",   "CLMUL", "CMOV",   "CX16",   "ERMS",   "F16C",     "HTT",
      "LZCNT", "MMX",  "MMXEXT", "NX",    "POPCNT", "RDRAND", "RDSEED", "RDTSCP",   "SGX",
      "SGXLC", "SSE",  "SSE2",   "SSE3",  "SSE4",   "SSE42",  "SSSE3",  "TDX_GUEST"};
  return std::ranges::find(kFlags, flag) != kFlags.end();
}

void AddCpu(Set& labels, const os::MachineFacts& machine) {
  if (!machine.cpu_vendor.empty()) {
    Add(labels, "cpu-model.vendor_id", machine.cpu_vendor);
    Add(labels, "cpu-model.family", std::to_string(machine.cpu_family));
    Add(labels, "cpu-model.id", std::to_string(machine.cpu_model));
  }
  for (const std::string& flag : machine.cpu_flags)
    if (!IsIgnored(flag)) Add(labels, "cpu-cpuid." + flag, "true");
  if (machine.multithreading)
    Add(labels, "cpu-hardware_multithreading", *machine.multithreading ? "true" : "false");
}

}  // namespace

bool IsAcceleratorClass(std::uint32_t class_code) {
  const std::uint32_t base = class_code >> 16;
  return base == 0x03 || base == 0x12 || class_code >> 8 == 0x0b40;
}

std::map<std::string, std::string> HostFeatures(const os::MachineFacts& machine,
                                                const std::set<PciKind>& accelerators) {
  Set labels;
  AddPci(labels, accelerators);
  AddKernel(labels, machine.kernel);
  AddOs(labels, machine);
  AddCpu(labels, machine);
  if (machine.numa_nodes > 1) Add(labels, "memory-numa", "true");
  return labels;
}

}  // namespace penstock::node::label
