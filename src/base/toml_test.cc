#include "base/toml.h"

#include <gmock/gmock.h>

namespace penstock::base {
namespace {

using testing::HasSubstr;

TEST(Toml, KeysStandInTheOrderOfTheFileWithTheirPlaces) {
  const auto value = ParseToml("z = 1\n[b]\n  y = [true, 'x']\n[a]\nwhen = 1979-05-27\n", "f");
  ASSERT_TRUE(value.ok()) << value.error().message();
  std::string keys;
  for (const auto& entry : *value->map) keys += entry.key;
  EXPECT_EQ(keys, "zba");
  EXPECT_EQ(value->Find("b")->Find("y")->list->at(1).text, "x");
  EXPECT_EQ(value->Find("b")->Find("y")->mark.line, 3);
  EXPECT_EQ(value->Find("a")->Find("when")->text, "1979-05-27");
}

TEST(Toml, WhatIsIllFormedIsAnErrorWithItsPlace) {
  for (const char* text : {"[\n", "[[\n", "[a.\n", "a = \n", "= 1", "a = {b = }", "a = [1",
                           "\"\"\"a\"\"\" = 1", "[a]\n[a]\n", "a = 1\na = 2"}) {
    const auto value = ParseToml(text, "f");
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_EQ(value.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(value.error().message(), HasSubstr("f:")) << text;
  }
}

// toml++ 3.3 marks these as unreachable where a blank is possible (builds with sanitizers aborted).
TEST(Toml, LettersFromArabicPresentationFormsAreNoBlanks) {
  for (unsigned point = 0xfb26; point < 0xfeff; ++point) {
    const std::string letter = {static_cast<char>(0xe0 | point >> 12),
                                static_cast<char>(0x80 | (point >> 6 & 0x3f)),
                                static_cast<char>(0x80 | (point & 0x3f))};
    EXPECT_FALSE(ParseToml("a " + letter + "= 1\n", "f").ok()) << point;
    EXPECT_TRUE(ParseToml("a = '" + letter + "'\n", "f").ok()) << point;
  }
}

}  // namespace
}  // namespace penstock::base
