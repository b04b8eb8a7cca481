#include "backend/nvidia/mig_control.h"

#include <algorithm>
#include <optional>

#include "backend/nvidia/mig.h"
#include "backend/nvidia/mig_compute.h"

namespace penstock::backend::nvidia {
namespace {

using device::NewPart;
using device::PartProfile;

base::Status Check(abi::Return answer, const char* function) {
  return answer == abi::kSuccess ? base::Status() : ToError(answer, function);
}

Error NoSuchPart(const Gpu& gpu, const std::string& address) {
  return {Code::kNotFound, gpu.id + " has no part " + address};
}

base::Result<abi::GpuInstance> FindGpuInstance(const Nvml& nvml, const Gpu& gpu, unsigned id) {
  abi::GpuInstance instance = nullptr;
  TRY(Check(nvml->gpu_instance_by_id(gpu.handle, id, &instance), nvml->gpu_instance_by_id.name));
  return instance;
}

base::Result<abi::GpuInstance> CreateGpuInstance(const Nvml& nvml, const Gpu& gpu,
                                                 const NewPart& part) {
  const auto profile = std::ranges::find_if(
      gpu.mig.names, [&](const auto& known) { return known.second == part.profile; });
  if (profile == gpu.mig.names.end())
    return Error(Code::kInvalidArgument, gpu.id + " has no profile " + part.profile);
  abi::GpuInstance instance = nullptr;
  if (!part.placement) {
    TRY(Check(nvml->create_gpu_instance(gpu.handle, profile->first, &instance),
              nvml->create_gpu_instance.name));
    return instance;
  }
  const abi::Placement placement{static_cast<unsigned>(part.placement->start),
                                 static_cast<unsigned>(part.placement->size)};
  TRY(Check(nvml->create_gpu_instance_at(gpu.handle, profile->first, &placement, &instance),
            nvml->create_gpu_instance_at.name));
  return instance;
}

/// The MIG device of this GPU instance that is not among those known before.
base::Result<std::string> FindNewDevice(const Nvml& nvml, const Gpu& gpu, unsigned instance) {
  Mig now = gpu.mig;
  TRY(ReadMigParts(nvml, gpu.handle, now));
  for (const MigDevice& device : now.devices)
    if (device.gpu_instance == instance &&
        std::ranges::find(gpu.mig.devices, device.uuid, &MigDevice::uuid) == gpu.mig.devices.end())
      return device.uuid;
  return Error(Code::kInternal,
               "the driver does not list the MIG device that it created on " + gpu.id);
}

base::Result<unsigned> IdOf(const Nvml& nvml, abi::GpuInstance instance) {
  abi::GpuInstanceInfo info{};
  TRY(Check(nvml->gpu_instance_info(instance, &info), nvml->gpu_instance_info.name));
  return info.id;
}

base::Result<std::string> FillGpuInstance(const Nvml& nvml, const Gpu& gpu,
                                          abi::GpuInstance instance, unsigned id,
                                          const std::string& profile) {
  const auto found = std::ranges::find(gpu.mig.profiles, profile, &PartProfile::name);
  const int slices = found == gpu.mig.profiles.end() ? 0 : found->slices;
  TRY(CreateComputeInstance(nvml, instance, slices, std::nullopt));
  return FindNewDevice(nvml, gpu, id);
}

base::Result<std::string> CreateWithin(const Nvml& nvml, const Gpu& gpu, const NewPart& part) {
  const auto outer = ParseGpuInstance(part.within);
  if (!outer) return NoSuchPart(gpu, part.within);
  const auto profile = std::ranges::find(gpu.mig.profiles, part.profile, &PartProfile::name);
  if (profile == gpu.mig.profiles.end())
    return Error(Code::kInvalidArgument, gpu.id + " has no profile " + part.profile);
  ASSIGN(const abi::GpuInstance instance, FindGpuInstance(nvml, gpu, outer->instance));
  TRY(CreateComputeInstance(nvml, instance, profile->slices, part.placement));
  return FindNewDevice(nvml, gpu, outer->instance);
}

base::Status DestroyGpuInstance(const Nvml& nvml, abi::GpuInstance instance) {
  return Check(nvml->destroy_gpu_instance(instance), nvml->destroy_gpu_instance.name);
}

}  // namespace

base::Status SetMigMode(const Nvml& nvml, const Gpu& gpu, const std::string& value) {
  if (value != "enabled" && value != "disabled")
    return Error(Code::kInvalidArgument, "the mode mig has no value \"" + value + "\"");
  abi::Return activation = abi::kSuccess;
  return Check(nvml->set_mig_mode(gpu.handle, value == "enabled" ? 1 : 0, &activation),
               nvml->set_mig_mode.name);
}

base::Result<std::string> CreateMigPart(const Nvml& nvml, const Gpu& gpu, const NewPart& part) {
  if (!part.within.empty()) return CreateWithin(nvml, gpu, part);
  ASSIGN(const abi::GpuInstance instance, CreateGpuInstance(nvml, gpu, part));
  const auto created = [&]() -> base::Result<std::string> {
    ASSIGN(const unsigned id, IdOf(nvml, instance));
    if (part.outer) return gpu.facts.address + "/" + std::to_string(id);
    return FillGpuInstance(nvml, gpu, instance, id, part.profile);
  }();
  if (created.ok()) return created;
  const base::Status undone = DestroyGpuInstance(nvml, instance);
  if (undone.ok()) return created;
  return Error(created.error().code(),
               created.error().message() +
                   "; and its GPU instance could not be destroyed: " + undone.error().message());
}

base::Status DestroyMigPart(const Nvml& nvml, const Gpu& gpu, const std::string& address) {
  if (const auto outer = ParseGpuInstance(address)) {
    ASSIGN(const abi::GpuInstance instance, FindGpuInstance(nvml, gpu, outer->instance));
    return DestroyGpuInstance(nvml, instance);
  }
  const auto device = std::ranges::find(gpu.mig.devices, address, &MigDevice::uuid);
  if (device == gpu.mig.devices.end()) return NoSuchPart(gpu, address);
  ASSIGN(const abi::GpuInstance instance, FindGpuInstance(nvml, gpu, device->gpu_instance));
  abi::ComputeInstance compute = nullptr;
  TRY(Check(nvml->compute_instance_by_id(instance, device->compute_instance, &compute),
            nvml->compute_instance_by_id.name));
  TRY(Check(nvml->destroy_compute_instance(compute), nvml->destroy_compute_instance.name));
  return device->fills_its_gpu_instance() ? DestroyGpuInstance(nvml, instance) : base::Status();
}

}  // namespace penstock::backend::nvidia
