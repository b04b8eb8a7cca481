#include "protocol/kube/line_buffer.h"

#include <gtest/gtest.h>

namespace penstock::protocol::kube {
namespace {

TEST(LineBuffer, CutsLinesHoweverTheyArrive) {
  LineBuffer lines;
  EXPECT_EQ(lines.Next(false), std::nullopt);
  lines.Append("a\r\nb");
  EXPECT_EQ(lines.Next(false), "a");
  EXPECT_EQ(lines.Next(false), std::nullopt);
  lines.Append("c\n\nd");
  EXPECT_EQ(lines.Next(false), "bc");
  EXPECT_EQ(lines.Next(false), "");
  EXPECT_EQ(lines.Next(false), std::nullopt);
  EXPECT_EQ(lines.Next(true), "d");
  EXPECT_EQ(lines.Next(true), std::nullopt);
}

TEST(LineBuffer, KeepsNoMemoryOfWhatWasTaken) {
  LineBuffer lines;
  lines.Append(std::string(1u << 20, 'x'));
  EXPECT_EQ(lines.Next(false), std::nullopt);
  EXPECT_GE(lines.capacity(), 1u << 20) << "of a line that is not complete yet";
  lines.Append("\n");
  EXPECT_EQ(lines.Next(false)->size(), 1u << 20);
  EXPECT_EQ(lines.Next(false), std::nullopt);
  EXPECT_LE(lines.capacity(), 32u << 10);
  lines.Append("a\n");
  EXPECT_EQ(lines.Next(false), "a");
}

}  // namespace
}  // namespace penstock::protocol::kube
