#include "sim/meters.h"

#include <memory>

#include <gtest/gtest.h>

#include "sim/workload.h"

namespace penstock::sim {
namespace {

constexpr std::uint64_t kSecond = 1000000;

TEST(Meters, GrowByTheirRateAndHaveRoomForTerabytes) {
  const SimMeter meter{7, 3};
  EXPECT_EQ(SimMeterAt(&meter, 100, 100), 7u);
  EXPECT_EQ(SimMeterAt(&meter, 100, 100 + 10 * kSecond), 37u);
  EXPECT_EQ(SimMeterAt(&meter, 100, 100 + kSecond / 2), 8u);
  EXPECT_EQ(SimMeterAt(&meter, 100, 50), 7u) << "a clock that was put back takes nothing away";
  const SimMeter fast{0, 8ull << 40};
  EXPECT_EQ(SimMeterAt(&fast, 0, 100000 * kSecond + kSecond / 4),
            (8ull << 40) * 100000 + (2ull << 40));
}

TEST(Meters, SettlingNeverTakesAway) {
  auto gpu = std::make_unique<SimGpu>();
  gpu->meters[kSimEnergy] = {0, 3};
  std::uint64_t seen = 0;
  for (std::uint64_t now = 0; now < 5 * kSecond; now += 333333) {
    const std::uint64_t before = SimMeterAt(&gpu->meters[kSimEnergy], gpu->metered, now);
    SimSettle(gpu.get(), now);
    EXPECT_EQ(gpu->meters[kSimEnergy].count, before);
    EXPECT_GE(before, seen);
    seen = before;
  }
}

TEST(Meters, BeginAgainAndGoOnAtTheirRates) {
  auto gpu = std::make_unique<SimGpu>();
  gpu->meters[kSimPcieTx] = {500, 10};
  gpu->nvlinks[3].errors[kSimLinkReplay] = 4;
  gpu->pcie_replays = 2;
  SimZeroMeters(gpu.get(), 9 * kSecond);
  EXPECT_EQ(gpu->nvlinks[3].errors[kSimLinkReplay] + gpu->pcie_replays, 0u);
  EXPECT_EQ(SimMeterAt(&gpu->meters[kSimPcieTx], gpu->metered, 11 * kSecond), 20u);
}

TEST(Workload, FollowsUseAndSparesWhatTheDeviceDoesNotReport) {
  auto gpu = std::make_unique<SimGpu>();
  gpu->power_idle = 100000;
  gpu->power_limit = 500000;
  gpu->nvlink_count = 2;
  gpu->nvlinks[1].active = 1;
  Work(*gpu, 50);
  EXPECT_EQ(gpu->power_draw, 300000u);
  EXPECT_EQ(gpu->meters[kSimEnergy].rate, 300000u);
  EXPECT_EQ(gpu->meters[kSimNvlinkTx].rate, 50u * (20 << 20)) << "one link is up";
  EXPECT_EQ(gpu->meters[kSimUseSm].rate, 50u * kSecond);
  gpu->power_draw = SIM_NA;
  Work(*gpu, 0);
  EXPECT_EQ(gpu->power_draw, SIM_NA);
  EXPECT_EQ(gpu->meters[kSimEnergy].rate + gpu->meters[kSimUseSm].rate, 0u);
}

TEST(Workload, AReasonForLessThanFullClocksLastsAsLongAsItIsInForce) {
  auto gpu = std::make_unique<SimGpu>();
  gpu->clock_event_reasons = 0x44;  // the power cap, and hardware thermal slowdown
  Follow(*gpu);
  for (const int meter : {kSimLimitedByPower, kSimLimitedByHeat, kSimLimitedByHwHeat})
    EXPECT_EQ(gpu->meters[meter].rate, 1000000000u);
  for (const int meter : {kSimLimitedBySwHeat, kSimLimitedByBoard, kSimLimitedBySyncBoost})
    EXPECT_EQ(gpu->meters[meter].rate, 0u);
}

}  // namespace
}  // namespace penstock::sim
