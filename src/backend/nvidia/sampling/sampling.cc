// The order of a sample: collects the due quantities, requests them in as few calls as possible,
// and reads the answers.
#include "backend/nvidia/sampling/sampling.h"

#include <array>

#include "backend/nvidia/sampling/sampling_calls.h"
#include "backend/nvidia/sampling/sampling_mig.h"
#include "backend/nvidia/sampling/sampling_processes.h"
#include "backend/nvidia/sampling/sampling_traffic.h"
#include "base/core/strings.h"

namespace penstock::backend::nvidia {

struct Sampling::State {
  const Functions& nvml;
  const base::Clock& clock;
  unsigned driver = 0;                     // see DriverNumber
  std::map<std::string, SampledGpu> gpus;  // by address
};

namespace {

/// Branch and number within it: 580065 for "580.65.06". 0 if the driver does not report it.
unsigned DriverNumber(const Functions& nvml) {
  std::array<char, abi::kVersionLength + 1> version{};
  if (nvml.driver_version(version.data(), abi::kVersionLength) != abi::kSuccess) return 0;
  const std::vector<std::string> parts = base::Split(version.data(), '.');
  const auto branch = base::ParseUint(parts[0]);
  const auto minor = parts.size() > 1 ? base::ParseUint(parts[1]) : std::nullopt;
  return branch && minor && *branch < 100000 && *minor < 1000
             ? static_cast<unsigned>(*branch * 1000 + *minor)
             : 0;
}

/// The number by which a driver knows the field of the first of three reasons. The fields were
/// renumbered between 580.65 and 580.82. The same numbers otherwise belong to fields of power
/// smoothing, so no driver refuses them.
unsigned FirstReasonField(unsigned driver) {
  if (driver >= 580082) return kFirstReasonField;
  return driver >= 575000 ? 251 : 0;
}

void PrepareReasonFields(unsigned driver, SampledGpu& gpu) {
  gpu.first_reason_field = FirstReasonField(driver);
  if (gpu.first_reason_field != 0) return;
  for (std::size_t i = 0; i < gpu.missing.size(); ++i) {
    const auto id = static_cast<device::QuantityId>(i);
    if (QueryOf(id).call == NvmlCall::kField && IsReasonField(QueryOf(id).number))
      gpu.missing[i] = true;
  }
}

bool NeedsGpm(const SampleBuilder& builder) {
  for (const NvmlCall call : {NvmlCall::kGpm, NvmlCall::kPcieTraffic, NvmlCall::kPcieRate,
                              NvmlCall::kFabricRate, NvmlCall::kFabricLinkRate})
    if (!builder.Of(call).empty()) return true;
  return false;
}

/// Requests all quantities that share one call or two samples of counters.
void ReadBatches(SampleBuilder& builder) {
  const std::optional<bool> gpm =
      NeedsGpm(builder) ? builder.gpu.gpm.Supported(builder.nvml_device) : std::nullopt;
  FieldBatch fields;
  GpmBatch metrics;
  FieldQuantities of_fields(builder, fields);
  GpmQuantities of_gpm(builder, gpm, metrics);
  PcieTraffic pcie(builder, gpm, fields, metrics);
  LinkTraffic links(builder, gpm, fields, metrics);
  fields.Run(builder.nvml_device);
  metrics.Run(builder);
  of_fields.Give();
  of_gpm.Give();
  pcie.Give();
  links.Give();
}

/// Why a device has no sample; success if it has one.
base::Status CheckAnswers(const NvmlDevice& nvml_device, const std::string& name) {
  if (nvml_device.gone())
    return Error(Code::kUnavailable, "the NVIDIA driver is gone: " + nvml_device.gone()->message());
  if (nvml_device.lost())
    return Error(Code::kDataLoss,
                 name + " does not answer: " +
                     ToError(nvml_device.lost_code(), nvml_device.lost_function()).message());
  return {};
}

}  // namespace

Sampling::Sampling(const Functions& nvml, const base::Clock& clock)
    : state_(new State{nvml, clock, DriverNumber(nvml), {}}) {}
Sampling::~Sampling() = default;

Result<device::Sample> Sampling::Take(abi::Device device, const std::string& address,
                                      const device::SampleRequest& request, ProcessesOf processes) {
  const auto [known, unknown] = state_->gpus.try_emplace(address, state_->nvml);
  SampledGpu& gpu = known->second;
  if (unknown) PrepareReasonFields(state_->driver, gpu);
  NvmlDevice nvml_device(state_->nvml, device);
  SampleBuilder builder(nvml_device, gpu, request, state_->clock.Now());
  ReadBoard(builder);
  if (!nvml_device.gone() && !nvml_device.lost()) {
    ReadCondition(builder);
    ReadLinks(builder);
    ReadBatches(builder);
    if (request.processes) ReadProcessUse(builder, processes);
  }
  if (nvml_device.lost() && !nvml_device.gone()) Forget(address);
  TRY(CheckAnswers(nvml_device, "GPU " + address));
  return std::move(builder.sample);
}

Result<device::Sample> Sampling::Take(const SampledInstance& instance, const std::string& address,
                                      const device::SampleRequest& request) {
  const auto [known, unknown] = state_->gpus.try_emplace(address, state_->nvml);
  SampledGpu& sampled = known->second;
  if (unknown) PrepareInstance(sampled);
  if (instance.gpu_instance) sampled.gpm.SetInstance(instance.gpu, *instance.gpu_instance);
  NvmlDevice nvml_device(state_->nvml, instance.device);
  SampleBuilder builder(nvml_device, sampled, request, state_->clock.Now());
  const bool has_memory = !builder.Of(NvmlCall::kMemory).empty();
  ReadInstance(builder, instance.gpu_instance.has_value());
  if (request.processes && instance.has_processes) ReadProcessUse(builder, ProcessesOf::kDevice);
  device::Sample sample = std::move(builder.sample);
  // An instance always has memory. What it refuses after its removal, its successor may have.
  const bool removed = has_memory && sample.values.empty();
  if (removed || nvml_device.lost()) Forget(address);
  TRY(CheckAnswers(nvml_device, "MIG device " + address));
  if (removed) return Error(Code::kNotFound, "MIG device " + address + " was removed");
  return sample;
}

void Sampling::Forget(const std::string& address) { state_->gpus.erase(address); }

}  // namespace penstock::backend::nvidia
