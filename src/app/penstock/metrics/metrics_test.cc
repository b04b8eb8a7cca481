// Tests the lists of metric names that `penstock metrics` prints.
#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "analysis/metric_names.h"
#include "app/command/parse.h"
#include "app/penstock/common/program.h"
#include "app/penstock/metrics/metrics_show.h"
#include "backend/all.h"

namespace penstock::app {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<analysis::MetricName>& All() {
  static const auto all = analysis::AllMetricNames(backend::Dialects());
  return all;
}

TEST(MetricNames, EveryNameIsThereOnceWithAMeaning) {
  std::set<std::string> names;
  for (const analysis::MetricName& metric : All()) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_NE(metric.meaning, "") << metric.name;
    EXPECT_EQ(metric.type.empty(), !metric.unavailable.empty()) << metric.name;
  }
}

TEST(MetricNames, AValueKnowsItsOtherNames) {
  const analysis::MetricName* ours = analysis::FindMetricName(All(), "accelerator_clock_hertz");
  ASSERT_NE(ours, nullptr);
  EXPECT_THAT(ours->also, Contains("DCGM_FI_DEV_SM_CLOCK"));
  EXPECT_GE(ours->sources.size(), 2u) << "a clock each";
  const analysis::MetricName* old = analysis::FindMetricName(All(), "dcgm_fi_dev_sm_clock");
  ASSERT_NE(old, nullptr) << "in whatever case";
  EXPECT_EQ(old->name, "DCGM_FI_DEV_SM_CLOCK");
  EXPECT_THAT(old->also, Contains("accelerator_clock_hertz{clock=\"sm\"}"));
  EXPECT_THAT(old->also, Contains("DCGM_FI_DEV_SM_CLOCK_HERTZ"));
  EXPECT_EQ(analysis::FindMetricName(All(), "DCGM_FI_DEV_SM_CLOCK_HERTZ")->names, "dcgm-4.7");
}

TEST(MetricNames, ADescriptionSaysAllThereIs) {
  const std::string text =
      ShowMetricName(*analysis::FindMetricName(All(), "accelerator_power_watts"), {});
  for (const char* word : {"type:", "gauge", "unit:", "watts", "device index model",
                           "nvidia: nvmlDeviceGetPowerUsage", "DCGM_FI_DEV_POWER_USAGE"})
    EXPECT_THAT(text, HasSubstr(word));
  EXPECT_THAT(text, Not(HasSubstr("`")));
}

TEST(MetricNames, JsonHasTheSame) {
  const auto tree = nlohmann::json::parse(
      MetricNameJson(*analysis::FindMetricName(All(), "accelerator_energy_joules_total")));
  EXPECT_EQ(tree["type"], "counter");
  EXPECT_EQ(tree["unit"], "joules");
  EXPECT_EQ(nlohmann::json::parse(MetricNamesJson(All()))["families"].size(), All().size());
}

TEST(MetricNames, AListIsATable) {
  const std::string table =
      ShowMetricNames({*analysis::FindMetricName(All(), "penstock_queue_length")}, false, {});
  EXPECT_THAT(table, HasSubstr("NAME"));
  EXPECT_THAT(table,
              HasSubstr("penstock_queue_length  gauge  yes    Requests queued for accelerators."));
}

/// Runs `penstock` with these words: its exit status and its output.
struct Penstock {
  explicit Penstock(const std::vector<std::string>& words) {
    Common common;
    command::Verb program;
    DefinePenstock(program, common);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    status = command::Run(program, words, common.output);
    output = testing::internal::GetCapturedStdout();
    errors = testing::internal::GetCapturedStderr();
  }
  int status = -1;
  std::string output, errors;
};

TEST(MetricsVerb, SaysWhichFamilyMayBeMeant) {
  const Penstock misspelt({"metrics", "describe", "accelerator_power_wats"});
  EXPECT_EQ(misspelt.status, 1);
  EXPECT_EQ(misspelt.output, "");
  EXPECT_EQ(misspelt.errors,
            "penstock metrics describe: there is no family \"accelerator_power_wats\"; did you "
            "mean \"accelerator_power_watts\"?\n");
  const Penstock foreign({"metrics", "list", "node_\x1b[31m*"});
  EXPECT_EQ(foreign.status, 1);
  EXPECT_EQ(foreign.errors,
            "penstock metrics list: there is no family \"node_?[31m*\"; penstock metrics list "
            "--all shows all of them\n");
}

TEST(MetricsVerb, ShowsWhatIsUnavailableOnlyWhereAllIsAskedFor) {
  const auto absent =
      std::find_if(All().begin(), All().end(),
                   [](const analysis::MetricName& metric) { return !metric.unavailable.empty(); });
  ASSERT_NE(absent, All().end());
  const std::string& name = absent->name;
  const Penstock plain({"metrics", "list", name}), all({"metrics", "list", name, "--all"});
  EXPECT_EQ(plain.status, 1);
  EXPECT_EQ(plain.errors,
            "penstock metrics list: the families of this name are not supported here; --all shows "
            "them, with the reason\n");
  EXPECT_EQ(all.status, 0);
  EXPECT_THAT(all.output, HasSubstr(name));
}

TEST(MetricsVerb, WithoutAPatternOnlyWhatAPageHasByDefaultIsListed) {
  const Penstock plain({"metrics", "list"}), all({"metrics", "list", "--all"});
  EXPECT_THAT(plain.output, HasSubstr("\naccelerator_power_watts "));
  EXPECT_THAT(plain.output, Not(HasSubstr("if asked")));
  EXPECT_THAT(plain.output, HasSubstr(" more if configured"));
  EXPECT_THAT(all.output, HasSubstr("if asked"));
}

TEST(MetricsVerb, ListsTheSetsOfNamesThatAreAskedFor) {
  const Penstock ours({"metrics", "list", "--names", "accelerator", "--names", "penstock"});
  EXPECT_EQ(ours.status, 0);
  EXPECT_THAT(ours.output, HasSubstr("\naccelerator_power_watts "));
  EXPECT_THAT(ours.output, HasSubstr("\npenstock_queue_length "));
  EXPECT_THAT(ours.output, Not(HasSubstr("DCGM_FI")));
}

}  // namespace
}  // namespace penstock::app
