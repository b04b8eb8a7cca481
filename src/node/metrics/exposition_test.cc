#include "node/metrics/exposition.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::node::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Type = Exposition::Type;

TEST(LabelText, WhateverAValueIsItStaysOne) {
  const std::string evil = "x\"} 1\nfake_metric{a=\"\\\r\x7f\t";
  EXPECT_EQ(LabelText().Add("a", evil).Add("b", "ü").text(),
            R"(a="x\"} 1\nfake_metric{a=\"\\???",b="ü")");
  EXPECT_EQ(LabelText().Add("a", "\xff\xc0 ok").text(), R"(a="?? ok")")
      << "not UTF-8: a scraper would refuse the page";
  EXPECT_EQ(LabelText(R"(a="1")").Add("b", "2").text(), R"(a="1",b="2")");
}

TEST(Exposition, TextHasHelpAndTypeOnce) {
  Exposition page(PageFormat::kText);
  EXPECT_TRUE(page.Family("x", Type::kCounter, "a \"b\" \\ \nc"));
  page.Add({}, 1.5);
  page.Add(R"(a="1")", std::uint64_t{18446744073709551615u});
  page.Add(R"(a="1")", R"(b="2")", true);
  page.Add({}, R"(b="2")", 0.1);
  EXPECT_EQ(page.Take(),
            "# HELP x a \"b\" \\\\ \\nc\n# TYPE x counter\nx 1.5\nx{a=\"1\"} "
            "18446744073709551615\nx{a=\"1\",b=\"2\"} 1\nx{b=\"2\"} 0.1\n");
}

TEST(Exposition, WhatIsNoNumberIsLeftOutAndAFamilyWithoutSamplesToo) {
  Exposition page(PageFormat::kText);
  page.Family("x", Type::kGauge, "x");
  page.Add({}, std::numeric_limits<double>::quiet_NaN());
  page.Add({}, std::numeric_limits<double>::infinity());
  page.Family("y", Type::kGauge, "y");
  EXPECT_EQ(page.Take(), "");
}

// dcgm-exporter's pages had a second HELP line if two collectors had the same counter; Prometheus
// refuses such a page.
TEST(Exposition, NoFamilyIsThereTwice) {
  Exposition page(PageFormat::kText);
  page.Family("x", Type::kGauge, "one");
  page.Add({}, 1.0);
  EXPECT_FALSE(page.Family("x", Type::kCounter, "two"));
  page.Add({}, 2.0);
  EXPECT_TRUE(page.Family("y", Type::kGauge, "y")) << "without samples";
  EXPECT_TRUE(page.Family("y", Type::kGauge, "y")) << "so this is the first";
  page.Add({}, 3.0);
  EXPECT_EQ(page.Take(), "# HELP x one\n# TYPE x gauge\nx 1\n# HELP y y\n# TYPE y gauge\ny 3\n");
}

TEST(Exposition, WhatIsNotWantedIsNotThere) {
  Exposition page(PageFormat::kText, [](std::string_view name) { return name != "x"; });
  EXPECT_FALSE(page.Family("x", Type::kGauge, "x"));
  page.Add({}, 1.0);
  EXPECT_TRUE(page.Family("y", Type::kGauge, "y"));
  page.Add({}, 1.0);
  EXPECT_THAT(page.Take(), Not(HasSubstr("x")));
}

TEST(Exposition, OpenMetricsHasItsOwnTypesUnitsAndEnd) {
  Exposition page(PageFormat::kOpenMetrics);
  page.Family("accelerator_energy_joules_total");
  page.Add(R"(device="G0")", 2.5);
  page.Family("accelerator_info");
  page.Add(R"(device="G0")", {}, true);
  page.Family("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", Type::kCounter, R"(say "it")");
  page.AddWritten(R"(gpu="0")", "7");
  page.Family("odd", Type::kUnknown, "odd");
  page.Add({}, 1.0);
  EXPECT_EQ(page.Take(),
            R"(# HELP accelerator_energy_joules Energy consumed by an accelerator, in joules.
# TYPE accelerator_energy_joules counter
# UNIT accelerator_energy_joules joules
accelerator_energy_joules_total{device="G0"} 2.5
# HELP accelerator Facts about an accelerator, as labels; the value is always 1.
# TYPE accelerator info
accelerator_info{device="G0"} 1
# HELP DCGM_FI_DEV_PCIE_REPLAY_COUNTER say \"it\"
# TYPE DCGM_FI_DEV_PCIE_REPLAY_COUNTER unknown
DCGM_FI_DEV_PCIE_REPLAY_COUNTER{gpu="0"} 7
# HELP odd odd
# TYPE odd unknown
odd 1
# EOF
)");
}

TEST(Exposition, InTextInfosAreGaugesAndUnknownIsUntyped) {
  Exposition page(PageFormat::kText);
  page.Family("accelerator_info");
  page.Add({}, {}, true);
  page.Family("odd", Type::kUnknown, "odd");
  page.Add({}, 1.0);
  const std::string text = page.Take();
  EXPECT_THAT(text, HasSubstr("# TYPE accelerator_info gauge\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE odd untyped\n"));
  EXPECT_THAT(text, Not(HasSubstr("EOF")));
}

}  // namespace
}  // namespace penstock::node::metrics
