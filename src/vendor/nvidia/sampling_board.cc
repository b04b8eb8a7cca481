// Clocks, temperatures, power, utilization, memory, the PCIe link, modes: one call for what comes together.
#include "vendor/nvidia/sampling_calls.h"

namespace penstock::vendor::nvidia {
namespace {

/// For functions that answer one number.
template <typename... P, typename... A>
void AskNumber(Taking& taking, const Wanted& wanted, const Function<abi::Device, P...>& function, A... arguments) {
  unsigned number = 0;
  if (taking.Answered(taking.questions.Ask(function, arguments..., &number), {&wanted, 1})) taking.Give(wanted.id, std::uint64_t{number});
}

void AskClocks(Taking& taking) {
  const Functions& nvml = taking.questions.nvml();
  for (const Wanted& wanted : taking.Of(Call::kClock)) AskNumber(taking, wanted, nvml.clock_info, wanted.way.number);
  for (const Wanted& wanted : taking.Of(Call::kMaxClock)) AskNumber(taking, wanted, nvml.max_clock_info, wanted.way.number);
  for (const Wanted& wanted : taking.Of(Call::kApplicationClock)) {
    // The older call was withdrawn with driver 590.
    unsigned megahertz = 0;
    bool answered = taking.questions.Ask(nvml.clock, wanted.way.number, abi::kClockOfTheApplication, &megahertz);
    if (!answered && SaysNever(taking.questions.last()))
      answered = taking.questions.Ask(nvml.application_clock, wanted.way.number, &megahertz);
    if (taking.Answered(answered, {&wanted, 1})) taking.Give(wanted.id, std::uint64_t{megahertz});
  }
}

void AskTemperatures(Taking& taking) {
  const Functions& nvml = taking.questions.nvml();
  for (const Wanted& wanted : taking.Of(Call::kTemperature)) AskNumber(taking, wanted, nvml.temperature, abi::kTemperatureOfTheGpu);
  for (const Wanted& wanted : taking.Of(Call::kThreshold)) AskNumber(taking, wanted, nvml.threshold, wanted.way.number);
  for (const Wanted& wanted : taking.Of(Call::kMargin)) {
    abi::MarginTemperature margin{abi::kMarginTemperature, 0};
    if (taking.Answered(taking.questions.Ask(nvml.margin, &margin), {&wanted, 1}))
      taking.Give(wanted.id, static_cast<double>(margin.margin));
  }
}

void AskPower(Taking& taking) {
  const Functions& nvml = taking.questions.nvml();
  for (const Wanted& wanted : taking.Of(Call::kPower)) AskNumber(taking, wanted, nvml.power);
  for (const Wanted& wanted : taking.Of(Call::kPowerLimit)) {
    unsigned least = 0, most = 0;
    switch (static_cast<PowerLimit>(wanted.way.number)) {
      case PowerLimit::kEnforced: AskNumber(taking, wanted, nvml.enforced_power_limit); break;
      case PowerLimit::kManagement: AskNumber(taking, wanted, nvml.power_limit); break;
      case PowerLimit::kDefault: AskNumber(taking, wanted, nvml.default_power_limit); break;
      case PowerLimit::kLeast:
      case PowerLimit::kMost:
        if (taking.Answered(taking.questions.Ask(nvml.power_limits, &least, &most), {&wanted, 1}))
          taking.Give(wanted.id, std::uint64_t{static_cast<PowerLimit>(wanted.way.number) == PowerLimit::kLeast ? least : most});
        break;
    }
  }
}

void AskUtilization(Taking& taking) {
  const Functions& nvml = taking.questions.nvml();
  const auto rates = taking.Of(Call::kUtilization);
  abi::Utilization utilization{};
  if (!rates.empty() && taking.Answered(taking.questions.Ask(nvml.utilization, &utilization), rates))
    for (const Wanted& wanted : rates) taking.Give(wanted.id, std::uint64_t{wanted.way.number == 0 ? utilization.gpu : utilization.memory});
  const Function<abi::Device, unsigned*, unsigned*>* engines[] = {&nvml.encoder, &nvml.decoder, &nvml.jpeg, &nvml.optical_flow};
  for (const Wanted& wanted : taking.Of(Call::kEngine)) {
    unsigned percent = 0, period = 0;
    if (taking.Answered(taking.questions.Ask(*engines[wanted.way.number], &percent, &period), {&wanted, 1}))
      taking.Give(wanted.id, std::uint64_t{percent});
  }
}

/// A driver before 510 does not tell what is reserved from what is used.
void GiveMemoryV1(Taking& taking, std::span<const Wanted> wanted) {
  abi::Memory memory{};
  if (!taking.Answered(taking.questions.Ask(taking.questions.nvml().memory, &memory), wanted)) return;
  for (const Wanted& one : wanted) {
    switch (static_cast<MemoryPart>(one.way.number)) {
      case MemoryPart::kTotal: taking.Give(one.id, std::uint64_t{memory.total}); break;
      case MemoryPart::kFree: taking.Give(one.id, std::uint64_t{memory.free}); break;
      case MemoryPart::kUsed: taking.Give(one.id, std::uint64_t{memory.used}); break;
      case MemoryPart::kReserved: taking.Missing(one.id); break;
      case MemoryPart::kUsedRatio:
        if (memory.total > 0) taking.Give(one.id, static_cast<double>(memory.used) / static_cast<double>(memory.total));
        break;
    }
  }
}

void AskMemory(Taking& taking) {
  const auto wanted = taking.Of(Call::kMemory);
  if (wanted.empty()) return;
  abi::MemoryV2 memory{};
  memory.version = abi::kMemoryV2;
  if (!taking.questions.Ask(taking.questions.nvml().memory_v2, &memory)) {
    if (SaysNever(taking.questions.last())) GiveMemoryV1(taking, wanted);
    return;
  }
  for (const Wanted& one : wanted) {
    switch (static_cast<MemoryPart>(one.way.number)) {
      case MemoryPart::kTotal: taking.Give(one.id, std::uint64_t{memory.total}); break;
      case MemoryPart::kFree: taking.Give(one.id, std::uint64_t{memory.free}); break;
      case MemoryPart::kUsed: taking.Give(one.id, std::uint64_t{memory.used}); break;
      case MemoryPart::kReserved: taking.Give(one.id, std::uint64_t{memory.reserved}); break;
      case MemoryPart::kUsedRatio:
        if (memory.total > memory.reserved)
          taking.Give(one.id, static_cast<double>(memory.used) / static_cast<double>(memory.total - memory.reserved));
        break;
    }
  }
}

void AskBar1(Taking& taking) {
  const auto wanted = taking.Of(Call::kBar1);
  abi::Bar1Memory memory{};
  if (wanted.empty() || !taking.Answered(taking.questions.Ask(taking.questions.nvml().bar1, &memory), wanted)) return;
  for (const Wanted& one : wanted) {
    const auto part = static_cast<MemoryPart>(one.way.number);
    taking.Give(one.id, std::uint64_t{part == MemoryPart::kTotal ? memory.total : part == MemoryPart::kFree ? memory.free : memory.used});
  }
}

void AskPcieLink(Taking& taking) {
  const Functions& nvml = taking.questions.nvml();
  const Function<abi::Device, unsigned*>* functions[] = {&nvml.pcie_generation, &nvml.max_pcie_generation, &nvml.pcie_width,
                                                         &nvml.max_pcie_width};
  for (const Wanted& wanted : taking.Of(Call::kPcieLink)) AskNumber(taking, wanted, *functions[wanted.way.number]);
}

void AskModes(Taking& taking) {
  const Functions& nvml = taking.questions.nvml();
  for (const Wanted& wanted : taking.Of(Call::kPerformanceState)) AskNumber(taking, wanted, nvml.performance_state);
  for (const Wanted& wanted : taking.Of(Call::kFan)) AskNumber(taking, wanted, nvml.fan);
  for (const Wanted& wanted : taking.Of(Call::kMode)) {
    unsigned current = 0, pending = 0;
    switch (static_cast<ModeOf>(wanted.way.number)) {
      case ModeOf::kCompute: AskNumber(taking, wanted, nvml.compute_mode); break;
      case ModeOf::kPersistence: AskNumber(taking, wanted, nvml.persistence_mode); break;
      case ModeOf::kMig:
        if (taking.Answered(taking.questions.Ask(nvml.mig_mode, &current, &pending), {&wanted, 1}))
          taking.Give(wanted.id, std::uint64_t{current});
        break;
    }
  }
  for (const Wanted& wanted : taking.Of(Call::kLicense)) {
    abi::LicensableFeatures features{};
    if (!taking.Answered(taking.questions.Ask(nvml.licensable_features, &features), {&wanted, 1})) continue;
    bool licensed = false;
    for (unsigned i = 0; features.supported != 0 && i < features.count && i < std::size(features.features); ++i)
      licensed = licensed || features.features[i].licensed != 0;
    taking.Give(wanted.id, std::uint64_t{licensed});
  }
}

}  // namespace

void AskBoard(Taking& taking) {
  AskClocks(taking);
  AskTemperatures(taking);
  AskPower(taking);
  AskUtilization(taking);
  AskMemory(taking);
  AskBar1(taking);
  AskPcieLink(taking);
  AskModes(taking);
}

}  // namespace penstock::vendor::nvidia
