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
  unsigned driver = 0;                     // its branch, 0 where it does not tell
  std::map<std::string, SampledGpu> gpus;  // by address
};

namespace {

unsigned DriverBranch(const Functions& nvml) {
  std::array<char, abi::kVersionLength + 1> version{};
  if (nvml.driver_version(version.data(), abi::kVersionLength) != abi::kSuccess) return 0;
  const std::string text = version.data();
  return static_cast<unsigned>(base::ParseUint(text.substr(0, text.find('.'))).value_or(0));
}

/// The numbers of these fields in the headers of CUDA 12.8, 12.9 and 13 are three different ones: what they give on an older driver is
/// something else, without being refused.
void LeaveOutUnsureFields(unsigned driver, SampledGpu& gpu) {
  constexpr unsigned kSureFrom = 580, kFirst = 251, kLast = 273;
  for (device::QuantityId id = 0; driver < kSureFrom && id < gpu.missing.size(); ++id) {
    const Way way = WayOf(id);
    if (way.call == Call::kField && way.number >= kFirst && way.number <= kLast) gpu.missing[id] = true;
  }
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

Sampling::Sampling(const Functions& nvml, const base::Clock& clock) : state_(new State{nvml, clock, DriverBranch(nvml), {}}) {}
Sampling::~Sampling() = default;

Result<device::Sample> Sampling::Take(abi::Device device, const std::string& address, const device::SampleRequest& request) {
  const auto [known, unknown] = state_->gpus.try_emplace(address, state_->nvml);
  SampledGpu& gpu = known->second;
  if (unknown) LeaveOutUnsureFields(state_->driver, gpu);
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
