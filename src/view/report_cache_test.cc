// Tests how often reports are made, and when those who follow them hear of it.
#include "view/report_cache.h"

#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"

namespace penstock::view {
namespace {

using namespace std::chrono_literals;

class ReportCacheTest : public testing::Test {
 protected:
  ReportCacheTest() {
    executor_.Advance(1h);  // the clock of a machine that has run for a while
    cache_.emplace(executor_, ReportCache::Callbacks{.make =
                                                         [this] {
                                                           ++made_;
                                                           if (while_made_) while_made_();
                                                           return now_;
                                                         },
                                                     .differs = [this] { ++differed_; }});
    cache_->Get();
    executor_.Advance(1s);
    made_ = 0;
  }

  base::ManualExecutor executor_;
  api::Report now_{.node = "n1"};
  int made_ = 0, differed_ = 0;
  std::function<void()> while_made_;
  std::optional<ReportCache> cache_;
};

TEST_F(ReportCacheTest, PollsThatReadNothingNewMakeAReportEvery15Seconds) {
  for (int poll = 0; poll < 12; ++poll) {
    executor_.Advance(5s);
    cache_->ReadTimesChanged();
    cache_->Get();  // as for the cluster, or for labels
  }
  executor_.Advance(1s);
  EXPECT_LE(made_, 4) << "in a minute";
  EXPECT_GE(made_, 3) << "some things change without a notice";
  EXPECT_EQ(differed_, 0);
}

TEST_F(ReportCacheTest, AChangeMakesOneReportForAllWhoFollow) {
  const auto before = cache_->Get();
  now_.node = "n2";
  cache_->Changed();
  cache_->Changed();
  const auto shown = cache_->Get();
  EXPECT_EQ(shown->node, "n2");
  EXPECT_NE(shown, before);
  executor_.Advance(10s);
  EXPECT_EQ(cache_->Get(), shown);
  EXPECT_EQ(made_, 1);
}

TEST_F(ReportCacheTest, AReportIsMadeSoonAfterAChangeThatNoClientLooksAt) {
  cache_->Changed();
  executor_.Advance(1s);
  EXPECT_EQ(made_, 1) << "a condition has its time from then";
}

TEST_F(ReportCacheTest, EqualReportsAreOneObject) {
  const auto before = cache_->Get();
  cache_->Changed();
  EXPECT_EQ(cache_->Get(), before);
  EXPECT_EQ(cache_->Make(), before);
  EXPECT_EQ(made_, 2);
}

TEST_F(ReportCacheTest, AReportForAClientIsOfThatMomentAndTellsWhatItFound) {
  cache_->Make();
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(differed_, 0);
  now_.next_kernel = "6.1.0-2";  // without a notice
  EXPECT_EQ(cache_->Make()->next_kernel, "6.1.0-2");
  EXPECT_EQ(differed_, 1);
  EXPECT_EQ(cache_->Get()->next_kernel, "6.1.0-2");
  EXPECT_EQ(made_, 2);
}

TEST_F(ReportCacheTest, WhatChangedWithoutANoticeIsFoundByAPoll) {
  now_.next_kernel = "6.1.0-2";
  executor_.Advance(15s);
  cache_->ReadTimesChanged();
  executor_.Advance(1s);
  EXPECT_EQ(differed_, 1);
}

TEST_F(ReportCacheTest, WhatChangesWhileAReportIsMadeIsInTheNext) {
  while_made_ = [this] {
    while_made_ = nullptr;
    now_.node = "n2";
    cache_->Changed();
  };
  cache_->Make();
  EXPECT_EQ(cache_->Get()->node, "n2");
  EXPECT_EQ(made_, 2);
}

}  // namespace
}  // namespace penstock::view
