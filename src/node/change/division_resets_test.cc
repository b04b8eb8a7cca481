// Tests how devices whose mode takes effect with a reset are divided together.
#include "node/change/division_resets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/change/testing/divisible_node.h"

namespace penstock::node::change {
namespace {

using device::Facts;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

class DivisionResetsTest : public testing::DivisibleNode, public device::Actions {
 protected:
  DivisionResetsTest() {
    driver_.devices = {&backend_, &second_, &third_};
    for (testing::DivisibleDevice* one : driver_.devices)
      one->device.modes[0].effect = device::ModeEffect::kAfterReset;
    Describe();
    MakeChanges({});
    divisions_ =
        std::make_unique<Divisions>(executor_, executor_, NodeOfChanges(), VendorWith(this),
                                    folder_ / "layout.json", AppliedLayout{}, "boot");
    divisions_->SetClients([this](const Facts& device) {
      return has_clients_.contains(device.id) ? std::string("in use by a client") : std::string();
    });
    StartChanges();
  }

  std::vector<std::string> ResetTogether(const Facts& device,
                                         const std::vector<const Facts*>&) const override {
    return together_.contains(device.id)
               ? std::vector<std::string>(together_.begin(), together_.end())
               : std::vector<std::string>{device.id};
  }

  /// As nvidia-smi: resets what it can.
  void Reset(const std::vector<Facts>& devices, std::function<void(base::Status)> done) override {
    EXPECT_FALSE(ready_) << "the driver is released";
    std::string ids, blocked;
    for (const Facts& device : devices) {
      ids += device.id;
      if (blocked_.contains(device.id))
        blocked += device.id;
      else if (!without_effect_.contains(device.id))
        driver_.devices[static_cast<std::size_t>(device.index)]->Reset();
    }
    resets_.push_back(ids);
    executor_.PostAfter(takes_, [blocked, done = std::move(done)] {
      done(blocked.empty()
               ? base::Status()
               : base::Error(base::Code::kFailedPrecondition, blocked + " is used by a display"));
    });
  }

  std::string Apply(std::vector<int> devices, const std::string& source = "user") {
    answer_ = "pending";
    api::LayoutRule rule{.partitioned = true, .parts = {{"1g", 2}}};
    rule.devices = std::move(devices);
    divisions_->Apply(
        {.layout = {"two", {rule}}, .source = source, .wait = wait_}, nullptr,
        [this](const auto& result) { answer_ = result.ok() ? "done" : result.error().ToString(); });
    executor_.RunUntilIdle();
    return answer_;
  }

  testing::DivisibleDevice second_{1}, third_{2};
  std::set<std::string> together_, blocked_, without_effect_, has_clients_;
  std::optional<base::Duration> wait_;
  base::Duration takes_ = 1s;
  std::vector<std::string> resets_;
  std::string answer_;
  std::unique_ptr<Divisions> divisions_;
};

TEST_F(DivisionResetsTest, AllThatNeedItAreResetInOneOperation) {
  EXPECT_EQ(Apply({0, 1, 2}), "pending");
  executor_.Advance(2s);
  EXPECT_EQ(answer_, "done");
  EXPECT_THAT(resets_, ElementsAre("G0G1G2"));
  for (const testing::DivisibleDevice* one : driver_.devices)
    EXPECT_THAT(one->Parts(), ElementsAre("1g at 0", "1g at 1"));
}

TEST_F(DivisionResetsTest, OneThatIsInUseDoesNotStopTheOthers) {
  blocked_ = {"G1"};
  Apply({0, 1, 2});
  executor_.Advance(5s);
  EXPECT_THAT(resets_, ElementsAre("G0G1G2", "G1"));
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 0", "1g at 1"));
  EXPECT_THAT(third_.Parts(), ElementsAre("1g at 0", "1g at 1"));
  EXPECT_THAT(second_.Parts(), IsEmpty());
  EXPECT_EQ(second_.device.modes[0].pending, "off") << "as it was before";
  EXPECT_EQ(answer_, "ABORTED: 1: G1 is used by a display");
  blocked_.clear();
  executor_.Advance(10s);
  EXPECT_THAT(second_.Parts(), ElementsAre("1g at 0", "1g at 1"));
  EXPECT_EQ(divisions_->state().state, "success");
}

TEST_F(DivisionResetsTest, ResetsMayTakeAsLongAsTheyCan) {
  takes_ = device::kLongestReset;
  blocked_ = {"G1"};
  Apply({0, 1});
  executor_.Advance(device::kLongestReset + 1s);
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 0", "1g at 1"));
  EXPECT_EQ(answer_, "pending") << "G1 is reset alone";
  executor_.Advance(device::kLongestReset + 1s);
  EXPECT_THAT(resets_, ElementsAre("G0G1", "G1"));
  EXPECT_EQ(answer_, "ABORTED: 1: G1 is used by a display");
}

TEST_F(DivisionResetsTest, OneThatIsHeldIsNotWaitedFor) {
  Hold("G1");
  wait_ = 1h;
  Apply({0, 1, 2});
  executor_.Advance(2s);
  EXPECT_THAT(resets_, ElementsAre("G0G2"));
  End("G1");
  executor_.Advance(2s);
  EXPECT_EQ(answer_, "done");
  EXPECT_THAT(resets_, ElementsAre("G0G2", "G1"));
}

TEST_F(DivisionResetsTest, AResetThatReportsSuccessAndHadNoEffectIsAFailure) {
  without_effect_ = {"G1"};
  Apply({0, 1});
  executor_.Advance(2s);
  EXPECT_EQ(answer_, "ABORTED: 1: the device was reset, and its mode has not taken effect");
  EXPECT_THAT(resets_, ElementsAre("G0G1"));
  EXPECT_THAT(backend_.Parts(), ElementsAre("1g at 0", "1g at 1"));
}

TEST_F(DivisionResetsTest, ThoseWhoseClientsStillRunAreWaitedFor) {
  has_clients_ = {"G1"};
  wait_ = kStanding;
  Apply({0, 1}, "label");
  executor_.Advance(30s);
  EXPECT_THAT(resets_, IsEmpty());
  has_clients_.clear();
  Wake();
  executor_.Advance(2s);
  EXPECT_EQ(answer_, "done");
  EXPECT_THAT(resets_, ElementsAre("G0G1"));
}

TEST_F(DivisionResetsTest, DevicesThatCanOnlyBeResetTogetherAreIfAllOfThemAreDue) {
  together_ = {"G0", "G1"};
  Apply({0, 2});
  executor_.Advance(2s);
  EXPECT_THAT(answer_,
              HasSubstr("0: the mode takes effect with a reset of several devices together"));
  EXPECT_THAT(resets_, ElementsAre("G2"));
  Apply({0, 1, 2});
  executor_.Advance(2s);
  EXPECT_EQ(answer_, "done");
  EXPECT_THAT(resets_, ElementsAre("G2", "G0G1"));
}

TEST_F(DivisionResetsTest, WhatIsNoLongerToBeDividedIsNotReset) {
  has_clients_ = {"G1"};  // so that G0 waits for it
  wait_ = kStanding;
  Apply({0, 1}, "label");
  executor_.Advance(16min);
  EXPECT_THAT(resets_, IsEmpty());
  has_clients_.clear();
  Wake();
  executor_.Advance(30s);
  EXPECT_EQ(divisions_->state().state, "success");
  EXPECT_THAT(resets_, ElementsAre("G0G1"));
}

/// A change is withdrawn for a while before its clients are stopped.
TEST_F(DivisionResetsTest, ClientsAreStoppedOnceForAllDevices) {
  second_.device.modes[0].current = second_.device.modes[0].pending = "on";  // needs no reset
  Describe();
  Serve({{"G0", {.set = "G0", .ready = true, .servers = {77}}}});
  wait_ = kStanding;
  std::vector<bool> stopped;
  divisions_->OnState([&] {
    const bool now = !divisions_->stops_clients_of().empty();
    if (stopped.empty() || stopped.back() != now) stopped.push_back(now);
  });
  Apply({0, 1, 2}, "label");
  executor_.Advance(10s);
  EXPECT_THAT(divisions_->stops_clients_of(), ::testing::Contains("G0"));
  Serve({});
  executor_.Advance(10s);
  EXPECT_EQ(answer_, "done");
  EXPECT_THAT(resets_, ElementsAre("G2G0"));
  EXPECT_THAT(stopped, ElementsAre(true, false));
}

}  // namespace
}  // namespace penstock::node::change
