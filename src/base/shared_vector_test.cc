#include "base/core/shared_vector.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::base {
namespace {

using ::testing::ElementsAre;

using Strings = SharedVector<std::string>;

TEST(SharedVector, ACopySharesItsElementsUntilOneOfThemIsEdited) {
  Strings first{"a", "b"};
  Strings second = first;
  EXPECT_EQ(&first[0], &second[0]);
  second.Edit(0) = "x";
  EXPECT_THAT(first, ElementsAre("a", "b"));
  EXPECT_THAT(second, ElementsAre("x", "b"));
  EXPECT_EQ(&first[1], &second[1]);
}

TEST(SharedVector, IsChangedWithoutItsCopies) {
  Strings all{"a", "c"};
  const Strings before = all;
  all.insert(all.begin() + 1, "b");
  all.push_back("d");
  EXPECT_THAT(all, ElementsAre("a", "b", "c", "d"));
  all.EraseIf([](const std::string& one) { return one < "c"; });
  all.Replace(all.begin(), "z");
  all.erase(all.begin() + 1);
  EXPECT_THAT(all, ElementsAre("z"));
  EXPECT_THAT(before, ElementsAre("a", "c"));
}

TEST(SharedVector, IsEqualByItsValues) {
  EXPECT_EQ((Strings{"a", "b"}), (Strings{"a", "b"}));
  EXPECT_EQ((Strings{"a", "b"}), (std::vector<std::string>{"a", "b"}));
  EXPECT_NE((Strings{"a", "b"}), (Strings{"a", "x"}));
  EXPECT_NE((Strings{"a", "b"}), (Strings{"a"}));
}

TEST(SharedVector, IsSearchedAsOtherVectors) {
  const Strings all{"a", "c", "e"};
  EXPECT_EQ(std::lower_bound(all.begin(), all.end(), "c") - all.begin(), 1);
  EXPECT_EQ(std::ranges::find(all, "e") - all.begin(), 2);
  EXPECT_EQ(std::ranges::find(all, "x"), all.end());
}

}  // namespace
}  // namespace penstock::base
