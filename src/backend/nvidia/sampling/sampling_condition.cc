// Samples errors by location, spare rows, reasons for reduced clocks, the fabric.
#include "backend/nvidia/sampling/sampling_calls.h"

namespace penstock::backend::nvidia {
namespace {

/// DCGM's number for a probe of the fabric that ended in an error (dcgmFabricManagerStatus_t); the
/// numbers before it are NVML's states.
constexpr std::uint64_t kFabricFailed = 4;

void ReadEccByLocation(SampleBuilder& builder) {
  for (const Wanted& wanted : builder.Of(NvmlCall::kEccLocation)) {
    const unsigned number = wanted.query.number;
    unsigned long long count = 0;
    const bool answered =
        builder.nvml_device.Call(builder.nvml_device.nvml().ecc_errors_by_location, number & 1,
                                 number >> 1 & 1, number >> 2, &count);
    if (builder.Answered(answered, {&wanted, 1})) builder.Give(wanted.id, std::uint64_t{count});
  }
}

void ReadBanks(SampleBuilder& builder) {
  const auto wanted = builder.Of(NvmlCall::kRemappedBanks);
  abi::RemappedBanks banks{};
  if (wanted.empty() ||
      !builder.Answered(builder.nvml_device.Call(builder.nvml_device.nvml().remapped_banks, &banks),
                        wanted))
    return;
  const unsigned counts[] = {banks.most, banks.high, banks.partial, banks.low, banks.none};
  for (const Wanted& one : wanted) builder.Give(one.id, std::uint64_t{counts[one.query.number]});
}

/// The bits that a driver supports: reporting 0 for an unsupported bit would be wrong.
unsigned long long KnownReasons(SampleBuilder& builder) {
  if (builder.gpu.known_reasons) return *builder.gpu.known_reasons;
  unsigned long long known = 0;
  const bool answered =
      builder.nvml_device.Call(builder.nvml_device.nvml().known_clocks_reasons, &known);
  if (!answered) known = ~0ull;
  if (answered || IsPermanent(builder.nvml_device.last())) builder.gpu.known_reasons = known;
  return known;
}

void ReadReasons(SampleBuilder& builder) {
  const auto wanted = builder.Of(NvmlCall::kReasons);
  unsigned long long reasons = 0;
  if (wanted.empty() ||
      !builder.Answered(
          builder.nvml_device.Call(builder.nvml_device.nvml().clocks_reasons, &reasons), wanted))
    return;
  const unsigned long long known = KnownReasons(builder);
  for (const Wanted& one : wanted) {
    if (one.query.number == 0) {
      builder.Give(one.id, std::uint64_t{reasons});
    } else if ((known & one.query.number) == 0) {
      builder.Missing(one.id);
    } else {
      builder.Give(one.id, std::uint64_t{(reasons & one.query.number) != 0});
    }
  }
}

/// The fabric's state, from whichever version the driver supports; members that a version lacks
/// stay kUnknown.
struct Fabric {
  static constexpr unsigned kUnknown = ~0u;
  unsigned state = 0, status = 0, clique = 0, health_mask = kUnknown, health = kUnknown;
};

bool ReadFabric(NvmlDevice& nvml_device, Fabric& fabric) {
  abi::FabricInfoV3 third{};
  third.version = abi::kFabricInfoV3;
  if (nvml_device.Call(nvml_device.nvml().fabric_v3, &third)) {
    fabric = {third.state, static_cast<unsigned>(third.status), third.clique, third.health_mask,
              third.health};
    return true;
  }
  if (!IsPermanent(nvml_device.last())) return false;
  abi::FabricInfoV2 second{};
  second.version = abi::kFabricInfoV2;
  if (nvml_device.Call(nvml_device.nvml().fabric_v2, &second)) {
    fabric = {second.state, static_cast<unsigned>(second.status), second.clique, second.health_mask,
              Fabric::kUnknown};
    return true;
  }
  if (!IsPermanent(nvml_device.last())) return false;
  abi::FabricInfo first{};
  if (!nvml_device.Call(nvml_device.nvml().fabric, &first)) return false;
  fabric = {first.state, static_cast<unsigned>(first.status), first.clique, Fabric::kUnknown,
            Fabric::kUnknown};
  return true;
}

void GiveFabric(SampleBuilder& builder, const Wanted& wanted, const Fabric& fabric) {
  const bool completed = fabric.state == abi::kFabricCompleted;
  // Some parts are distinguishable from 0 only if the GPU has joined a fabric.
  const auto give_if = [&](bool reported, std::uint64_t value) {
    if (reported) builder.Give(wanted.id, value);
  };
  switch (static_cast<FabricPart>(wanted.query.number)) {
    case FabricPart::kState:
      builder.Give(wanted.id,
                   completed && fabric.status != abi::kSuccess ? kFabricFailed : fabric.state);
      break;
    case FabricPart::kStatus: give_if(completed, fabric.status); break;
    case FabricPart::kClique:
      give_if(completed && fabric.status == abi::kSuccess, fabric.clique);
      break;
    case FabricPart::kHealthMask:
    case FabricPart::kHealthSummary: {
      const bool mask = static_cast<FabricPart>(wanted.query.number) == FabricPart::kHealthMask;
      const unsigned value = mask ? fabric.health_mask : fabric.health;
      if (value == Fabric::kUnknown) builder.Missing(wanted.id);
      give_if(value != Fabric::kUnknown && completed, value);
      break;
    }
  }
}

void ReadFabric(SampleBuilder& builder) {
  const auto wanted = builder.Of(NvmlCall::kFabric);
  Fabric fabric;
  if (wanted.empty() || !builder.Answered(ReadFabric(builder.nvml_device, fabric), wanted)) return;
  for (const Wanted& one : wanted) GiveFabric(builder, one, fabric);
}

}  // namespace

void ReadCondition(SampleBuilder& builder) {
  ReadEccByLocation(builder);
  ReadBanks(builder);
  ReadReasons(builder);
  ReadFabric(builder);
}

}  // namespace penstock::backend::nvidia
