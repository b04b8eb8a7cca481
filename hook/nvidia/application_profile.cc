// The hook update-application-profile: limits which GPUs EGL and Vulkan enumerate (NVIDIA driver
// README, "Application Profiles").
#include <array>
#include <cinttypes>
#include <cstdio>

#include <dirent.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/core/strings.h"
#include "hook/hooks.h"

namespace penstock::hook {
namespace {

constexpr char kProfile[] = "/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf";
constexpr unsigned kMaxGpus = 64;

bool IsGpuName(std::string_view name) {
  constexpr std::string_view prefix = "nvidia";
  return name.starts_with(prefix) && base::ParseUint(name.substr(prefix.size())).has_value();
}

// One bit per GPU, by minor number.
Result<std::uint64_t> VisibleGpus(const os::ConfinedTree& root, Warnings& warnings) {
  std::uint64_t gpus = 0;
  const auto entries = root.List("/dev");
  if (!entries.ok())
    return entries.error().code() == base::Code::kNotFound ? Result<std::uint64_t>(gpus)
                                                           : entries.error();
  for (const os::TreeEntry& entry : *entries) {
    if (entry.type != DT_CHR || !IsGpuName(entry.name)) continue;
    ASSIGN(const os::UniqueFd device, root.Locate("/dev/" + entry.name));
    struct stat status {};
    if (::fstat(device.get(), &status) != 0 || !S_ISCHR(status.st_mode)) continue;
    if (const unsigned number = minor(status.st_rdev); number < kMaxGpus) {
      gpus |= std::uint64_t{1} << number;
    } else {
      warnings.Add("/dev/" + entry.name +
                   " cannot be listed in an application profile of NVIDIA's driver: its minor "
                   "number is above 63");
    }
  }
  return gpus;
}

}  // namespace

Status UpdateApplicationProfile(const os::ConfinedTree& root, Warnings& warnings) {
  ASSIGN(const std::uint64_t gpus, VisibleGpus(root, warnings));
  if (gpus == 0) return {};
  std::array<char, 256> profile{};
  std::snprintf(
      profile.data(), profile.size(),
      R"({"profiles":[{"name":"_container_","settings":["EGLVisibleDGPUDevices",0x%)" PRIx64
      R"(]}],"rules":[{"pattern":[],"profile":"_container_"}]})",
      gpus);
  return warnings.Tolerate(root.Write(kProfile, profile.data(), 0444));
}

}  // namespace penstock::hook
