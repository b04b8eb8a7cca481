// One call for each group of quantities that come together.
#include "vendor/nvidia/sampling.h"

#include <algorithm>
#include <initializer_list>

#include "vendor/nvidia/dialect/quantities.h"
#include "vendor/nvidia/facts.h"

namespace penstock::vendor::nvidia {

using base::Code;
using device::Sample;
using device::SampleRequest;

struct Sampling::State {
  explicit State(const Nvml& a_nvml) : nvml(a_nvml) {}
  const Nvml& nvml;
};

namespace {

device::QuantityId Id(std::string_view key) { return FindQuantity(key).value(); }

/// What a call says of the quantities that it would have given.
void Note(abi::Return code, std::initializer_list<device::Value> values, Sample& sample) {
  for (const device::Value& value : values) {
    if (code == abi::kSuccess) sample.values.push_back(value);
    if (code == abi::kNotSupported || code == abi::kFunctionNotFound) sample.unsupported.push_back(value.quantity);
  }
}

}  // namespace

Sampling::Sampling(const Nvml& nvml) : state_(std::make_unique<State>(nvml)) {}
Sampling::~Sampling() = default;

base::Result<Sample> Sampling::Take(abi::Device device, const std::string&, const SampleRequest& request) {
  const Nvml& nvml = state_->nvml;
  Sample all;
  abi::Utilization utilization{};
  abi::Return code = nvml->utilization(device, &utilization);
  if (SaysLost(code) && code != abi::kUnknown) return base::Error(Code::kDataLoss, ToError(code, nvml->utilization.name).message());
  Note(code,
       {{Id("utilization.gpu"), -1, std::uint64_t{utilization.gpu}}, {Id("utilization.memory"), -1, std::uint64_t{utilization.memory}}},
       all);
  abi::MemoryV2 memory{};
  memory.version = abi::kMemoryV2;
  code = nvml->memory_v2(device, &memory);
  Note(code,
       {{Id("memory.used"), -1, std::uint64_t{memory.used}},
        {Id("memory.free"), -1, std::uint64_t{memory.free}},
        {Id("memory.reserved"), -1, std::uint64_t{memory.reserved}}},
       all);
  unsigned number = 0;
  code = nvml->temperature(device, abi::kTemperatureOfTheGpu, &number);
  Note(code, {{Id("temperature.gpu"), -1, std::uint64_t{number}}}, all);
  code = nvml->power(device, &number);
  Note(code, {{Id("power"), -1, std::uint64_t{number}}}, all);
  const auto unwanted = [&request](device::QuantityId quantity) {
    return std::find(request.quantities.begin(), request.quantities.end(), quantity) == request.quantities.end();
  };
  std::erase_if(all.values, [&](const device::Value& value) { return unwanted(value.quantity); });
  std::erase_if(all.unsupported, unwanted);
  return all;
}

}  // namespace penstock::vendor::nvidia
