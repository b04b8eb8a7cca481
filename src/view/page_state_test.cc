#include "view/page_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"

namespace penstock::view {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::chrono_literals;

api::HolderReport Holder(const std::string& lease, const std::string& device = "G0") {
  api::HolderReport holder;
  holder.device = device;
  holder.lease = lease;
  holder.kind = lease.empty() ? "outside" : "pod";
  return holder;
}

class PageStateTest : public testing::Test {
 protected:
  PageStateTest() {
    api::DeviceReport& device = report_.devices.emplace_back();
    device.id = "G0";
    device.vendor = "acme";
    device.holders = {Holder("a"), Holder("a"), Holder("b"), Holder(""), Holder("")};
    auto sample = std::make_shared<node::sample::DeviceSample>();
    sample->collections = 1;
    sample->values = {{{0, -1, std::uint64_t{40}}, base::WallTime{}}};
    sample->history = {{"utilization", {0.4F}}};
    samples_.devices["G0"] = sample;
  }
  api::PageState Make() {
    return MakePageState(report_, samples_, device::testing::FindAcme, queue_);
  }

  api::Report report_;
  node::sample::Snapshot samples_;
  PageQueue queue_;
};

TEST_F(PageStateTest, CountsTheSharesOfEachHolder) {
  const auto state = Make();
  ASSERT_THAT(state.devices, SizeIs(1));
  const auto& holders = state.devices[0].holders;
  ASSERT_THAT(holders, SizeIs(4)) << "outside processes are holders of their own";
  EXPECT_EQ(holders[0].slots, 2);
  EXPECT_EQ(holders[1].holder.lease, "b");
  EXPECT_EQ(holders[1].slots, 1);
  EXPECT_THAT(state.devices[0].report.holders, IsEmpty());
}

TEST_F(PageStateTest, HasTheNewestValuesThatAreKnown) {
  const auto state = Make();
  EXPECT_DOUBLE_EQ(state.devices[0].utilization.value_or(-1), 0.4);
  EXPECT_FALSE(state.devices[0].power);
  samples_.devices.clear();
  EXPECT_FALSE(Make().devices[0].utilization);
}

TEST_F(PageStateTest, HasTheQueueInItsOrder) {
  node::allocate::Waiting waiting;
  waiting.ticket = "q-1";
  waiting.user = "eva";
  waiting.request.count = 2;
  waiting.request.share = 4;
  waiting.request.profile = "1g.5gb";
  waiting.request.least_memory = base::Mebibytes(20);
  waiting.reason = "waits";
  queue_.runs = {waiting, {}};
  queue_.expected_starts["q-1"] = base::WallTime{1700000000s};
  const auto state = Make();
  ASSERT_THAT(state.queue, SizeIs(2));
  EXPECT_EQ(state.queue[0].user, "eva");
  EXPECT_EQ(state.queue[0].count, 2);
  EXPECT_EQ(state.queue[0].share, 4);
  EXPECT_EQ(state.queue[0].profile, "1g.5gb");
  EXPECT_EQ(state.queue[0].least_memory, base::Mebibytes(20));
  EXPECT_EQ(state.queue[0].expected_start, base::FormatTime(base::WallTime{1700000000s}));
  EXPECT_EQ(state.queue[1].expected_start, "");
}

TEST_F(PageStateTest, HasTheHistoryOfTheDevicesThatHaveSamples) {
  node::sample::HourHistory history;
  const base::TimePoint now{1000h};
  history.Add(samples_, now);
  const auto page = MakePageHistory(samples_, history, now + 30s);
  EXPECT_EQ(page.step_seconds, 30);
  ASSERT_TRUE(page.devices.contains("G0"));
  EXPECT_FLOAT_EQ(page.devices.at("G0").utilization.back(), 0.4F);
  EXPECT_THAT(page.devices.at("G0").power, IsEmpty());
}

}  // namespace
}  // namespace penstock::view
