#include "sim/workload.h"

namespace penstock::sim {
namespace {

constexpr std::uint64_t kMebibyte = 1 << 20;
constexpr std::uint64_t kPercent = 1000000;  // of utilization: percent times microseconds, per
                                             // second

// Bytes for each percent of utilization, such as a training job might move.
constexpr std::uint64_t kPcieRx = 10 * kMebibyte, kPcieTx = 5 * kMebibyte,
                        kNvlinkOfEachLink = 20 * kMebibyte;

// Bits of nvmlClocksEventReasons.
enum Reason : std::uint64_t {
  kPowerCap = 0x4,
  kSyncBoost = 0x10,
  kSwHeat = 0x20,
  kHwHeat = 0x40,
  kPowerBrake = 0x80
};

// Utilization of a part, in hundredths of the GPU's.
struct BusyPart {
  SimMeterIndex meter;
  std::uint32_t of_use;
};
constexpr BusyPart kParts[] = {{kSimUseGraphics, 100}, {kSimUseSm, 100},    {kSimUseOccupancy, 50},
                               {kSimUseInteger, 25},   {kSimUseTensor, 50}, {kSimUseDfma, 0},
                               {kSimUseHmma, 50},      {kSimUseDmma, 0},    {kSimUseImma, 0},
                               {kSimUseDram, 50},      {kSimUseFp64, 0},    {kSimUseFp32, 25},
                               {kSimUseFp16, 10}};

}  // namespace

std::uint32_t ActiveLinks(const SimGpu& gpu) {
  std::uint32_t active = 0;
  for (std::uint32_t i = 0; i < gpu.nvlink_count && i < kSimMaxLinks; i++)
    active += gpu.nvlinks[i].active != 0;
  return active;
}

void Work(SimGpu& gpu, std::uint32_t percent) {
  const bool idle = percent == 0;
  gpu.use_gpu = percent;
  gpu.use_memory = percent / 2;
  if (gpu.power_draw != SIM_NA)
    gpu.power_draw = gpu.power_idle + (gpu.power_limit - gpu.power_idle) / 100 * percent;
  gpu.clock_sm = idle ? gpu.clock_sm_idle : gpu.clock_sm_max;
  gpu.clock_memory = idle ? gpu.clock_memory_idle : gpu.clock_memory_max;
  gpu.pstate = idle ? gpu.pstate_idle : 0;
  gpu.pcie_gen_current = idle ? gpu.pcie_gen_idle : gpu.pcie_gen_max;
  gpu.clock_event_reasons = idle ? 1 : 0;
  gpu.meters[kSimPcieTx].rate = percent * kPcieTx;
  gpu.meters[kSimPcieRx].rate = percent * kPcieRx;
  gpu.meters[kSimNvlinkTx].rate = gpu.meters[kSimNvlinkRx].rate =
      percent * kNvlinkOfEachLink * ActiveLinks(gpu);
  for (const BusyPart& part : kParts)
    gpu.meters[part.meter].rate = percent * kPercent * part.of_use / 100;
  Follow(gpu);
}

void Follow(SimGpu& gpu) {
  gpu.meters[kSimEnergy].rate = gpu.power_draw == SIM_NA ? 0 : gpu.power_draw;
  const auto limited = [&gpu](SimMeterIndex meter, std::uint64_t reasons) {
    gpu.meters[meter].rate = gpu.clock_event_reasons & reasons ? 1000000000 : 0;
  };
  limited(kSimLimitedByPower, kPowerCap);
  limited(kSimLimitedByHeat, kSwHeat | kHwHeat);
  limited(kSimLimitedBySyncBoost, kSyncBoost);
  limited(kSimLimitedByBoard, kPowerBrake);
  limited(kSimLimitedBySwHeat, kSwHeat);
  limited(kSimLimitedByHwHeat, kHwHeat);
  limited(kSimLimitedByPowerBrake, kPowerBrake);
  const auto used = [&gpu](SimMeterIndex meter, std::uint32_t percent) {
    gpu.meters[meter].rate = percent == SIM_NA ? 0 : percent * kPercent;
  };
  used(kSimUseDecoder, gpu.use_decoder);
  used(kSimUseJpeg, gpu.use_jpeg);
  used(kSimUseOfa, gpu.use_ofa);
}

}  // namespace penstock::sim
