#include "base/log.h"

#include <string>

#include <gtest/gtest.h>

namespace penstock::base {
namespace {

int LinesWith(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

// NVIDIA/gpu-operator#111: a message per second fills the log.
TEST(Log, GO111ARepeatedLineIsWrittenTenTimesAMinute) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 500; ++i) Log(kWarn, "the same thing", {{"node", "n1"}, {"turn", i}});
  Log(kWarn, "the same thing", {{"node", "n2"}});
  Log(kWarn, "another thing", {{"node", "n1"}});
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(LinesWith(text, "the same thing node=n1"), 10) << text;
  EXPECT_EQ(LinesWith(text, "the same thing node=n2"), 1);
  EXPECT_EQ(LinesWith(text, "another thing"), 1);
}

}  // namespace
}  // namespace penstock::base
