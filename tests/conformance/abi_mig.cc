// Compares the simulated library's declarations for MIG with NVIDIA's nvml.h. Compiled once for
// each version of that header, never run; abi_sim.cc compares the functions.
#define NVML_NO_UNVERSIONED_FUNC_DEFS  // declares old spellings too, without renaming the new
#include <nvml.h>

extern "C" {
#include "sim/nvml/nvml_abi.h"
}

#include "abi.h"
#include "sim/state.h"

namespace penstock::conformance {

SAME_VALUE(NV_GI_1_SLICE, NVML_GPU_INSTANCE_PROFILE_1_SLICE);
SAME_VALUE(NV_GI_2_SLICE, NVML_GPU_INSTANCE_PROFILE_2_SLICE);
SAME_VALUE(NV_GI_3_SLICE, NVML_GPU_INSTANCE_PROFILE_3_SLICE);
SAME_VALUE(NV_GI_4_SLICE, NVML_GPU_INSTANCE_PROFILE_4_SLICE);
SAME_VALUE(NV_GI_7_SLICE, NVML_GPU_INSTANCE_PROFILE_7_SLICE);
SAME_VALUE(NV_GI_1_SLICE_REV1, NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1);
SAME_VALUE(NV_GI_2_SLICE_REV1, NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1);
SAME_VALUE(NV_GI_1_SLICE_REV2, NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2);
SAME_VALUE(NV_GI_1_SLICE_GFX, NVML_GPU_INSTANCE_PROFILE_1_SLICE_GFX);
SAME_VALUE(NV_GI_2_SLICE_GFX, NVML_GPU_INSTANCE_PROFILE_2_SLICE_GFX);
SAME_VALUE(NV_GI_4_SLICE_GFX, NVML_GPU_INSTANCE_PROFILE_4_SLICE_GFX);
SAME_VALUE(NV_GI_1_SLICE_NO_ME, NVML_GPU_INSTANCE_PROFILE_1_SLICE_NO_ME);
SAME_VALUE(NV_GI_2_SLICE_NO_ME, NVML_GPU_INSTANCE_PROFILE_2_SLICE_NO_ME);
SAME_VALUE(NV_GI_1_SLICE_ALL_ME, NVML_GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME);
SAME_VALUE(NV_GI_2_SLICE_ALL_ME, NVML_GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME);
SAME_VALUE(NV_CI_1_SLICE, NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE);
SAME_VALUE(NV_CI_2_SLICE, NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE);
SAME_VALUE(NV_CI_3_SLICE, NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE);
SAME_VALUE(NV_CI_4_SLICE, NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE);
SAME_VALUE(NV_CI_7_SLICE, NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE);
SAME_VALUE(NV_CI_1_SLICE_REV1, NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1);
SAME_VALUE(NV_CI_ENGINES_SHARED, NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED);
SAME_VALUE(NV_GI_CAP_GFX, NVML_GPU_INSTANCE_PROFILE_CAPS_GFX);
SAME_VALUE(NV_CI_CAP_GFX, NVML_COMPUTE_INSTANCE_PROFILE_CAPS_GFX);
SAME_VALUE(NV_FI_MIG_WITHOUT_RESET, NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED);
SAME_VALUE(NV_FI_MIG_QUERY_WITHOUT_MODE, NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE);
// The state has room for all profiles.
static_assert(kSimMigProfiles >= NVML_GPU_INSTANCE_PROFILE_COUNT);

SAME_SIZE(NvPlacement, nvmlGpuInstancePlacement_t);
SAME_MEMBER(NvPlacement, nvmlGpuInstancePlacement_t, start, start);
SAME_MEMBER(NvPlacement, nvmlGpuInstancePlacement_t, size, size);

SAME_SIZE(NvPlacement, nvmlComputeInstancePlacement_t);
SAME_MEMBER(NvPlacement, nvmlComputeInstancePlacement_t, start, start);
SAME_MEMBER(NvPlacement, nvmlComputeInstancePlacement_t, size, size);

SAME_SIZE(NvGpuInstanceProfile, nvmlGpuInstanceProfileInfo_t);
SAME_MEMBER(NvGpuInstanceProfile, nvmlGpuInstanceProfileInfo_t, id, id);
SAME_MEMBER(NvGpuInstanceProfile, nvmlGpuInstanceProfileInfo_t, isP2pSupported, isP2pSupported);
SAME_MEMBER(NvGpuInstanceProfile, nvmlGpuInstanceProfileInfo_t, sliceCount, sliceCount);
SAME_MEMBER(NvGpuInstanceProfile, nvmlGpuInstanceProfileInfo_t, instanceCount, instanceCount);
SAME_MEMBER(NvGpuInstanceProfile, nvmlGpuInstanceProfileInfo_t, multiprocessorCount,
            multiprocessorCount);
SAME_MEMBER(NvGpuInstanceProfile, nvmlGpuInstanceProfileInfo_t, copyEngineCount, copyEngineCount);
SAME_MEMBER(NvGpuInstanceProfile, nvmlGpuInstanceProfileInfo_t, decoderCount, decoderCount);
SAME_MEMBER(NvGpuInstanceProfile, nvmlGpuInstanceProfileInfo_t, encoderCount, encoderCount);
SAME_MEMBER(NvGpuInstanceProfile, nvmlGpuInstanceProfileInfo_t, jpegCount, jpegCount);
SAME_MEMBER(NvGpuInstanceProfile, nvmlGpuInstanceProfileInfo_t, ofaCount, ofaCount);
SAME_MEMBER(NvGpuInstanceProfile, nvmlGpuInstanceProfileInfo_t, memorySizeMB, memorySizeMB);

SAME_SIZE(NvGpuInstanceProfile2, nvmlGpuInstanceProfileInfo_v2_t);
SAME_MEMBER(NvGpuInstanceProfile2, nvmlGpuInstanceProfileInfo_v2_t, version, version);
SAME_MEMBER(NvGpuInstanceProfile2, nvmlGpuInstanceProfileInfo_v2_t, id, id);
SAME_MEMBER(NvGpuInstanceProfile2, nvmlGpuInstanceProfileInfo_v2_t, isP2pSupported, isP2pSupported);
SAME_MEMBER(NvGpuInstanceProfile2, nvmlGpuInstanceProfileInfo_v2_t, sliceCount, sliceCount);
SAME_MEMBER(NvGpuInstanceProfile2, nvmlGpuInstanceProfileInfo_v2_t, instanceCount, instanceCount);
SAME_MEMBER(NvGpuInstanceProfile2, nvmlGpuInstanceProfileInfo_v2_t, multiprocessorCount,
            multiprocessorCount);
SAME_MEMBER(NvGpuInstanceProfile2, nvmlGpuInstanceProfileInfo_v2_t, copyEngineCount,
            copyEngineCount);
SAME_MEMBER(NvGpuInstanceProfile2, nvmlGpuInstanceProfileInfo_v2_t, decoderCount, decoderCount);
SAME_MEMBER(NvGpuInstanceProfile2, nvmlGpuInstanceProfileInfo_v2_t, encoderCount, encoderCount);
SAME_MEMBER(NvGpuInstanceProfile2, nvmlGpuInstanceProfileInfo_v2_t, jpegCount, jpegCount);
SAME_MEMBER(NvGpuInstanceProfile2, nvmlGpuInstanceProfileInfo_v2_t, ofaCount, ofaCount);
SAME_MEMBER(NvGpuInstanceProfile2, nvmlGpuInstanceProfileInfo_v2_t, memorySizeMB, memorySizeMB);
SAME_MEMBER(NvGpuInstanceProfile2, nvmlGpuInstanceProfileInfo_v2_t, name, name);

SAME_SIZE(NvGpuInstanceProfile3, nvmlGpuInstanceProfileInfo_v3_t);
SAME_MEMBER(NvGpuInstanceProfile3, nvmlGpuInstanceProfileInfo_v3_t, version, version);
SAME_MEMBER(NvGpuInstanceProfile3, nvmlGpuInstanceProfileInfo_v3_t, id, id);
SAME_MEMBER(NvGpuInstanceProfile3, nvmlGpuInstanceProfileInfo_v3_t, sliceCount, sliceCount);
SAME_MEMBER(NvGpuInstanceProfile3, nvmlGpuInstanceProfileInfo_v3_t, instanceCount, instanceCount);
SAME_MEMBER(NvGpuInstanceProfile3, nvmlGpuInstanceProfileInfo_v3_t, multiprocessorCount,
            multiprocessorCount);
SAME_MEMBER(NvGpuInstanceProfile3, nvmlGpuInstanceProfileInfo_v3_t, copyEngineCount,
            copyEngineCount);
SAME_MEMBER(NvGpuInstanceProfile3, nvmlGpuInstanceProfileInfo_v3_t, decoderCount, decoderCount);
SAME_MEMBER(NvGpuInstanceProfile3, nvmlGpuInstanceProfileInfo_v3_t, encoderCount, encoderCount);
SAME_MEMBER(NvGpuInstanceProfile3, nvmlGpuInstanceProfileInfo_v3_t, jpegCount, jpegCount);
SAME_MEMBER(NvGpuInstanceProfile3, nvmlGpuInstanceProfileInfo_v3_t, ofaCount, ofaCount);
SAME_MEMBER(NvGpuInstanceProfile3, nvmlGpuInstanceProfileInfo_v3_t, memorySizeMB, memorySizeMB);
SAME_MEMBER(NvGpuInstanceProfile3, nvmlGpuInstanceProfileInfo_v3_t, name, name);
SAME_MEMBER(NvGpuInstanceProfile3, nvmlGpuInstanceProfileInfo_v3_t, capabilities, capabilities);

SAME_SIZE(NvGpuInstanceInfo, nvmlGpuInstanceInfo_t);
SAME_MEMBER(NvGpuInstanceInfo, nvmlGpuInstanceInfo_t, device, device);
SAME_MEMBER(NvGpuInstanceInfo, nvmlGpuInstanceInfo_t, id, id);
SAME_MEMBER(NvGpuInstanceInfo, nvmlGpuInstanceInfo_t, profileId, profileId);
SAME_MEMBER(NvGpuInstanceInfo, nvmlGpuInstanceInfo_t, placement, placement);

SAME_SIZE(NvComputeProfile, nvmlComputeInstanceProfileInfo_t);
SAME_MEMBER(NvComputeProfile, nvmlComputeInstanceProfileInfo_t, id, id);
SAME_MEMBER(NvComputeProfile, nvmlComputeInstanceProfileInfo_t, sliceCount, sliceCount);
SAME_MEMBER(NvComputeProfile, nvmlComputeInstanceProfileInfo_t, instanceCount, instanceCount);
SAME_MEMBER(NvComputeProfile, nvmlComputeInstanceProfileInfo_t, multiprocessorCount,
            multiprocessorCount);
SAME_MEMBER(NvComputeProfile, nvmlComputeInstanceProfileInfo_t, sharedCopyEngineCount,
            sharedCopyEngineCount);
SAME_MEMBER(NvComputeProfile, nvmlComputeInstanceProfileInfo_t, sharedDecoderCount,
            sharedDecoderCount);
SAME_MEMBER(NvComputeProfile, nvmlComputeInstanceProfileInfo_t, sharedEncoderCount,
            sharedEncoderCount);
SAME_MEMBER(NvComputeProfile, nvmlComputeInstanceProfileInfo_t, sharedJpegCount, sharedJpegCount);
SAME_MEMBER(NvComputeProfile, nvmlComputeInstanceProfileInfo_t, sharedOfaCount, sharedOfaCount);

SAME_SIZE(NvComputeProfile2, nvmlComputeInstanceProfileInfo_v2_t);
SAME_MEMBER(NvComputeProfile2, nvmlComputeInstanceProfileInfo_v2_t, version, version);
SAME_MEMBER(NvComputeProfile2, nvmlComputeInstanceProfileInfo_v2_t, id, id);
SAME_MEMBER(NvComputeProfile2, nvmlComputeInstanceProfileInfo_v2_t, sliceCount, sliceCount);
SAME_MEMBER(NvComputeProfile2, nvmlComputeInstanceProfileInfo_v2_t, instanceCount, instanceCount);
SAME_MEMBER(NvComputeProfile2, nvmlComputeInstanceProfileInfo_v2_t, multiprocessorCount,
            multiprocessorCount);
SAME_MEMBER(NvComputeProfile2, nvmlComputeInstanceProfileInfo_v2_t, sharedCopyEngineCount,
            sharedCopyEngineCount);
SAME_MEMBER(NvComputeProfile2, nvmlComputeInstanceProfileInfo_v2_t, sharedDecoderCount,
            sharedDecoderCount);
SAME_MEMBER(NvComputeProfile2, nvmlComputeInstanceProfileInfo_v2_t, sharedEncoderCount,
            sharedEncoderCount);
SAME_MEMBER(NvComputeProfile2, nvmlComputeInstanceProfileInfo_v2_t, sharedJpegCount,
            sharedJpegCount);
SAME_MEMBER(NvComputeProfile2, nvmlComputeInstanceProfileInfo_v2_t, sharedOfaCount, sharedOfaCount);
SAME_MEMBER(NvComputeProfile2, nvmlComputeInstanceProfileInfo_v2_t, name, name);

SAME_SIZE(NvComputeProfile3, nvmlComputeInstanceProfileInfo_v3_t);
SAME_MEMBER(NvComputeProfile3, nvmlComputeInstanceProfileInfo_v3_t, version, version);
SAME_MEMBER(NvComputeProfile3, nvmlComputeInstanceProfileInfo_v3_t, id, id);
SAME_MEMBER(NvComputeProfile3, nvmlComputeInstanceProfileInfo_v3_t, sliceCount, sliceCount);
SAME_MEMBER(NvComputeProfile3, nvmlComputeInstanceProfileInfo_v3_t, instanceCount, instanceCount);
SAME_MEMBER(NvComputeProfile3, nvmlComputeInstanceProfileInfo_v3_t, multiprocessorCount,
            multiprocessorCount);
SAME_MEMBER(NvComputeProfile3, nvmlComputeInstanceProfileInfo_v3_t, sharedCopyEngineCount,
            sharedCopyEngineCount);
SAME_MEMBER(NvComputeProfile3, nvmlComputeInstanceProfileInfo_v3_t, sharedDecoderCount,
            sharedDecoderCount);
SAME_MEMBER(NvComputeProfile3, nvmlComputeInstanceProfileInfo_v3_t, sharedEncoderCount,
            sharedEncoderCount);
SAME_MEMBER(NvComputeProfile3, nvmlComputeInstanceProfileInfo_v3_t, sharedJpegCount,
            sharedJpegCount);
SAME_MEMBER(NvComputeProfile3, nvmlComputeInstanceProfileInfo_v3_t, sharedOfaCount, sharedOfaCount);
SAME_MEMBER(NvComputeProfile3, nvmlComputeInstanceProfileInfo_v3_t, name, name);
SAME_MEMBER(NvComputeProfile3, nvmlComputeInstanceProfileInfo_v3_t, capabilities, capabilities);

SAME_SIZE(NvComputeInstanceInfo, nvmlComputeInstanceInfo_t);
SAME_MEMBER(NvComputeInstanceInfo, nvmlComputeInstanceInfo_t, device, device);
SAME_MEMBER(NvComputeInstanceInfo, nvmlComputeInstanceInfo_t, gpuInstance, gpuInstance);
SAME_MEMBER(NvComputeInstanceInfo, nvmlComputeInstanceInfo_t, id, id);
SAME_MEMBER(NvComputeInstanceInfo, nvmlComputeInstanceInfo_t, profileId, profileId);
SAME_MEMBER(NvComputeInstanceInfo, nvmlComputeInstanceInfo_t, placement, placement);

SAME_VALUE(NV_STRUCT_VERSION(NvGpuInstanceProfile2, 2), nvmlGpuInstanceProfileInfo_v2);
SAME_VALUE(NV_STRUCT_VERSION(NvGpuInstanceProfile3, 3), nvmlGpuInstanceProfileInfo_v3);
SAME_VALUE(NV_STRUCT_VERSION(NvComputeProfile2, 2), nvmlComputeInstanceProfileInfo_v2);
SAME_VALUE(NV_STRUCT_VERSION(NvComputeProfile3, 3), nvmlComputeInstanceProfileInfo_v3);

}  // namespace penstock::conformance
