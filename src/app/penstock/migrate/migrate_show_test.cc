// Tests how `penstock migrate` prints a plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/penstock/migrate/migrate_verb.h"
#include "base/testing/build_tree.h"
#include "os/core/file.h"

namespace penstock::app {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

analysis::Migration PlanOf(const std::string& name) {
  const auto text = os::ReadFile(base::SourcePath("src/analysis/migrate/nvidia/testdata/") + name);
  EXPECT_TRUE(text.ok());
  analysis::Found found;
  const auto read = analysis::TakeFile(*text, name, found);
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message());
  return analysis::Plan(found, analysis::Direction::kToPenstock, "");
}

TEST(ShowMigration, ReportsThePlanInOrder) {
  const std::string text = ShowMigration(PlanOf("nvidia-chart.yaml"), {});
  EXPECT_THAT(
      text,
      StartsWith(
          "From NVIDIA's stack to Penstock: what would change. Nothing was changed.\n\nFound\n"
          "  DaemonSet nvidia/nvdp-nvidia-device-plugin: device plugin (Helm release nvdp, chart "
          "nvidia-device-plugin-0.17.1), "
          "configured by ConfigMap nvidia-plugin-configs, by default its key any\n"));
  EXPECT_THAT(text,
              AllOf(HasSubstr("\nFix first\n"), HasSubstr("\n  2. helm -n nvidia get values")));
  analysis::Migration plan = PlanOf("gpu-operator.yaml");
  plan.not_yet = {"a setting"};
  EXPECT_THAT(ShowMigration(plan, {}), HasSubstr("\nNot supported yet\n"));
  const auto json = nlohmann::json::parse(MigrationToJson(PlanOf("nvidia-chart.yaml")));
  EXPECT_EQ(json["to"], "penstock");
  EXPECT_EQ(json["steps"].size(), 5u);
}

}  // namespace
}  // namespace penstock::app
