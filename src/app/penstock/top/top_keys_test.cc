#include "app/penstock/top/top_keys.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::app {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> KeysOf(std::string input) {
  std::vector<std::string> keys;
  while (auto key = TakeKey(input)) keys.push_back(*std::move(key));
  return keys;
}

/// The view after these keys; the test fails where one of them quits.
TopView After(const std::vector<std::string>& keys, TopView view = {}) {
  for (const std::string& key : keys) EXPECT_TRUE(PressKey(key, view)) << key;
  return view;
}

TEST(TopKeys, ReportSequencesFromCharacters) {
  EXPECT_THAT(KeysOf("c\033[Aq"), ElementsAre("c", "\033[A", "q"));
  EXPECT_THAT(KeysOf("\033OB\033[5~\033[1;5A"), ElementsAre("\033OB", "\033[5~", "\033[1;5A"));
  EXPECT_THAT(KeysOf("\033"), ElementsAre("\033"));
  EXPECT_THAT(KeysOf("\033q"), ElementsAre("\033", "q"));
  EXPECT_THAT(KeysOf("\033[12"), ElementsAre("\033", "[", "1", "2")) << "without an end";
  EXPECT_THAT(KeysOf("ü€"), ElementsAre("ü", "€"));
  EXPECT_THAT(KeysOf("\xc3"), ElementsAre("\xc3"));
}

TEST(TopKeys, SortAndTheSameAgainTheOtherWay) {
  EXPECT_EQ(After({"m"}).sort, TopSort::kMemory);
  EXPECT_FALSE(After({"m"}).reverse);
  EXPECT_TRUE(After({"m", "m"}).reverse);
  EXPECT_FALSE(After({"m", "m", "m"}).reverse);
  EXPECT_FALSE(After({"m", "m", "p"}).reverse);
  EXPECT_EQ(After({"d"}).sort, TopSort::kDevice);
  EXPECT_EQ(After({"u"}).sort, TopSort::kUser);
  EXPECT_TRUE(After({"c"}).reverse) << "it is sorted so from the start";
}

TEST(TopKeys, TypeAFilter) {
  EXPECT_EQ(After({"/", "t", "ü", "q", "\177", "\r"}).filter, "tü");
  EXPECT_EQ(After({"/", "ü", "\177"}).filter, "");
  EXPECT_EQ(After({"/", "\177"}).filter, "");
  EXPECT_FALSE(After({"/", "a", "\r"}).typing);
  EXPECT_TRUE(After({"/", "a"}).typing);
  EXPECT_EQ(After({"/", "a", "\033"}), TopView{});
  EXPECT_EQ(After({"/", "a", "\r", "\033"}).filter, "");
  EXPECT_EQ(After({"/", "\x01", "\033[A"}).filter, "");
  EXPECT_LE(After(std::vector<std::string>(500, "/")).filter.size(), 100u);
}

TEST(TopKeys, Scroll) {
  EXPECT_EQ(After({"\033[B", "\033OB", "\033[A"}).first_process, 1u);
  EXPECT_EQ(After({"\033[A"}).first_process, 0u);
  EXPECT_EQ(After({"\033[6~"}).first_device, 4u);
  EXPECT_EQ(After({"\033[6~", "\033[5~", "\033[5~"}).first_device, 0u);
  EXPECT_EQ(After({"\033[B", "m"}).first_process, 0u) << "another order begins at its top";
}

TEST(TopKeys, HelpGoesWithAnyKey) {
  EXPECT_TRUE(After({"h"}).help);
  EXPECT_TRUE(After({"?"}).help);
  EXPECT_EQ(After({"h", "q"}), TopView{});
}

TEST(TopKeys, QuitAndNothingElseDoes) {
  TopView view;
  EXPECT_FALSE(PressKey("q", view));
  for (const char* key : {"x", "Q", "\033[Z", "\t", "\r"}) EXPECT_TRUE(PressKey(key, view)) << key;
  EXPECT_EQ(view, TopView{});
}

}  // namespace
}  // namespace penstock::app
