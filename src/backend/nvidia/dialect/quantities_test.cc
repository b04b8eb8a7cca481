// Tests that the table of quantities is consistent, and that DCGM's fields fit it.
#include "backend/nvidia/dialect/quantities.h"

#include <map>
#include <regex>
#include <set>

#include <gtest/gtest.h>

namespace penstock::backend::nvidia {
namespace {

using device::Quantity;

TEST(Quantities, HaveKeysOfTheirOwnAndSayWhereTheyComeFrom) {
  std::set<std::string_view> keys;
  for (const Quantity& quantity : TheQuantities()) {
    EXPECT_TRUE(keys.insert(quantity.key).second) << quantity.key;
    EXPECT_FALSE(quantity.source.empty()) << quantity.key;
    EXPECT_GT(quantity.most, 0) << quantity.key
                                << ": the marker values for \"not available\" must exceed it";
  }
  EXPECT_EQ(FindQuantity("temperature.gpu"),
            FindQuantity(TheQuantities()[*FindQuantity("temperature.gpu")].key));
  EXPECT_EQ(FindQuantity("temperature"), std::nullopt);
}

TEST(Quantities, KeepNonsenseOut) {
  const auto most = [](std::string_view key) {
    return TheQuantities()[FindQuantity(key).value()].most;
  };
  EXPECT_LT(most("temperature.gpu"), 255);
  EXPECT_LT(most("power"), 0xFFFFFFFFu);
  EXPECT_LT(most("memory.used"), 18446744073709551615.0);
  EXPECT_LT(most("energy"), 9223372036854775792.0);  // DCGM_INT64_BLANK
}

// Labels distinguish the quantities of a family. A family has its base unit in its name and ends in
// _total if and only if it counts.
TEST(Quantities, HaveFamiliesAsMetricsAreNamed) {
  const std::regex name("accelerator_[a-z0-9]+(_[a-z0-9]+)*"),
      labels(R"re(([a-z]+="[a-z0-9_]+"(,[a-z]+="[a-z0-9_]+")*)?)re");
  std::set<std::string> series;
  std::map<std::string_view, const Quantity*> first;
  for (const Quantity& quantity : TheQuantities()) {
    if (quantity.family.empty()) continue;
    EXPECT_TRUE(std::regex_match(std::string(quantity.family), name)) << quantity.family;
    EXPECT_TRUE(std::regex_match(std::string(quantity.labels), labels)) << quantity.labels;
    EXPECT_TRUE(
        series.insert(std::string(quantity.family) + "{" + std::string(quantity.labels) + "}")
            .second)
        << quantity.key;
    const Quantity& one = *first.emplace(quantity.family, &quantity).first->second;
    EXPECT_EQ(one.counter, quantity.counter) << quantity.key;
    EXPECT_EQ(device::BaseOf(one.unit).name, device::BaseOf(quantity.unit).name) << quantity.key;
    EXPECT_EQ(one.per_link, quantity.per_link) << quantity.key;
    EXPECT_EQ(quantity.family.ends_with("_total"), quantity.counter) << quantity.key;
    const std::string unit(device::BaseOf(quantity.unit).name);
    EXPECT_TRUE(quantity.family.ends_with("_" + unit + (quantity.counter ? "_total" : "")) ||
                unit.empty() || quantity.family == "accelerator_bar1_used_bytes" ||
                quantity.family == "accelerator_clock_max_hertz")
        << quantity.key;
  }
}

}  // namespace
}  // namespace penstock::backend::nvidia
