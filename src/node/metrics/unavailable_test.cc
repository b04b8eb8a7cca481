#include "node/metrics/unavailable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/metrics/testing/metrics_fixture.h"

namespace penstock::node::metrics {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class UnavailableTest : public ::testing::Test {
 protected:
  UnavailableTest() { config_.names = {api::MetricNames::kExporter}; }

  void Without(const std::string& device, std::vector<device::QuantityId> quantities) {
    auto sample = *node_.samples.devices[device];
    sample.unsupported = std::move(quantities);
    node_.samples.devices[device] = std::make_shared<const sample::DeviceSample>(std::move(sample));
  }
  auto Of() const {
    const device::Dialect& acme = *fixture::FindMeasuredAcme("acme");
    return UnavailableOf(acme, config_, RowsOf(acme, config_), node_.inventory, node_.samples);
  }

  fixture::Node node_;
  api::TelemetryConfig config_;
};

TEST_F(UnavailableTest, NothingWhereEveryDeviceHasAll) { EXPECT_THAT(Of(), IsEmpty()); }

TEST_F(UnavailableTest, WhatADefaultOrACountersFileAsksForAndAModelDoesNotHave) {
  Without("G0", {fixture::kClock, fixture::kPower});
  EXPECT_THAT(
      Of(),
      ElementsAre(Unavailable{
          "ACME_CLOCK", {"Acme Small"}, "the driver does not report it; documented for: Anvils"}))
      << "nobody asked for power";
  config_.counters = {{"ACME_POWER", "gauge", "Power."}, {"ACME_SECRET", "gauge", "Secret."}};
  Without("G1", {fixture::kPower});
  EXPECT_THAT(Of(), ElementsAre(Unavailable{"ACME_POWER",
                                            {"Acme Big", "Acme Small"},
                                            "the driver does not report it"},
                                Unavailable{"ACME_SECRET", {}, "the vendor keeps it to itself"}));
  node_.inventory.devices[0].health.state = device::HealthState::kGone;
  EXPECT_THAT(Of().front().models, ElementsAre("Acme Big"));
}

TEST_F(UnavailableTest, ADefaultWithTheFieldsOfAllModelsAsksForNone) {
  const fixture::MeasuredAcme acme(/*settings=*/true);
  const auto of = [&] {
    return UnavailableOf(acme, config_, RowsOf(acme, config_), node_.inventory, node_.samples);
  };
  Without("G0", {fixture::kClock});
  EXPECT_THAT(of(), IsEmpty());
  config_.counters = {{"ACME_CLOCK", "gauge", "Clock."}};
  ASSERT_EQ(of().size(), 1u);
  EXPECT_EQ(of().front().family, "ACME_CLOCK");
}

TEST_F(UnavailableTest, NothingThatNoPageShows) {
  Without("G0", {fixture::kClock});
  config_.exclude = {"ACME_CLOCK*"};
  EXPECT_THAT(Of(), IsEmpty());
  config_.exclude.clear();
  config_.names = {api::MetricNames::kAccelerator};
  EXPECT_THAT(Of(), IsEmpty());
  config_.names = {api::MetricNames::kExporterNew};
  EXPECT_EQ(Of().front().family, "ACME_CLOCK_HERTZ") << "as the page would call it";
}

}  // namespace
}  // namespace penstock::node::metrics
