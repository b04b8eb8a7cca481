#include "node/metrics/unused_quantities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/metrics/testing/metrics_fixture.h"

namespace penstock::node::metrics {
namespace {

using api::MetricNames;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Not;

api::TelemetryConfig Names(std::vector<MetricNames> names) {
  api::TelemetryConfig config;
  config.names = std::move(names);
  return config;
}

class LeftOutTest : public ::testing::Test {
 protected:
  auto Of(const api::TelemetryConfig& config) const {
    return UnusedQuantities(*fixture::FindMeasuredAcme("acme"), config);
  }
};

TEST_F(LeftOutTest, NothingThatAPageShows) {
  api::TelemetryConfig config = Names({MetricNames::kAccelerator});
  config.include = {"accelerator_fabric_*"};
  for (const auto& quantity : fixture::FindMeasuredAcme("acme")->Quantities()) {
    if (!quantity.family.empty()) { EXPECT_THAT(Of(config), Not(Contains(quantity.key))); }
  }
}

TEST_F(LeftOutTest, WhatNoPageShows) {
  const auto left_out = Of(Names({MetricNames::kExporter}));
  EXPECT_THAT(left_out, AllOf(Contains("clock.max.sm"), Contains("link.errors")));
  EXPECT_THAT(left_out, Not(Contains("link.sent"))) << "a row shows it";
}

TEST_F(LeftOutTest, ARowOfTheCountersFileWantsItsQuantity) {
  api::TelemetryConfig config = Names({MetricNames::kExporter});
  config.counters = {{"ACME_REASON_COUNT", "gauge", "Reasons."}};
  EXPECT_THAT(Of(config), AllOf(Contains("link.sent"), Not(Contains("reasons"))));
  config.exclude = {"ACME_*"};
  EXPECT_THAT(Of(config), Contains("reasons"));
}

TEST_F(LeftOutTest, GlobsSayWhatIsShown) {
  api::TelemetryConfig config = Names({MetricNames::kAccelerator});
  config.exclude = {"accelerator_*"};
  config.include = {"accelerator_clock_max_hertz"};
  EXPECT_THAT(Of(config), AllOf(Contains("link.sent"), Not(Contains("clock.max.sm"))));
}

TEST_F(LeftOutTest, WhatHasManySeriesIsShownOnRequest) {
  api::TelemetryConfig config = Names({MetricNames::kAccelerator});
  constexpr char kFamily[] = "accelerator_fabric_link_errors_total";
  EXPECT_FALSE(IsShown(config, kFamily));
  config.include = {"accelerator_fabric_*"};
  EXPECT_TRUE(IsShown(config, kFamily));
}

TEST_F(LeftOutTest, NeverWhatPeopleLookAtAndUsageIsMadeOf) {
  EXPECT_THAT(Of(Names({})),
              AllOf(Not(Contains("utilization")), Not(Contains("power")), Not(Contains("energy")),
                    Not(Contains("memory.used")), Not(Contains("clock.sm"))));
}

}  // namespace
}  // namespace penstock::node::metrics
