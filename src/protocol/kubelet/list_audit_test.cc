#include "protocol/kubelet/list_audit.h"

#include <optional>

#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"

namespace penstock::protocol::kubelet {
namespace {

using namespace std::chrono_literals;

/// A kubelet that counts the lists it gets only when the test says so.
class ListAuditTest : public testing::Test {
 protected:
  ListAuditTest() { SetList({"G0", "G1"}); }

  void SetList(const std::vector<std::string>& ids, bool healthy = true) {
    std::vector<PluginDevice> devices;
    for (const std::string& id : ids) devices.push_back({id, healthy, {}});
    list_ = std::make_shared<const std::vector<PluginDevice>>(std::move(devices));
  }

  base::ManualExecutor executor_;
  ListAudit::List list_;
  ListAudit::Counted counted_ = std::vector<std::string>{"G0", "G1"};
  base::Duration takes_{};
  int asked_ = 0, lost_ = 0;
  std::optional<ListAudit> audit_{
      std::in_place, executor_, AuditTimes(),
      ListAudit::Callbacks{.list = [this] { return list_; },
                           .query =
                               [this](auto done) {
                                 ++asked_;
                                 executor_.PostAfter(takes_, [this, done] { done(counted_); });
                               },
                           .lost = [this] { ++lost_; }}};
};

TEST_F(ListAuditTest, AKubeletThatCountsIsAskedEachMinute) {
  audit_->Changed();
  executor_.Advance(4999ms);
  EXPECT_EQ(asked_, 0);
  executor_.Advance(10min);
  EXPECT_EQ(asked_, 10);
  EXPECT_EQ(lost_, 0);
}

// Observed on a kubelet 1.36: 37 ms after a new list it counted the earlier one, and sockets had
// appeared a second before.
TEST_F(ListAuditTest, AKubeletThatLagsBehindANewListHasLostNothing) {
  audit_->Changed();
  executor_.Advance(10s);
  audit_->Hint();
  executor_.Advance(963ms);
  SetList({"G0::0", "G0::1"});
  executor_.Advance(6s);
  EXPECT_EQ(lost_, 0);
  counted_ = std::vector<std::string>{"G0::0", "G0::1"};
  executor_.Advance(1h);
  EXPECT_EQ(lost_, 0);
}

TEST_F(ListAuditTest, AnAnswerThatWasUnderWayWhileTheListChangedProvesNothing) {
  takes_ = 100ms;
  audit_->Changed();
  executor_.Advance(5050ms);
  SetList({"G0::0"});
  executor_.Advance(100ms);
  counted_ = std::vector<std::string>{"G0::0"};
  executor_.Advance(1h);
  EXPECT_EQ(lost_, 0);
}

TEST_F(ListAuditTest, TwoAnswersInARowThatCountNoneAreNeeded) {
  audit_->Changed();
  counted_ = std::vector<std::string>{"X"};
  executor_.Advance(6s);
  EXPECT_EQ(asked_, 1);
  counted_ = std::vector<std::string>{"G1"};
  executor_.Advance(5s);
  EXPECT_EQ(asked_, 2);
  EXPECT_EQ(lost_, 0);
  counted_ = std::vector<std::string>{};
  executor_.Advance(57s);
  EXPECT_EQ(asked_, 3);
  EXPECT_EQ(lost_, 0);
  executor_.Advance(2s);
  EXPECT_EQ(lost_, 1);
}

TEST_F(ListAuditTest, AKubeletThatDoesNotAnswerIsNoVerdict) {
  audit_->Changed();
  counted_ = std::vector<std::string>{};
  executor_.Advance(6s);
  counted_ = base::Error(base::Code::kUnavailable, "no kubelet");
  executor_.Advance(1h);
  counted_ = std::vector<std::string>{};
  executor_.Advance(2s);
  EXPECT_EQ(lost_, 0) << "an answer from before the silence no longer counts";
  executor_.Advance(2s);
  EXPECT_EQ(lost_, 1);
}

TEST_F(ListAuditTest, DevicesThatAreNotHealthyAreNotExpectedToBeCounted) {
  SetList({"G0", "G1"}, false);
  counted_ = std::vector<std::string>{};
  audit_->Changed();
  executor_.Advance(1h);
  EXPECT_EQ(lost_, 0);
}

TEST_F(ListAuditTest, AHintIsFollowedSoonButNotSoonAfterAChange) {
  audit_->Changed();
  audit_->Hint();
  executor_.Advance(4s);
  EXPECT_EQ(asked_, 0);
  executor_.Advance(6s);
  EXPECT_EQ(asked_, 1);
  audit_->Hint();
  executor_.Advance(1s);
  EXPECT_EQ(asked_, 2);
  counted_ = std::vector<std::string>{};
  audit_->Hint();
  executor_.Advance(1s);
  audit_->Hint();
  executor_.Advance(1s);
  EXPECT_EQ(lost_, 0) << "a hint does not advance the second check";
  executor_.Advance(1s);
  EXPECT_EQ(lost_, 1);
}

TEST_F(ListAuditTest, AKubeletThatKeepsCountingNoneIsReportedMoreAndMoreRarely) {
  counted_ = std::vector<std::string>{};
  audit_->Changed();
  for (int hour = 0; hour < 24; ++hour) {
    executor_.Advance(1h);
    audit_->Changed();  // registered again
  }
  EXPECT_GE(lost_, 20);
  EXPECT_LE(lost_, 35);
}

TEST_F(ListAuditTest, ANewKubeletIsJudgedByItself) {
  counted_ = std::vector<std::string>{};
  audit_->Changed();
  executor_.Advance(10s);
  EXPECT_EQ(lost_, 1);
  audit_->Stop();
  executor_.Advance(1h);
  audit_->Hint();
  executor_.Advance(1h);
  EXPECT_EQ(asked_, 2) << "the kubelet does not read the device list";
  audit_->Changed();
  executor_.Advance(10s);
  EXPECT_EQ(lost_, 2);
}

TEST_F(ListAuditTest, IsSilentOnceItIsGone) {
  counted_ = std::vector<std::string>{};
  takes_ = 1s;
  audit_->Changed();
  executor_.Advance(5500ms);
  audit_.reset();
  executor_.Advance(1h);
  EXPECT_EQ(lost_, 0);
}

}  // namespace
}  // namespace penstock::protocol::kubelet
