// Names of families, as the tool tells them.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/penstock/metric_names.h"
#include "app/penstock/metrics_show.h"
#include "vendor/all.h"

namespace penstock::app {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<MetricName>& All() {
  static const auto all = AllMetricNames(vendor::Dialects());
  return all;
}

TEST(MetricNames, EveryNameIsThereOnceWithAMeaning) {
  std::set<std::string> names;
  for (const MetricName& metric : All()) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_NE(metric.meaning, "") << metric.name;
    EXPECT_EQ(metric.type.empty(), !metric.not_to_be_had.empty()) << metric.name;
  }
}

TEST(MetricNames, AValueKnowsItsOtherNames) {
  const MetricName* ours = FindMetricName(All(), "accelerator_clock_hertz");
  ASSERT_NE(ours, nullptr);
  EXPECT_THAT(ours->also, Contains("DCGM_FI_DEV_SM_CLOCK"));
  EXPECT_GE(ours->sources.size(), 2u) << "a clock each";
  const MetricName* old = FindMetricName(All(), "dcgm_fi_dev_sm_clock");
  ASSERT_NE(old, nullptr) << "in whatever case";
  EXPECT_EQ(old->name, "DCGM_FI_DEV_SM_CLOCK");
  EXPECT_THAT(old->also, Contains("accelerator_clock_hertz{clock=\"sm\"}"));
  EXPECT_THAT(old->also, Contains("DCGM_FI_DEV_SM_CLOCK_HERTZ"));
  EXPECT_EQ(FindMetricName(All(), "DCGM_FI_DEV_SM_CLOCK_HERTZ")->names, "dcgm-4.7");
}

TEST(MetricNames, ADescriptionSaysAllThereIs) {
  const std::string text = ShowMetricName(*FindMetricName(All(), "accelerator_power_watts"), {});
  for (const char* word :
       {"type:", "gauge", "unit:", "watts", "device index model", "nvidia: nvmlDeviceGetPowerUsage", "DCGM_FI_DEV_POWER_USAGE"})
    EXPECT_THAT(text, HasSubstr(word));
  EXPECT_THAT(text, Not(HasSubstr("`")));
}

TEST(MetricNames, JsonHasTheSame) {
  const auto tree = nlohmann::json::parse(MetricNameJson(*FindMetricName(All(), "accelerator_energy_joules_total")));
  EXPECT_EQ(tree["type"], "counter");
  EXPECT_EQ(tree["unit"], "joules");
  EXPECT_EQ(nlohmann::json::parse(MetricNamesJson(All()))["families"].size(), All().size());
}

TEST(MetricNames, AListIsATable) {
  const std::string table = ShowMetricNames({*FindMetricName(All(), "penstock_queue_length")}, false, {});
  EXPECT_THAT(table, HasSubstr("NAME"));
  EXPECT_THAT(table, HasSubstr("penstock_queue_length  gauge  yes    Requests that wait for accelerators."));
}

}  // namespace
}  // namespace penstock::app
