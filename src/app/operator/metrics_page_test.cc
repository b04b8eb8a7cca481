// Tests the operator's page: our families, and those of NVIDIA's operator.
#include "app/operator/metrics_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::app {
namespace {

using cluster::DriverOutcome;
using cluster::Operator;
using testing::HasSubstr;
using testing::Not;

std::string PageOf(const Operator::Numbers& numbers) { return OperatorMetrics(&numbers, {}); }

TEST(OperatorPage, OnlyTheOneThatActsSaysHowThePoliciesStand) {
  const std::string page = OperatorMetrics(nullptr, {});
  EXPECT_THAT(page, HasSubstr("penstock_operator_leader 0\n"));
  EXPECT_THAT(page, Not(HasSubstr("gpu_operator_")));
}

TEST(OperatorPage, CountsTheNodesOfEachDriver) {
  DriverOutcome blue{.name = "blue", .nodes = 9};
  blue.counts = {.nodes = 8,
                 .done = 3,
                 .required = 2,
                 .underway = 1,
                 .failed = 1,
                 .unavailable = 1,
                 .available = 4};
  DriverOutcome red{.name = "red", .nodes = 1, .gate = "CanaryFailed"};
  red.counts = {.nodes = 1, .done = 1, .available = 1};
  const std::string page = PageOf({.policies = 1, .drivers = {blue, red}});
  for (const char* line : {R"(driver_nodes{driver="blue",state="done"} 3)",
                           R"(driver_nodes{driver="blue",state="required"} 2)",
                           R"(driver_nodes{driver="blue",state="underway"} 1)",
                           R"(driver_nodes{driver="blue",state="failed"} 1)",
                           R"(driver_nodes{driver="blue",state="none"} 2)",
                           R"(driver_nodes{driver="red",state="done"} 1)",
                           R"(driver_upgrade_stopped{driver="red",reason="CanaryFailed"} 1)"})
    EXPECT_THAT(page, HasSubstr("\npenstock_operator_" + std::string(line) + "\n"));
  EXPECT_THAT(page, Not(HasSubstr(R"(stopped{driver="blue")")));
  for (const char* line : {"in_progress 1", "done 4", "failed 1", "available 5", "pending 2"})
    EXPECT_THAT(page, HasSubstr("\ngpu_operator_nodes_upgrades_" + std::string(line) + "\n"));
  EXPECT_THAT(page, HasSubstr("\ngpu_operator_driver_auto_upgrade_enabled 0\n"));
  EXPECT_THAT(PageOf({.automatic_upgrades = true}),
              HasSubstr("\ngpu_operator_driver_auto_upgrade_enabled 1\n"));
}

TEST(OperatorPage, SaysTheStatusInNumbersOfNvidiasOperator) {
  struct Case {
    std::size_t policies;
    bool failed, ready;
    const char* status;
  };
  for (const Case& one :
       {Case{1, false, true, "1"}, Case{1, false, false, "0"}, Case{0, false, false, "-1"},
        Case{1, true, false, "-2"}, Case{0, true, false, "-2"}}) {
    Operator::Numbers numbers{.policies = one.policies};
    numbers.passes.last_failed = one.failed;
    numbers.passes.last_ready = one.ready;
    EXPECT_THAT(PageOf(numbers), HasSubstr("\ngpu_operator_reconciliation_status " +
                                           std::string(one.status) + "\n"));
  }
}

TEST(OperatorPage, CountsReconciliationsAndPolicies) {
  Operator::Numbers numbers{.policies = 2, .device_nodes = 7};
  numbers.policy_states = {{"ClusterPolicy", "cluster-policy", true},
                           {"NVIDIADriver", "bl\"ue", false}};
  numbers.passes = {.all = 5, .failed = 2};
  std::string page = PageOf(numbers);
  for (const char* line :
       {"gpu_operator_gpu_nodes_total 7", "gpu_operator_reconciliation_total 5",
        "gpu_operator_reconciliation_failed_total 2",
        "gpu_operator_reconciliation_last_success_ts_seconds 0",
        R"(penstock_operator_policy_ready{kind="ClusterPolicy",name="cluster-policy"} 1)",
        R"(penstock_operator_policy_ready{kind="NVIDIADriver",name="bl\"ue"} 0)"})
    EXPECT_THAT(page, HasSubstr("\n" + std::string(line) + "\n"));
  numbers.passes.succeeded = base::NearestTime(1'800'000'000);
  EXPECT_THAT(PageOf(numbers),
              HasSubstr("\ngpu_operator_reconciliation_last_success_ts_seconds 1800000000\n"));
}

}  // namespace
}  // namespace penstock::app
