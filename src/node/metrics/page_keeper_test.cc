#include "node/metrics/page_keeper.h"

#include <gtest/gtest.h>

namespace penstock::node::metrics {
namespace {

using namespace std::chrono_literals;

class PageKeeperTest : public testing::Test {
 protected:
  base::ManualExecutor control_;
  int made_ = 0;
  PageKeeper pages_{control_, [this](Format format, Detail) {
                      ++made_;
                      return std::string(format == Format::kText ? "text " : "open ") + std::to_string(made_);
                    }};
};

TEST_F(PageKeeperTest, AStormOfScrapesIsOnePage) {
  const Page first = pages_.Get(Format::kText, Detail::kHolders);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(pages_.Get(Format::kText, Detail::kHolders).text, first.text);
  EXPECT_EQ(made_, 1);
}

TEST_F(PageKeeperTest, APageIsNeverOlderThanAChange) {
  const Page first = pages_.Get(Format::kText, Detail::kHolders);
  pages_.Changed();
  const Page second = pages_.Get(Format::kText, Detail::kHolders);
  EXPECT_NE(second.text, first.text);
  EXPECT_GT(second.generation, first.generation);
  EXPECT_EQ(*first.text, "text 1") << "who reads it still has it";
  control_.Advance(1s);
  EXPECT_EQ(made_, 2) << "it was made already";
}

TEST_F(PageKeeperTest, ManyChangesAtOnceMakeOnePageBeforeAnybodyAsks) {
  pages_.Get(Format::kText, Detail::kHolders);
  for (int i = 0; i < 16; ++i) pages_.Changed();
  control_.Advance(100ms);
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(*pages_.Get(Format::kText, Detail::kHolders).text, "text 2");
  EXPECT_EQ(made_, 2);
}

TEST_F(PageKeeperTest, WhatNobodyReadsIsNotMade) {
  pages_.Changed();
  control_.Advance(1s);
  EXPECT_EQ(made_, 0);
  pages_.Get(Format::kOpenMetrics, Detail::kHolders);
  pages_.Changed();
  control_.Advance(1s);
  EXPECT_EQ(made_, 2) << "the format that was asked for alone";
  control_.Advance(10min);
  pages_.Changed();
  control_.Advance(1s);
  EXPECT_EQ(made_, 2) << "nobody has asked for long";
  EXPECT_EQ(*pages_.Get(Format::kOpenMetrics, Detail::kHolders).text, "open 3");
}

// Counts of which nobody is told that they changed are on the page all the same.
TEST_F(PageKeeperTest, APageGrowsOldWithoutAChange) {
  pages_.Get(Format::kText, Detail::kHolders);
  control_.Advance(4s);
  pages_.Get(Format::kText, Detail::kHolders);
  EXPECT_EQ(made_, 1);
  control_.Advance(2s);
  pages_.Get(Format::kText, Detail::kHolders);
  EXPECT_EQ(made_, 2);
}

TEST_F(PageKeeperTest, GenerationsAscendOverBothFormats) {
  const Page text = pages_.Get(Format::kText, Detail::kHolders), open = pages_.Get(Format::kOpenMetrics, Detail::kHolders);
  EXPECT_LT(text.generation, open.generation);
}

TEST_F(PageKeeperTest, PagesOfDifferentDetailAreDifferentPages) {
  const Page holders = pages_.Get(Format::kText, Detail::kHolders);
  const Page processes = pages_.Get(Format::kText, Detail::kProcesses);
  EXPECT_NE(*holders.text, *processes.text);
  EXPECT_EQ(pages_.Get(Format::kText, Detail::kHolders).text, holders.text);
}

}  // namespace
}  // namespace penstock::node::metrics
