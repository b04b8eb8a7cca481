#include "sim/nvidia-smi/instances.h"

#include <algorithm>

namespace smi {
namespace {

bool Named(const std::vector<std::string>& ids, NvUint id) {
  return ids.empty() || std::find(ids.begin(), ids.end(), std::to_string(id)) != ids.end();
}

}  // namespace

bool InMigMode(const Gpu& gpu) {
  return gpu.Pair("nvmlDeviceGetMigMode", 0).value_or(0) == NV_ENABLED;
}

// A driver before 510 has only the first version, without names.
std::vector<NvGpuInstanceProfile2> ProfilesOf(const Gpu& gpu) {
  std::vector<NvGpuInstanceProfile2> all;
  for (NvUint i = 0;; i++) {
    NvGpuInstanceProfile2 info{.version = NV_STRUCT_VERSION(NvGpuInstanceProfile2, 2)};
    const NvReturn result =
        gpu.nvml().Call("nvmlDeviceGetGpuInstanceProfileInfoV", gpu.device(), i, &info);
    if (result == NV_SUCCESS)
      all.push_back(info);
    else if (result != NV_NOT_SUPPORTED || i > 64)
      return all;
  }
}

std::vector<NvComputeProfile2> ProfilesOf(const Instance& instance) {
  std::vector<NvComputeProfile2> all;
  for (NvUint i = 0;; i++) {
    NvComputeProfile2 info{.version = NV_STRUCT_VERSION(NvComputeProfile2, 2)};
    const NvReturn result =
        instance.gpu->nvml().Call("nvmlGpuInstanceGetComputeInstanceProfileInfoV", instance.handle,
                                  i, NvUint{NV_CI_ENGINES_SHARED}, &info);
    if (result == NV_SUCCESS)
      all.push_back(info);
    else if (result != NV_NOT_SUPPORTED || i > 64)
      return all;
  }
}

std::vector<Instance> InstancesOn(const std::vector<const Gpu*>& gpus,
                                  const std::vector<std::string>& ids) {
  std::vector<Instance> all;
  for (const Gpu* gpu : gpus) {
    for (const NvGpuInstanceProfile2& profile : ProfilesOf(*gpu)) {
      std::vector<NvGpuInstance> handles(profile.instanceCount);
      NvUint count = 0;
      if (gpu->nvml().Call("nvmlDeviceGetGpuInstances", gpu->device(), profile.id, handles.data(),
                           &count) != NV_SUCCESS)
        continue;
      for (NvUint i = 0; i < count; i++) {
        Instance instance{gpu, handles[i], {}, profile};
        if (gpu->nvml().Call("nvmlGpuInstanceGetInfo", handles[i], &instance.info) == NV_SUCCESS &&
            Named(ids, instance.info.id))
          all.push_back(instance);
      }
    }
  }
  return all;
}

std::vector<Compute> ComputesIn(const std::vector<Instance>& instances,
                                const std::vector<std::string>& ids) {
  std::vector<Compute> all;
  for (const Instance& in : instances) {
    const Nvml& nvml = in.gpu->nvml();
    for (const NvComputeProfile2& profile : ProfilesOf(in)) {
      std::vector<NvComputeInstance> handles(profile.instanceCount);
      NvUint count = 0;
      if (nvml.Call("nvmlGpuInstanceGetComputeInstances", in.handle, profile.id, handles.data(),
                    &count) != NV_SUCCESS)
        continue;
      for (NvUint i = 0; i < count; i++) {
        Compute compute{in, handles[i], {}, profile};
        if (nvml.Call("nvmlComputeInstanceGetInfo_v2", handles[i], &compute.info) == NV_SUCCESS &&
            Named(ids, compute.info.id))
          all.push_back(compute);
      }
    }
  }
  return all;
}

std::vector<MigDevice> MigDevicesOf(const Gpu& gpu) {
  std::vector<MigDevice> all;
  const NvUint most = gpu.Number("nvmlDeviceGetMaxMigDeviceCount").value_or(0);
  for (NvUint i = 0; i < most; i++) {
    NvDevice device = nullptr;
    if (gpu.nvml().Call("nvmlDeviceGetMigDeviceHandleByIndex", gpu.device(), i, &device) !=
        NV_SUCCESS)
      continue;
    const Gpu mig(gpu.nvml(), i, device);
    const std::string name = mig.Text("nvmlDeviceGetName").value_or("");
    const std::size_t at = name.rfind("MIG ");
    MigDevice found{.index = i,
                    .instance = mig.Number("nvmlDeviceGetGpuInstanceId").value_or(0),
                    .compute = mig.Number("nvmlDeviceGetComputeInstanceId").value_or(0),
                    .device = device,
                    .name = at == std::string::npos ? name : name.substr(at),
                    .uuid = mig.Text("nvmlDeviceGetUUID").value_or("N/A"),
                    .attributes = {},
                    .memory = {.version = NV_STRUCT_VERSION(NvMemory2, 2)},
                    .bar1 = {}};
    gpu.nvml().Call("nvmlDeviceGetAttributes_v2", device, &found.attributes);
    if (gpu.nvml().Call("nvmlDeviceGetMemoryInfo_v2", device, &found.memory) != NV_SUCCESS) {
      const auto older = mig.Struct<NvMemory>("nvmlDeviceGetMemoryInfo").value_or(NvMemory{});
      found.memory = {0, older.total, 0, older.free, older.used};
    }
    gpu.nvml().Call("nvmlDeviceGetBAR1MemoryInfo", device, &found.bar1);
    all.push_back(found);
  }
  return all;
}

}  // namespace smi
