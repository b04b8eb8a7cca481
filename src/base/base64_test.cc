#include "base/base64.h"

#include <gtest/gtest.h>

namespace penstock::base {
namespace {

TEST(Base64, ReadsWhatItWrites) {
  for (const std::string text : {"", "a", "ab", "abc", "abcd", "\xff\x00\x7f"})
    EXPECT_EQ(DecodeBase64(EncodeBase64(text)), text);
  EXPECT_EQ(EncodeBase64("abcd"), "YWJjZA==");
  EXPECT_EQ(DecodeBase64("YWJj\n ZA==\n"), "abcd");
  for (const char* wrong : {"a", "ab=c", "a===", "====", "ab!=", "YWJj="})
    EXPECT_FALSE(DecodeBase64(wrong)) << wrong;
}

}  // namespace
}  // namespace penstock::base
