#include "adapter/cluster/counters_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/manual_executor.h"
#include "protocol/kube/fake/fake_api.h"

namespace penstock::adapter::cluster {
namespace {

using nlohmann::json;
using protocol::kube::ReconcileLoop;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kMetricsMap[] = "/api/v1/namespaces/gpu/configmaps/metrics";

TEST(CountersWatch, AreUnderTheKeyMetricsOrTheOnlyOne) {
  const json both = {{"data", {{"metrics", "A"}, {"other", "B"}}}},
             one = {{"data", {{"dcgm-metrics.csv", "C"}}}};
  EXPECT_EQ(ChooseCounters("gpu/m", &both),
            (api::RemoteConfig{.origin = "ConfigMap gpu/m, key metrics", .text = "A"}));
  EXPECT_EQ(ChooseCounters("gpu/m", &one),
            (api::RemoteConfig{.origin = "ConfigMap gpu/m, key dcgm-metrics.csv", .text = "C"}));
}

TEST(CountersWatch, SayWhatIsMissing) {
  const json none = {{"data", {{"a", "A"}, {"b", "B"}}}}, empty = {{"data", {{"metrics", " \n"}}}},
             nothing = json::object();
  EXPECT_THAT(ChooseCounters("gpu/m", nullptr).problem,
              HasSubstr("there is no ConfigMap gpu/m: create it"));
  EXPECT_THAT(ChooseCounters("gpu/m", &none).problem,
              HasSubstr("ConfigMap gpu/m has no key \"metrics\""));
  EXPECT_THAT(ChooseCounters("gpu/m", &nothing).problem, HasSubstr("has no key \"metrics\""));
  EXPECT_THAT(ChooseCounters("gpu/m", &empty).problem, HasSubstr("key metrics is empty"));
}

class ClusterCountersTest : public testing::Test {
 protected:
  void Start(const std::string& where) {
    counters_ = std::make_unique<CountersWatch>(
        api_, where,
        CountersWatch::Callbacks{
            .reported = [this](const api::RemoteConfig& remote) { reported_.push_back(remote); },
            .problem =
                [this](protocol::kube::ReconcileLoop::Problem problem) { problem_ = problem; }});
    counters_->Start();
    executor_.RunUntilIdle();
  }

  base::ManualExecutor executor_;
  protocol::kube::FakeApi api_{executor_};
  std::vector<api::RemoteConfig> reported_;
  protocol::kube::ReconcileLoop::Problem problem_;
  std::unique_ptr<CountersWatch> counters_;
};

TEST_F(ClusterCountersTest, AreFollowed) {
  Start("gpu:metrics");
  ASSERT_THAT(reported_, SizeIs(1));
  EXPECT_THAT(reported_[0].problem, HasSubstr("there is no ConfigMap gpu/metrics"));
  api_.Put(kMetricsMap,
           {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"data", {{"metrics", "one"}}}});
  executor_.RunUntilIdle();
  api_.Merge(kMetricsMap, {{"data", {{"metrics", "two"}}}});
  executor_.RunUntilIdle();
  ASSERT_THAT(reported_, SizeIs(3));
  EXPECT_EQ(reported_[1].text, "one");
  EXPECT_EQ(reported_[2].text, "two");
  EXPECT_EQ(reported_[2].problem, "");
}

TEST_F(ClusterCountersTest, WithoutANameNoOneIsAsked) {
  Start("");
  EXPECT_EQ(api_.Requests(), 0u);
  EXPECT_THAT(reported_, IsEmpty());
}

TEST_F(ClusterCountersTest, SayWhichRightIsMissing) {
  api_.Forbid("", "/api/v1/namespaces/gpu/configmaps");
  Start("gpu:metrics");
  EXPECT_THAT(problem_.text, HasSubstr("configmaps"));
  ASSERT_THAT(reported_, SizeIs(1));
  EXPECT_THAT(reported_[0].problem, HasSubstr("configmaps"));
}

}  // namespace
}  // namespace penstock::adapter::cluster
