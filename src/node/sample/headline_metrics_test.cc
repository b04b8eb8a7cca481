#include "node/sample/headline_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::node::sample {
namespace {

using device::Quantity;
using device::Unit;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Quantity kQuantities[] = {
    {.key = "active",
     .unit = Unit::kPercent,
     .family = "accelerator_activity_ratio",
     .labels = R"(part="graphics")"},
    {.key = "clock.memory",
     .unit = Unit::kMegahertz,
     .family = "accelerator_clock_hertz",
     .labels = R"(clock="memory")"},
    {.key = "clock.sm",
     .unit = Unit::kMegahertz,
     .family = "accelerator_clock_hertz",
     .labels = R"(clock="sm")"},
    {.key = "active.sm",
     .unit = Unit::kPercent,
     .family = "accelerator_activity_ratio",
     .labels = R"(part="sm")"},
    {.key = "utilization", .unit = Unit::kPercent, .family = "accelerator_utilization_ratio"},
};

TEST(HeadlineMetric, FindsAVendorsQuantitiesTheBestOneFirst) {
  EXPECT_THAT(QuantitiesOf(HeadlineMetric::kClock, kQuantities), ElementsAre(2, 1));
  EXPECT_THAT(QuantitiesOf(HeadlineMetric::kUtilization, kQuantities), ElementsAre(4, 0));
  EXPECT_THAT(QuantitiesOf(HeadlineMetric::kPower, kQuantities), IsEmpty());
}

TEST(HeadlineMetric, ReportsTheBestThatThereIsInItsBaseUnit) {
  DeviceSample sample;
  sample.values = {{{0, -1, 25.0}, {}}, {{2, -1, std::uint64_t{1980}}, {}}};
  EXPECT_EQ(ValueOf(HeadlineMetric::kUtilization, sample, kQuantities), 0.25)
      << "a partition has its engines' alone";
  EXPECT_EQ(ValueOf(HeadlineMetric::kClock, sample, kQuantities), 1980e6);
  EXPECT_EQ(ValueOf(HeadlineMetric::kMemoryUsed, sample, kQuantities), std::nullopt);
  sample.values.push_back({{4, -1, std::uint64_t{50}}, {}});
  EXPECT_EQ(ValueOf(HeadlineMetric::kUtilization, sample, kQuantities), 0.5);
}

}  // namespace
}  // namespace penstock::node::sample
