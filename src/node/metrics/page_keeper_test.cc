#include "node/metrics/page_keeper.h"

#include <gtest/gtest.h>

namespace penstock::node::metrics {
namespace {

using namespace std::chrono_literals;

class PageKeeperTest : public testing::Test {
 protected:
  base::ManualExecutor control_;
  int made_ = 0;
  PageKeeper pages_{control_, [this](Format format) {
                      ++made_;
                      return std::string(format == Format::kText ? "text " : "open ") + std::to_string(made_);
                    }};
};

TEST_F(PageKeeperTest, AStormOfScrapesIsOnePage) {
  const Page first = pages_.Get(Format::kText);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(pages_.Get(Format::kText).text, first.text);
  EXPECT_EQ(made_, 1);
}

TEST_F(PageKeeperTest, APageIsNeverOlderThanAChange) {
  const Page first = pages_.Get(Format::kText);
  pages_.Changed();
  const Page second = pages_.Get(Format::kText);
  EXPECT_NE(second.text, first.text);
  EXPECT_GT(second.generation, first.generation);
  EXPECT_EQ(*first.text, "text 1") << "who reads it still has it";
  control_.Advance(1s);
  EXPECT_EQ(made_, 2) << "it was made already";
}

TEST_F(PageKeeperTest, ManyChangesAtOnceMakeOnePageBeforeAnybodyAsks) {
  pages_.Get(Format::kText);
  for (int i = 0; i < 16; ++i) pages_.Changed();
  control_.Advance(100ms);
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(*pages_.Get(Format::kText).text, "text 2");
  EXPECT_EQ(made_, 2);
}

TEST_F(PageKeeperTest, WhatNobodyReadsIsNotMade) {
  pages_.Changed();
  control_.Advance(1s);
  EXPECT_EQ(made_, 0);
  pages_.Get(Format::kOpenMetrics);
  pages_.Changed();
  control_.Advance(1s);
  EXPECT_EQ(made_, 2) << "the format that was asked for alone";
  control_.Advance(10min);
  pages_.Changed();
  control_.Advance(1s);
  EXPECT_EQ(made_, 2) << "nobody has asked for long";
  EXPECT_EQ(*pages_.Get(Format::kOpenMetrics).text, "open 3");
}

// Counts of which nobody is told that they changed are on the page all the same.
TEST_F(PageKeeperTest, APageGrowsOldWithoutAChange) {
  pages_.Get(Format::kText);
  control_.Advance(4s);
  pages_.Get(Format::kText);
  EXPECT_EQ(made_, 1);
  control_.Advance(2s);
  pages_.Get(Format::kText);
  EXPECT_EQ(made_, 2);
}

TEST_F(PageKeeperTest, GenerationsAscendOverBothFormats) {
  const Page text = pages_.Get(Format::kText), open = pages_.Get(Format::kOpenMetrics);
  EXPECT_LT(text.generation, open.generation);
}

}  // namespace
}  // namespace penstock::node::metrics
