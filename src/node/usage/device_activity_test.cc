#include "node/usage/device_activity.h"

#include <gtest/gtest.h>

#include "device/testing/acme.h"

namespace penstock::node::usage {
namespace {

using namespace std::chrono_literals;

enum : device::QuantityId { kUtilization, kMemoryUsed, kPower, kEnergy };
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
  sample_.values = {{{kUtilization, -1, std::uint64_t{50}}, kFirst},
                    {{kMemoryUsed, -1, std::uint64_t{3}}, kFirst},
                    {{kPower, -1, std::uint64_t{1500}}, kFirst},
                    {{kEnergy, -1, std::uint64_t{2500}}, kFirst}};
  sample_.processes_at = kFirst;
  const DeviceActivity figures = Take();
  EXPECT_EQ(figures.utilization, 0.5);
  EXPECT_EQ(figures.memory, base::Mebibytes(3));
  EXPECT_EQ(figures.watts, 1.5);
  EXPECT_EQ(figures.joules, 2.5);
  EXPECT_EQ(figures.most_watts, 2000);
  EXPECT_TRUE(figures.processes);
}

TEST_F(FiguresTest, NothingIsTakenTwice) {
  sample_.values = {{{kUtilization, -1, std::uint64_t{50}}, kFirst},
                    {{kPower, -1, std::uint64_t{1500}}, kFirst}};
  sample_.processes_at = kFirst;
  (void)Take();
  sample_.values[1].at = kSecond;
  const DeviceActivity figures = Take();
  EXPECT_EQ(figures.utilization, std::nullopt);
  EXPECT_EQ(figures.watts, 1.5);
  EXPECT_FALSE(figures.processes);
}

TEST_F(FiguresTest, WhatAVendorCannotReportIsNothing) {
  roles_ = {};
  sample_.values = {{{kUtilization, -1, std::uint64_t{50}}, kFirst}};
  const DeviceActivity figures = Take();
  EXPECT_FALSE(figures.utilization || figures.watts || figures.joules || figures.memory);
}

}  // namespace
}  // namespace penstock::node::usage
