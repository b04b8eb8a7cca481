#include "node/usage/device_activity.h"

#include <gtest/gtest.h>

#include "device/testing/acme.h"

namespace penstock::node::usage {
namespace {

using namespace std::chrono_literals;

enum : device::QuantityId { kUtilizationId, kMemoryUsedId, kPowerId, kEnergyId };
const base::WallTime kFirst{10s}, kSecond{20s};

class FiguresTest : public ::testing::Test {
 protected:
  DeviceActivity Take() { return TakeActivity(sample_, dialect_, roles_, used_); }

  device::testing::AcmeDialect dialect_;
  Roles roles_ = RolesOf(dialect_);
  sample::DeviceSample sample_;
  Used used_;
};

TEST_F(FiguresTest, AreInBaseUnits) {
  sample_.values = {{{kUtilizationId, -1, std::uint64_t{50}}, kFirst},
                    {{kMemoryUsedId, -1, std::uint64_t{3}}, kFirst},
                    {{kPowerId, -1, std::uint64_t{1500}}, kFirst},
                    {{kEnergyId, -1, std::uint64_t{2500}}, kFirst}};
  sample_.processes_at = kFirst;
  const DeviceActivity activity = Take();
  EXPECT_EQ(activity.utilization, 0.5);
  EXPECT_EQ(activity.memory, base::Mebibytes(3));
  EXPECT_EQ(activity.watts, 1.5);
  EXPECT_EQ(activity.joules, 2.5);
  EXPECT_EQ(activity.most_watts, 2000);
  EXPECT_TRUE(activity.processes);
}

TEST_F(FiguresTest, NothingIsTakenTwice) {
  sample_.values = {{{kUtilizationId, -1, std::uint64_t{50}}, kFirst},
                    {{kPowerId, -1, std::uint64_t{1500}}, kFirst}};
  sample_.processes_at = kFirst;
  (void)Take();
  sample_.values[1].at = kSecond;
  const DeviceActivity activity = Take();
  EXPECT_EQ(activity.utilization, std::nullopt);
  EXPECT_EQ(activity.watts, 1.5);
  EXPECT_FALSE(activity.processes);
}

TEST_F(FiguresTest, WhatAVendorCannotReportIsNothing) {
  roles_ = {};
  sample_.values = {{{kUtilizationId, -1, std::uint64_t{50}}, kFirst}};
  const DeviceActivity activity = Take();
  EXPECT_FALSE(activity.utilization || activity.watts || activity.joules || activity.memory);
}

}  // namespace
}  // namespace penstock::node::usage
