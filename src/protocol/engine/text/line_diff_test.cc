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

TEST(LineDiff, ChangesApartAreMergedAndTouchingOnesAreNot) {
  const std::string base = "1\n2\n3\n4\n5\n";
  EXPECT_EQ(Merge(base, "1\n3\n4\n5\n", "1\n2\n3\n4\n5\n6\n"), "1\n3\n4\n5\n6\n");
  EXPECT_EQ(Merge(base, base, "x\n"), "x\n");
  EXPECT_EQ(Merge(base, "1\n2\nours\n4\n5\n", "1\n2\ntheirs\n4\n5\n"), std::nullopt);
  EXPECT_EQ(Merge(base, "1\na\n2\n3\n4\n5\n", "1\nb\n2\n3\n4\n5\n"), std::nullopt);
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
    ASSERT_EQ(Merge(a, b, a), b);
    ASSERT_EQ(Merge(a, a, b), b);
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
