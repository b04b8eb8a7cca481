// Implements -c: sets the compute mode of GPUs.
#include <cstdio>
#include <optional>

#include "sim/nvidia-smi/commands.h"

namespace smi {
namespace {

constexpr const char* kNames[] = {"DEFAULT", "EXCLUSIVE_THREAD", "PROHIBITED", "EXCLUSIVE_PROCESS"};

std::optional<unsigned> ModeNumber(const std::string& mode) {
  for (unsigned i = 0; i < 4; i++)
    if (mode == kNames[i] || mode == std::to_string(i)) return i;
  return std::nullopt;
}

}  // namespace

int SetComputeMode(const Nvml& nvml, const Gpus& gpus, const std::string& mode) {
  const auto number = ModeNumber(mode);
  if (!number) {
    std::printf("Invalid compute mode: %s\n", mode.c_str());
    return kBadArgument;
  }
  for (const Gpu& gpu : gpus.found) {
    const std::string bus = BusId(gpu);
    const NvReturn result =
        nvml.Call("nvmlDeviceSetComputeMode", gpu.device(), static_cast<NvUint>(*number));
    if (result == NV_NOT_SUPPORTED) {
      std::printf(
          "Setting compute mode to %s is not supported on a MIG-enabled device.\n"
          "Unable to set the compute mode for GPU %s: Not Supported\n"
          "Treating as warning and moving on.\n",
          kNames[*number], bus.c_str());
      continue;
    }
    if (result != NV_SUCCESS) {
      std::printf("Unable to set the compute mode for GPU %s: %s\n", bus.c_str(),
                  nvml.ErrorString(result).c_str());
      return result == NV_NO_PERMISSION ? kNoPermission : kOther;
    }
    std::printf("Set compute mode to %s for GPU %s.\n", kNames[*number], bus.c_str());
  }
  std::puts("All done.");
  return kOk;
}

}  // namespace smi
