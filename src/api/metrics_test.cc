#include "api/metrics.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api {
namespace {

bool IsLabelName(const std::string& name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos &&
         !name.starts_with("__");
}

/// Returns the family's name as OpenMetrics spells it.
std::string_view Stem(const MetricFamily& family) {
  std::string_view name = family.name;
  const std::string_view ending = family.type == MetricType::kCounter ? "_total"
                                  : family.type == MetricType::kInfo  ? "_info"
                                                                      : "";
  return name.ends_with(ending) ? name.substr(0, name.size() - ending.size()) : name;
}

// The requirements of OpenMetrics and promtool for names, and of readers for help texts.
TEST(Metrics, EveryFamilyIsNamedAsMetricsAre) {
  for (const MetricFamily& family : MetricFamilies()) {
    const std::string name(family.name);
    EXPECT_TRUE(name.starts_with("accelerator_") || name.starts_with("penstock_")) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string::npos)
        << name;
    EXPECT_EQ(family.type == MetricType::kCounter, name.ends_with("_total")) << name;
    EXPECT_EQ(family.type == MetricType::kInfo, name.ends_with("_info")) << name;
    EXPECT_TRUE(family.unit.empty() || Stem(family).ends_with("_" + std::string(family.unit)))
        << name;
    EXPECT_TRUE(family.help.ends_with(".")) << name;
    EXPECT_FALSE(family.note.ends_with(".")) << name;
    EXPECT_EQ(family.note.find('|'), std::string::npos) << name << ": the table would be cut";
    for (const std::string& label : LabelsOf(family))
      EXPECT_TRUE(IsLabelName(label) || label == "label_*") << name << " " << label;
  }
}

TEST(Metrics, NoNameStandsForTwo) {
  std::set<std::string_view> names, stems;
  auto group = MetricGroup::kDevices;
  for (const MetricFamily& family : MetricFamilies()) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_TRUE(stems.insert(Stem(family)).second)
        << family.name << " clashes with another in OpenMetrics";
    EXPECT_EQ(FindMetricFamily(family.name), &family);
    EXPECT_GE(family.group, group) << family.name << " stands in another group's place";
    group = family.group;
    std::set<std::string> labels;
    for (const std::string& label : LabelsOf(family))
      EXPECT_TRUE(labels.insert(label).second) << family.name << " " << label;
  }
  EXPECT_EQ(FindMetricFamily("accelerator_"), nullptr);
  EXPECT_EQ(FindMetricFamily(""), nullptr);
}

TEST(Metrics, LabelsBeginWithThoseOfWhatTheFamilyIsOf) {
  const MetricFamily* family = FindMetricFamily("accelerator_clock_hertz");
  ASSERT_NE(family, nullptr);
  EXPECT_THAT(LabelsOf(*family), testing::ElementsAre("device", "index", "model", "clock"));
  EXPECT_THAT(LabelsOf(*FindMetricFamily("penstock_queue_length")), testing::IsEmpty());
}

}  // namespace
}  // namespace penstock::api
