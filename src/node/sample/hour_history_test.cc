#include "node/sample/hour_history.h"

#include <cmath>
#include <limits>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::node::sample {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsNan;
using ::testing::SizeIs;
using namespace std::chrono_literals;

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

class HourHistoryTest : public ::testing::Test {
 protected:
  /// A collection of the device `id` that read this utilization.
  void Collect(float utilization, const std::string& id = "A", base::Duration interval = 10s) {
    DeviceSample sample{.device = id, .collections = ++collections_};
    sample.history = {{"utilization", {0.5F, utilization}}, {"memoryUsed", {1024}}, {"power", {}}};
    samples_.interval = interval;
    samples_.devices[id] = std::make_shared<const DeviceSample>(std::move(sample));
    history_.Add(samples_, now_);
  }
  std::vector<float> Last(std::size_t count, const std::string& id = "A") const {
    const auto values = history_.Values(id, HeadlineMetric::kUtilization, now_);
    EXPECT_THAT(values, SizeIs(HourHistory::kSteps));
    return {values.end() - static_cast<std::ptrdiff_t>(count), values.end()};
  }

  Snapshot samples_;
  std::uint64_t collections_ = 0;
  base::TimePoint now_{1000h};
  HourHistory history_;
};

TEST_F(HourHistoryTest, HasTheMeanOfEachCompleteStep) {
  for (const float value : {0.1F, 0.2F, 0.6F, 1.F, 1.F, 1.F, 0.5F}) {
    Collect(value);
    now_ += 10s;
  }
  const auto last = Last(3);
  EXPECT_TRUE(std::isnan(last[0])) << "before the first collection";
  EXPECT_FLOAT_EQ(last[1], 0.3F);
  EXPECT_FLOAT_EQ(last[2], 1.F) << "the step of 0.5 is not complete";
  EXPECT_THAT(history_.Values("A", HeadlineMetric::kPower, now_), IsEmpty());
  EXPECT_THAT(history_.Values("A", HeadlineMetric::kTemperature, now_), IsEmpty());
  EXPECT_THAT(history_.Values("B", HeadlineMetric::kUtilization, now_), IsEmpty());
}

TEST_F(HourHistoryTest, CountsACollectionOnceHoweverOftenItIsPublished) {
  Collect(1);
  history_.Add(samples_, now_ + 1s);
  Collect(0);
  now_ += 30s;
  EXPECT_FLOAT_EQ(Last(1)[0], 0.5F);
}

TEST_F(HourHistoryTest, HasAGapWhereADeviceDidNotAnswer) {
  Collect(0.25F);
  now_ += 90s;
  Collect(0.75F);
  now_ += 30s;
  const auto last = Last(4);
  EXPECT_FLOAT_EQ(last[0], 0.25F);
  EXPECT_TRUE(std::isnan(last[1]) && std::isnan(last[2]));
  EXPECT_FLOAT_EQ(last[3], 0.75F);
  Collect(kMissing);
  now_ += 30s;
  EXPECT_TRUE(std::isnan(Last(1)[0])) << "the device answered without this value";
}

TEST_F(HourHistoryTest, HoldsAValueUntilTheNextCollectionOfARareOne) {
  Collect(0.25F, "A", 2min);
  now_ += 2min;
  Collect(0.75F, "A", 2min);
  now_ += 30s;
  EXPECT_THAT(Last(5), ElementsAre(0.25F, 0.25F, 0.25F, 0.25F, 0.75F));
}

TEST_F(HourHistoryTest, ForgetsWhatIsOlderThanAnHour) {
  Collect(0.25F);
  now_ += 59min;
  Collect(0.75F);
  now_ += 1min;
  EXPECT_FLOAT_EQ(Last(120)[0], 0.25F);
  now_ += 30s;
  EXPECT_TRUE(std::isnan(Last(120)[0]));
  now_ += 5h;
  EXPECT_THAT(Last(120), Each(IsNan()));
  history_.Add(samples_, now_);
  EXPECT_THAT(Last(120), Each(IsNan())) << "this collection was counted before";
  samples_.devices.clear();
  history_.Add(samples_, now_);
  EXPECT_EQ(history_.devices(), 0U);
}

TEST_F(HourHistoryTest, TakesAsManyDevicesAsItHasRoomFor) {
  for (int i = 0; i < 400; ++i) Collect(1, "device " + std::to_string(i));
  EXPECT_EQ(history_.devices(), HourHistory::kMaxDevices);
  samples_.devices.clear();
  now_ += 2h;
  Collect(1, "another");
  EXPECT_EQ(history_.devices(), 1U);
}

}  // namespace
}  // namespace penstock::node::sample
