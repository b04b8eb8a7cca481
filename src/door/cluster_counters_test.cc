#include "door/cluster_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "edge/kube/fake/fake_api.h"

namespace penstock::door {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kMap[] = "/api/v1/namespaces/gpu/configmaps/metrics";

TEST(ClusterCounters, AreUnderTheKeyMetricsOrTheOnlyOne) {
  const json both = {{"data", {{"metrics", "A"}, {"other", "B"}}}}, one = {{"data", {{"dcgm-metrics.csv", "C"}}}};
  EXPECT_EQ(ChooseCounters("gpu/m", &both), (WishedConfig{.origin = "ConfigMap gpu/m, key metrics", .text = "A"}));
  EXPECT_EQ(ChooseCounters("gpu/m", &one), (WishedConfig{.origin = "ConfigMap gpu/m, key dcgm-metrics.csv", .text = "C"}));
}

TEST(ClusterCounters, SayWhatIsMissing) {
  const json none = {{"data", {{"a", "A"}, {"b", "B"}}}}, empty = {{"data", {{"metrics", " \n"}}}}, nothing = json::object();
  EXPECT_THAT(ChooseCounters("gpu/m", nullptr).problem, HasSubstr("there is no ConfigMap gpu/m: create it"));
  EXPECT_THAT(ChooseCounters("gpu/m", &none).problem, HasSubstr("ConfigMap gpu/m has no key \"metrics\""));
  EXPECT_THAT(ChooseCounters("gpu/m", &nothing).problem, HasSubstr("has no key \"metrics\""));
  EXPECT_THAT(ChooseCounters("gpu/m", &empty).problem, HasSubstr("key metrics is empty"));
}

class ClusterCountersTest : public testing::Test {
 protected:
  void Start(const std::string& where) {
    counters_ = std::make_unique<ClusterCounters>(
        api_, where,
        ClusterCounters::Callbacks{.told = [this](const WishedConfig& wish) { told_.push_back(wish); },
                                   .problem = [this](ClusterWork::Problem problem) { problem_ = problem; }});
    counters_->Start();
    executor_.RunUntilIdle();
  }

  base::ManualExecutor executor_;
  edge::kube::FakeApi api_{executor_};
  std::vector<WishedConfig> told_;
  ClusterWork::Problem problem_;
  std::unique_ptr<ClusterCounters> counters_;
};

TEST_F(ClusterCountersTest, AreFollowed) {
  Start("gpu:metrics");
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_THAT(told_[0].problem, HasSubstr("there is no ConfigMap gpu/metrics"));
  api_.Put(kMap, {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"data", {{"metrics", "one"}}}});
  executor_.RunUntilIdle();
  api_.Merge(kMap, {{"data", {{"metrics", "two"}}}});
  executor_.RunUntilIdle();
  ASSERT_THAT(told_, SizeIs(3));
  EXPECT_EQ(told_[1].text, "one");
  EXPECT_EQ(told_[2].text, "two");
  EXPECT_EQ(told_[2].problem, "");
}

TEST_F(ClusterCountersTest, WithoutANameNobodyIsAsked) {
  Start("");
  EXPECT_EQ(api_.Requests(), 0u);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(ClusterCountersTest, SayWhichRightIsMissing) {
  api_.Forbid("", "/api/v1/namespaces/gpu/configmaps");
  Start("gpu:metrics");
  EXPECT_THAT(problem_.text, HasSubstr("configmaps"));
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_THAT(told_[0].problem, HasSubstr("configmaps"));
}

}  // namespace
}  // namespace penstock::door
