// The order of a sample: what is due is collected, asked for in as few calls as there can be, and read.
#include "vendor/nvidia/sampling.h"

#include <array>

#include "base/core/strings.h"
#include "vendor/nvidia/sampling_calls.h"
#include "vendor/nvidia/sampling_processes.h"
#include "vendor/nvidia/sampling_traffic.h"

namespace penstock::vendor::nvidia {

using base::Code;
using base::Error;
using base::Result;

struct Sampling::State {
  const Functions& nvml;
  const base::Clock& clock;
  unsigned driver = 0;                     // see DriverNumber
  std::map<std::string, SampledGpu> gpus;  // by address
};

namespace {

/// Branch and number within it: 580065 for "580.65.06". 0 where the driver does not tell.
unsigned DriverNumber(const Functions& nvml) {
  std::array<char, abi::kVersionLength + 1> version{};
  if (nvml.driver_version(version.data(), abi::kVersionLength) != abi::kSuccess) return 0;
  const std::vector<std::string> parts = base::Split(version.data(), '.');
  const auto branch = base::ParseUint(parts[0]);
  const auto minor = parts.size() > 1 ? base::ParseUint(parts[1]) : std::nullopt;
  return branch && minor && *branch < 100000 && *minor < 1000 ? static_cast<unsigned>(*branch * 1000 + *minor) : 0;
}

/// By what number a driver knows the field of the first of three reasons. They were given other numbers between 580.65 and 580.82, where
/// there are fields of power smoothing else: no driver refuses them.
unsigned FirstReasonField(unsigned driver) {
  if (driver >= 580082) return kFirstReasonField;
  return driver >= 575000 ? 251 : 0;
}

void PrepareReasonFields(unsigned driver, SampledGpu& gpu) {
  gpu.first_reason_field = FirstReasonField(driver);
  if (gpu.first_reason_field != 0) return;
  for (device::QuantityId id = 0; id < gpu.missing.size(); ++id)
    if (WayOf(id).call == Call::kField && IsReasonField(WayOf(id).number)) gpu.missing[id] = true;
}

bool NeedsGpm(const Taking& taking) {
  for (const Call call : {Call::kGpm, Call::kPcieTraffic, Call::kPcieRate, Call::kFabricRate, Call::kFabricLinkRate})
    if (!taking.Of(call).empty()) return true;
  return false;
}

/// All that one call, or two samples of counters, give for many quantities.
void AskBatches(Taking& taking) {
  const std::optional<bool> gpm = NeedsGpm(taking) ? taking.gpu.gpm.Supported(taking.questions) : std::nullopt;
  FieldBatch fields;
  GpmBatch metrics;
  FieldQuantities of_fields(taking, fields);
  GpmQuantities of_gpm(taking, gpm, metrics);
  PcieTraffic pcie(taking, gpm, fields, metrics);
  LinkTraffic links(taking, gpm, fields, metrics);
  fields.Run(taking.questions);
  metrics.Run(taking);
  of_fields.Give();
  of_gpm.Give();
  pcie.Give();
  links.Give();
}

}  // namespace

Sampling::Sampling(const Functions& nvml, const base::Clock& clock) : state_(new State{nvml, clock, DriverNumber(nvml), {}}) {}
Sampling::~Sampling() = default;

Result<device::Sample> Sampling::Take(abi::Device device, const std::string& address, const device::SampleRequest& request) {
  const auto [known, unknown] = state_->gpus.try_emplace(address, state_->nvml);
  SampledGpu& gpu = known->second;
  if (unknown) PrepareReasonFields(state_->driver, gpu);
  Questions questions(state_->nvml, device);
  Taking taking(questions, gpu, request, state_->clock.Now());
  AskBoard(taking);
  if (!questions.gone() && !questions.lost()) {
    AskCondition(taking);
    AskLinks(taking);
    AskBatches(taking);
    if (request.processes) AskProcessUse(taking);
  }
  if (questions.gone()) return Error(Code::kUnavailable, "the NVIDIA driver went away: " + questions.gone()->message());
  if (questions.lost()) {
    Forget(address);
    return Error(Code::kDataLoss,
                 "GPU " + address + " does not answer: " + ToError(questions.lost_code(), questions.lost_function()).message());
  }
  return std::move(taking.sample);
}

void Sampling::Forget(const std::string& address) { state_->gpus.erase(address); }

}  // namespace penstock::vendor::nvidia
