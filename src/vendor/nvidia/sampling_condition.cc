// Errors by location, spare rows, what holds clocks down, the fabric.
#include "vendor/nvidia/sampling_calls.h"

namespace penstock::vendor::nvidia {
namespace {

/// DCGM's number for a probe of the fabric that ended in an error (dcgmFabricManagerStatus_t); those before it are NVML's states.
constexpr std::uint64_t kFabricFailed = 4;

void AskEccByLocation(Taking& taking) {
  for (const Wanted& wanted : taking.Of(Call::kEccLocation)) {
    const unsigned number = wanted.way.number;
    unsigned long long count = 0;
    const bool answered =
        taking.questions.Ask(taking.questions.nvml().ecc_errors_by_location, number & 1, number >> 1 & 1, number >> 2, &count);
    if (taking.Answered(answered, {&wanted, 1})) taking.Give(wanted.id, std::uint64_t{count});
  }
}

void AskBanks(Taking& taking) {
  const auto wanted = taking.Of(Call::kRemappedBanks);
  abi::RemappedBanks banks{};
  if (wanted.empty() || !taking.Answered(taking.questions.Ask(taking.questions.nvml().remapped_banks, &banks), wanted)) return;
  const unsigned counts[] = {banks.most, banks.high, banks.partial, banks.low, banks.none};
  for (const Wanted& one : wanted) taking.Give(one.id, std::uint64_t{counts[one.way.number]});
}

/// The bits that a driver sets at all: 0 for one that it does not know would be a lie.
unsigned long long KnownReasons(Taking& taking) {
  if (taking.gpu.known_reasons) return *taking.gpu.known_reasons;
  unsigned long long known = 0;
  const bool answered = taking.questions.Ask(taking.questions.nvml().known_clocks_reasons, &known);
  if (!answered) known = ~0ull;
  if (answered || SaysNever(taking.questions.last())) taking.gpu.known_reasons = known;
  return known;
}

void AskReasons(Taking& taking) {
  const auto wanted = taking.Of(Call::kReasons);
  unsigned long long reasons = 0;
  if (wanted.empty() || !taking.Answered(taking.questions.Ask(taking.questions.nvml().clocks_reasons, &reasons), wanted)) return;
  const unsigned long long known = KnownReasons(taking);
  for (const Wanted& one : wanted) {
    if (one.way.number == 0) {
      taking.Give(one.id, std::uint64_t{reasons});
    } else if ((known & one.way.number) == 0) {
      taking.Missing(one.id);
    } else {
      taking.Give(one.id, std::uint64_t{(reasons & one.way.number) != 0});
    }
  }
}

/// In whichever version the driver knows; what a version does not have stays at its mark.
struct Fabric {
  static constexpr unsigned kUnknown = ~0u;
  unsigned state = 0, status = 0, clique = 0, health_mask = kUnknown, health = kUnknown;
};

bool AskFabric(Questions& questions, Fabric& fabric) {
  abi::FabricInfoV3 third{};
  third.version = abi::kFabricInfoV3;
  if (questions.Ask(questions.nvml().fabric_v3, &third)) {
    fabric = {third.state, static_cast<unsigned>(third.status), third.clique, third.health_mask, third.health};
    return true;
  }
  if (!SaysNever(questions.last())) return false;
  abi::FabricInfoV2 second{};
  second.version = abi::kFabricInfoV2;
  if (questions.Ask(questions.nvml().fabric_v2, &second)) {
    fabric = {second.state, static_cast<unsigned>(second.status), second.clique, second.health_mask, Fabric::kUnknown};
    return true;
  }
  if (!SaysNever(questions.last())) return false;
  abi::FabricInfo first{};
  if (!questions.Ask(questions.nvml().fabric, &first)) return false;
  fabric = {first.state, static_cast<unsigned>(first.status), first.clique, Fabric::kUnknown, Fabric::kUnknown};
  return true;
}

void GiveFabric(Taking& taking, const Wanted& wanted, const Fabric& fabric) {
  const bool completed = fabric.state == abi::kFabricCompleted;
  // Which of them are told from 0 only where the GPU has joined a fabric.
  const auto give_if = [&](bool told, std::uint64_t value) {
    if (told) taking.Give(wanted.id, value);
  };
  switch (static_cast<FabricPart>(wanted.way.number)) {
    case FabricPart::kState: taking.Give(wanted.id, completed && fabric.status != abi::kSuccess ? kFabricFailed : fabric.state); break;
    case FabricPart::kStatus: give_if(completed, fabric.status); break;
    case FabricPart::kClique: give_if(completed && fabric.status == abi::kSuccess, fabric.clique); break;
    case FabricPart::kHealthMask:
    case FabricPart::kHealthSummary: {
      const bool mask = static_cast<FabricPart>(wanted.way.number) == FabricPart::kHealthMask;
      const unsigned value = mask ? fabric.health_mask : fabric.health;
      if (value == Fabric::kUnknown) taking.Missing(wanted.id);
      give_if(value != Fabric::kUnknown && completed, value);
      break;
    }
  }
}

void AskFabric(Taking& taking) {
  const auto wanted = taking.Of(Call::kFabric);
  Fabric fabric;
  if (wanted.empty() || !taking.Answered(AskFabric(taking.questions, fabric), wanted)) return;
  for (const Wanted& one : wanted) GiveFabric(taking, one, fabric);
}

}  // namespace

void AskCondition(Taking& taking) {
  AskEccByLocation(taking);
  AskBanks(taking);
  AskReasons(taking);
  AskFabric(taking);
}

}  // namespace penstock::vendor::nvidia
