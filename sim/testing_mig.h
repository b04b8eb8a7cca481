// Calls for MIG in short form. For tests only.
#pragma once

#include <string>
#include <vector>

#include "sim/testing_library.h"

namespace penstock::sim::testing {

/// A session with one GPU whose instances a test changes.
struct MigSession : Session {
  explicit MigSession(const std::string& name, const Control::StartOptions& options = {})
      : Session(name, options), gpu(nvml.Device(0)) {}

  /// Sets the mode; returns the activation status.
  NvReturn Mode(NvUint mode) const {
    NvReturn activation = NV_UNKNOWN;
    EXPECT_EQ(nvml("nvmlDeviceSetMigMode", gpu, mode, &activation), NV_SUCCESS);
    return activation;
  }
  /// Returns the current and the pending mode, as 10 for "on, off from the next reset".
  NvUint Modes() const {
    NvUint current = 7, pending = 7;
    EXPECT_EQ(nvml("nvmlDeviceGetMigMode", gpu, &current, &pending), NV_SUCCESS);
    return current * 10 + pending;
  }
  NvReturn Create(NvUint profile, NvGpuInstance& made) const {
    return nvml("nvmlDeviceCreateGpuInstance", gpu, profile, &made);
  }
  NvReturn CreateAt(NvUint profile, NvPlacement at, NvGpuInstance& made) const {
    return nvml("nvmlDeviceCreateGpuInstanceWithPlacement", gpu, profile, &at, &made);
  }
  NvReturn Destroy(NvGpuInstance instance) const {
    return nvml("nvmlGpuInstanceDestroy", instance);
  }
  NvReturn CreateCompute(NvGpuInstance in, NvUint profile, NvComputeInstance& made) const {
    return nvml("nvmlGpuInstanceCreateComputeInstance", in, profile, &made);
  }
  NvReturn DestroyCompute(NvComputeInstance compute) const {
    return nvml("nvmlComputeInstanceDestroy", compute);
  }
  NvGpuInstanceInfo Info(NvGpuInstance instance) const {
    NvGpuInstanceInfo info{};
    EXPECT_EQ(nvml("nvmlGpuInstanceGetInfo", instance, &info), NV_SUCCESS);
    return info;
  }
  /// Creates an instance and, with all of it, a compute instance.
  NvGpuInstance Make(NvUint profile, NvUint compute_profile) const {
    NvGpuInstance made = nullptr;
    NvComputeInstance compute = nullptr;
    EXPECT_EQ(Create(profile, made), NV_SUCCESS);
    EXPECT_EQ(CreateCompute(made, compute_profile, compute), NV_SUCCESS);
    return made;
  }
  NvReturn Find(NvUint index, NvDevice& mig) const {
    return nvml("nvmlDeviceGetMigDeviceHandleByIndex", gpu, index, &mig);
  }
  NvDevice Mig(NvUint index) const {
    NvDevice mig = nullptr;
    EXPECT_EQ(Find(index, mig), NV_SUCCESS);
    return mig;
  }
  std::string Text(const char* call, NvDevice device) const {
    char text[128] = "";
    EXPECT_EQ(nvml(call, device, static_cast<char*>(text), NvUint{sizeof text}), NV_SUCCESS);
    return text;
  }
  NvUint Remaining(NvUint profile) const {
    NvUint count = 99;
    EXPECT_EQ(nvml("nvmlDeviceGetGpuInstanceRemainingCapacity", gpu, profile, &count), NV_SUCCESS);
    return count;
  }
  std::vector<NvGpuInstanceProfile> Profiles() const {
    std::vector<NvGpuInstanceProfile> all;
    NvGpuInstanceProfile info{};
    for (NvUint i = 0;; i++) {
      const NvReturn result = nvml("nvmlDeviceGetGpuInstanceProfileInfo", gpu, i, &info);
      if (result == NV_INVALID_ARGUMENT) return all;
      if (result == NV_SUCCESS) all.push_back(info);
    }
  }
  std::vector<NvPlacement> Placements(NvUint profile) const {
    NvUint count = 0;
    EXPECT_EQ(nvml("nvmlDeviceGetGpuInstancePossiblePlacements_v2", gpu, profile,
                   static_cast<NvPlacement*>(nullptr), &count),
              NV_SUCCESS);
    std::vector<NvPlacement> all(count);
    EXPECT_EQ(
        nvml("nvmlDeviceGetGpuInstancePossiblePlacements_v2", gpu, profile, all.data(), &count),
        NV_SUCCESS);
    return all;
  }

  NvDevice gpu;
};

}  // namespace penstock::sim::testing
