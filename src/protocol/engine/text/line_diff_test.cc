#include "protocol/engine/text/line_diff.h"

#include <random>

#include <gtest/gtest.h>

namespace penstock::protocol::engine {
namespace {

TEST(LineDiff, PrintsWhatDiffPrints) {
  EXPECT_EQ(Unified("f", "1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nfive\n6\n"),
            "--- f\n+++ f\n@@ -2,5 +2,5 @@\n 2\n 3\n 4\n-5\n+five\n 6\n");
  EXPECT_EQ(Unified("f", std::nullopt, "a\n"), "--- /dev/null\n+++ f\n@@ -0,0 +1 @@\n+a\n");
  EXPECT_EQ(Unified("f", "a", std::nullopt),
            "--- f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\\ No newline at end of file\n");
  EXPECT_EQ(Unified("f", "a\n", "a\n"), "");
}

TEST(LineDiff, ChangesApartAreHunksOfTheirOwn) {
  const auto hunks = Diff(Lines("1\n2\n3\n4\n5\n"), Lines("1\n3\n4\nfive\n"));
  ASSERT_EQ(hunks.size(), 2u);
  EXPECT_EQ(hunks[0].before, 1u);
  EXPECT_EQ(hunks[0].before_end, 2u);
  EXPECT_EQ(hunks[0].after, hunks[0].after_end) << "a removed line";
  EXPECT_EQ(hunks[1].before, 4u);
  EXPECT_EQ(hunks[1].after, 3u);
  EXPECT_EQ(hunks[1].after_end, 4u);
}

TEST(LineDiff, AnyTwoTextsAreExplainedByTheirHunks) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string a, b;
    for (std::string* text : {&a, &b})
      for (unsigned lines = random() % 12; lines > 0; --lines)
        *text += std::string(1, static_cast<char>('a' + random() % 4)) + "\n";
    const auto x = Lines(a), y = Lines(b);
    std::string made;
    std::size_t at = 0;
    for (const Hunk& hunk : Diff(x, y)) {
      for (; at < hunk.before; ++at) made += x[at];
      for (std::size_t i = hunk.after; i < hunk.after_end; ++i) made += y[i];
      at = hunk.before_end;
    }
    for (; at < x.size(); ++at) made += x[at];
    ASSERT_EQ(made, b) << a;
  }
}

TEST(LineDiff, TextsWithNothingInCommonAreOneHunk) {
  std::string a, b;
  for (int i = 0; i < 3000; ++i) {
    a += "a" + std::to_string(i) + "\n";
    b += "b" + std::to_string(i) + "\n";
  }
  EXPECT_EQ(Diff(Lines(a), Lines(b)).size(), 1u);
}

}  // namespace
}  // namespace penstock::protocol::engine
