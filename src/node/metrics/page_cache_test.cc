#include "node/metrics/page_cache.h"

#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"

namespace penstock::node::metrics {
namespace {

using namespace std::chrono_literals;

class PageCacheTest : public testing::Test {
 protected:
  base::ManualExecutor control_;
  int made_ = 0;
  PageCache pages_{control_, [this](PageFormat format, Detail) {
                     ++made_;
                     return std::string(format == PageFormat::kText ? "text " : "open ") +
                            std::to_string(made_);
                   }};
};

TEST_F(PageCacheTest, AStormOfScrapesIsOnePage) {
  const RenderedPage first = pages_.Get(PageFormat::kText, Detail::kHolders);
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(pages_.Get(PageFormat::kText, Detail::kHolders).text, first.text);
  EXPECT_EQ(made_, 1);
}

TEST_F(PageCacheTest, APageIsNeverOlderThanAChange) {
  const RenderedPage first = pages_.Get(PageFormat::kText, Detail::kHolders);
  pages_.Changed();
  const RenderedPage second = pages_.Get(PageFormat::kText, Detail::kHolders);
  EXPECT_NE(second.text, first.text);
  EXPECT_GT(second.generation, first.generation);
  EXPECT_EQ(*first.text, "text 1") << "who reads it still has it";
  control_.Advance(1s);
  EXPECT_EQ(made_, 2) << "it was made already";
}

TEST_F(PageCacheTest, ManyChangesAtOnceMakeOnePageBeforeAnyoneAsks) {
  pages_.Get(PageFormat::kText, Detail::kHolders);
  for (int i = 0; i < 16; ++i) pages_.Changed();
  control_.Advance(100ms);
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(*pages_.Get(PageFormat::kText, Detail::kHolders).text, "text 2");
  EXPECT_EQ(made_, 2);
}

TEST_F(PageCacheTest, WhatNoOneReadsIsNotMade) {
  pages_.Changed();
  control_.Advance(1s);
  EXPECT_EQ(made_, 0);
  pages_.Get(PageFormat::kOpenMetrics, Detail::kHolders);
  pages_.Changed();
  control_.Advance(1s);
  EXPECT_EQ(made_, 2) << "the format that was asked for alone";
  control_.Advance(10min);
  pages_.Changed();
  control_.Advance(1s);
  EXPECT_EQ(made_, 2) << "nobody has asked for long";
  EXPECT_EQ(*pages_.Get(PageFormat::kOpenMetrics, Detail::kHolders).text, "open 3");
}

// Counters that change without a call of Changed are still updated on the page.
TEST_F(PageCacheTest, APageGrowsOldWithoutAChange) {
  pages_.Get(PageFormat::kText, Detail::kHolders);
  control_.Advance(4s);
  pages_.Get(PageFormat::kText, Detail::kHolders);
  EXPECT_EQ(made_, 1);
  control_.Advance(2s);
  pages_.Get(PageFormat::kText, Detail::kHolders);
  EXPECT_EQ(made_, 2);
}

TEST_F(PageCacheTest, GenerationsAscendOverBothFormats) {
  const RenderedPage text = pages_.Get(PageFormat::kText, Detail::kHolders),
                     open = pages_.Get(PageFormat::kOpenMetrics, Detail::kHolders);
  EXPECT_LT(text.generation, open.generation);
}

TEST_F(PageCacheTest, PagesOfDifferentDetailAreDifferentPages) {
  const RenderedPage holders = pages_.Get(PageFormat::kText, Detail::kHolders);
  const RenderedPage processes = pages_.Get(PageFormat::kText, Detail::kProcesses);
  EXPECT_NE(*holders.text, *processes.text);
  EXPECT_EQ(pages_.Get(PageFormat::kText, Detail::kHolders).text, holders.text);
}

}  // namespace
}  // namespace penstock::node::metrics
