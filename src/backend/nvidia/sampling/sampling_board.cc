// Samples clocks, temperatures, power, utilization, memory, the PCIe link, modes: one call for
// values that come together.
#include "backend/nvidia/sampling/sampling_calls.h"

namespace penstock::backend::nvidia {
namespace {

/// For functions that return one number.
template <typename... P, typename... A>
void ReadNumber(SampleBuilder& builder, const Wanted& wanted,
                const Function<abi::Device, P...>& function, A... arguments) {
  unsigned number = 0;
  if (builder.Answered(builder.nvml_device.Call(function, arguments..., &number), {&wanted, 1}))
    builder.Give(wanted.id, std::uint64_t{number});
}

void ReadClocks(SampleBuilder& builder) {
  const Functions& nvml = builder.nvml_device.nvml();
  for (const Wanted& wanted : builder.Of(NvmlCall::kClock))
    ReadNumber(builder, wanted, nvml.clock_info, wanted.query.number);
  for (const Wanted& wanted : builder.Of(NvmlCall::kMaxClock))
    ReadNumber(builder, wanted, nvml.max_clock_info, wanted.query.number);
  for (const Wanted& wanted : builder.Of(NvmlCall::kApplicationClock)) {
    // The older call was removed in driver 590.
    unsigned megahertz = 0;
    bool answered = builder.nvml_device.Call(nvml.clock, wanted.query.number,
                                             abi::kClockOfTheApplication, &megahertz);
    if (!answered && IsPermanent(builder.nvml_device.last()))
      answered = builder.nvml_device.Call(nvml.application_clock, wanted.query.number, &megahertz);
    if (builder.Answered(answered, {&wanted, 1})) builder.Give(wanted.id, std::uint64_t{megahertz});
  }
}

void ReadTemperatures(SampleBuilder& builder) {
  const Functions& nvml = builder.nvml_device.nvml();
  for (const Wanted& wanted : builder.Of(NvmlCall::kTemperature))
    ReadNumber(builder, wanted, nvml.temperature, abi::kTemperatureOfTheGpu);
  for (const Wanted& wanted : builder.Of(NvmlCall::kThreshold))
    ReadNumber(builder, wanted, nvml.threshold, wanted.query.number);
  for (const Wanted& wanted : builder.Of(NvmlCall::kMargin)) {
    abi::MarginTemperature margin{abi::kMarginTemperature, 0};
    if (builder.Answered(builder.nvml_device.Call(nvml.margin, &margin), {&wanted, 1}))
      builder.Give(wanted.id, static_cast<double>(margin.margin));
  }
}

void ReadPower(SampleBuilder& builder) {
  const Functions& nvml = builder.nvml_device.nvml();
  for (const Wanted& wanted : builder.Of(NvmlCall::kPower)) ReadNumber(builder, wanted, nvml.power);
  for (const Wanted& wanted : builder.Of(NvmlCall::kPowerLimit)) {
    unsigned least = 0, most = 0;
    switch (static_cast<PowerLimit>(wanted.query.number)) {
      case PowerLimit::kEnforced: ReadNumber(builder, wanted, nvml.enforced_power_limit); break;
      case PowerLimit::kManagement: ReadNumber(builder, wanted, nvml.power_limit); break;
      case PowerLimit::kDefault: ReadNumber(builder, wanted, nvml.default_power_limit); break;
      case PowerLimit::kMin:
      case PowerLimit::kMax:
        if (builder.Answered(builder.nvml_device.Call(nvml.power_limits, &least, &most),
                             {&wanted, 1}))
          builder.Give(
              wanted.id,
              std::uint64_t{
                  static_cast<PowerLimit>(wanted.query.number) == PowerLimit::kMin ? least : most});
        break;
    }
  }
}

void ReadUtilization(SampleBuilder& builder) {
  const Functions& nvml = builder.nvml_device.nvml();
  const auto rates = builder.Of(NvmlCall::kUtilization);
  abi::Utilization utilization{};
  if (!rates.empty() &&
      builder.Answered(builder.nvml_device.Call(nvml.utilization, &utilization), rates))
    for (const Wanted& wanted : rates)
      builder.Give(wanted.id,
                   std::uint64_t{wanted.query.number == 0 ? utilization.gpu : utilization.memory});
  const Function<abi::Device, unsigned*, unsigned*>* engines[] = {&nvml.encoder, &nvml.decoder,
                                                                  &nvml.jpeg, &nvml.optical_flow};
  for (const Wanted& wanted : builder.Of(NvmlCall::kEngine)) {
    unsigned percent = 0, period = 0;
    if (builder.Answered(builder.nvml_device.Call(*engines[wanted.query.number], &percent, &period),
                         {&wanted, 1}))
      builder.Give(wanted.id, std::uint64_t{percent});
  }
}

/// A driver before 510 does not distinguish reserved from used memory.
void GiveMemoryV1(SampleBuilder& builder, std::span<const Wanted> wanted) {
  abi::Memory memory{};
  if (!builder.Answered(builder.nvml_device.Call(builder.nvml_device.nvml().memory, &memory),
                        wanted))
    return;
  for (const Wanted& one : wanted) {
    switch (static_cast<MemoryPart>(one.query.number)) {
      case MemoryPart::kTotal: builder.Give(one.id, std::uint64_t{memory.total}); break;
      case MemoryPart::kFree: builder.Give(one.id, std::uint64_t{memory.free}); break;
      case MemoryPart::kUsed: builder.Give(one.id, std::uint64_t{memory.used}); break;
      case MemoryPart::kReserved: builder.Missing(one.id); break;
      case MemoryPart::kUsedRatio:
        if (memory.total > 0)
          builder.Give(one.id,
                       static_cast<double>(memory.used) / static_cast<double>(memory.total));
        break;
    }
  }
}

void ReadMemory(SampleBuilder& builder) {
  const auto wanted = builder.Of(NvmlCall::kMemory);
  if (wanted.empty()) return;
  abi::MemoryV2 memory{};
  memory.version = abi::kMemoryV2;
  if (!builder.nvml_device.Call(builder.nvml_device.nvml().memory_v2, &memory)) {
    if (IsPermanent(builder.nvml_device.last())) GiveMemoryV1(builder, wanted);
    return;
  }
  for (const Wanted& one : wanted) {
    switch (static_cast<MemoryPart>(one.query.number)) {
      case MemoryPart::kTotal: builder.Give(one.id, std::uint64_t{memory.total}); break;
      case MemoryPart::kFree: builder.Give(one.id, std::uint64_t{memory.free}); break;
      case MemoryPart::kUsed: builder.Give(one.id, std::uint64_t{memory.used}); break;
      case MemoryPart::kReserved: builder.Give(one.id, std::uint64_t{memory.reserved}); break;
      case MemoryPart::kUsedRatio:
        if (memory.total > memory.reserved)
          builder.Give(one.id, static_cast<double>(memory.used) /
                                   static_cast<double>(memory.total - memory.reserved));
        break;
    }
  }
}

void ReadBar1(SampleBuilder& builder) {
  const auto wanted = builder.Of(NvmlCall::kBar1);
  abi::Bar1Memory memory{};
  if (wanted.empty() ||
      !builder.Answered(builder.nvml_device.Call(builder.nvml_device.nvml().bar1, &memory), wanted))
    return;
  for (const Wanted& one : wanted) {
    const auto part = static_cast<MemoryPart>(one.query.number);
    builder.Give(one.id, std::uint64_t{part == MemoryPart::kTotal  ? memory.total
                                       : part == MemoryPart::kFree ? memory.free
                                                                   : memory.used});
  }
}

void ReadPcieLink(SampleBuilder& builder) {
  const Functions& nvml = builder.nvml_device.nvml();
  const Function<abi::Device, unsigned*>* functions[] = {
      &nvml.pcie_generation, &nvml.max_pcie_generation, &nvml.pcie_width, &nvml.max_pcie_width};
  for (const Wanted& wanted : builder.Of(NvmlCall::kPcieLink))
    ReadNumber(builder, wanted, *functions[wanted.query.number]);
}

void ReadModes(SampleBuilder& builder) {
  const Functions& nvml = builder.nvml_device.nvml();
  for (const Wanted& wanted : builder.Of(NvmlCall::kPerformanceState))
    ReadNumber(builder, wanted, nvml.performance_state);
  for (const Wanted& wanted : builder.Of(NvmlCall::kFan)) ReadNumber(builder, wanted, nvml.fan);
  for (const Wanted& wanted : builder.Of(NvmlCall::kMode)) {
    unsigned current = 0, pending = 0;
    switch (static_cast<ModeOf>(wanted.query.number)) {
      case ModeOf::kCompute: ReadNumber(builder, wanted, nvml.compute_mode); break;
      case ModeOf::kPersistence: ReadNumber(builder, wanted, nvml.persistence_mode); break;
      case ModeOf::kMig:
        if (builder.Answered(builder.nvml_device.Call(nvml.mig_mode, &current, &pending),
                             {&wanted, 1}))
          builder.Give(wanted.id, std::uint64_t{current});
        break;
    }
  }
  for (const Wanted& wanted : builder.Of(NvmlCall::kLicense)) {
    abi::LicensableFeatures features{};
    if (!builder.Answered(builder.nvml_device.Call(nvml.licensable_features, &features),
                          {&wanted, 1}))
      continue;
    bool licensed = false;
    for (unsigned i = 0;
         features.supported != 0 && i < features.count && i < std::size(features.features); ++i)
      licensed = licensed || features.features[i].licensed != 0;
    builder.Give(wanted.id, std::uint64_t{licensed});
  }
}

}  // namespace

void ReadBoard(SampleBuilder& builder) {
  ReadClocks(builder);
  ReadTemperatures(builder);
  ReadPower(builder);
  ReadUtilization(builder);
  ReadMemory(builder);
  ReadBar1(builder);
  ReadPcieLink(builder);
  ReadModes(builder);
}

}  // namespace penstock::backend::nvidia
