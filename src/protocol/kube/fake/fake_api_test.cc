// Tests what only the fake has: faults, and writes of other clients. tests/contract checks that it
// answers as a real server does.
#include "protocol/kube/fake/fake_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/manual_executor.h"

namespace penstock::protocol::kube {
namespace {

using testing::ElementsAre;
using namespace std::chrono_literals;

const std::string kNode = "/api/v1/nodes/n1";

class FakeApiTest : public testing::Test {
 protected:
  base::Result<ApiResponse> Do(ApiCall call) {
    base::Result<ApiResponse> answer = base::Error(Code::kUnknown, "not answered");
    api_.Do(std::move(call), [&](base::Result<ApiResponse> its) { answer = std::move(its); });
    executor_.RunUntilIdle();
    return answer;
  }

  base::Result<ApiResponse> ApplyLabels(const Json& labels) {
    const Json object = {
        {"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", "n1"}, {"labels", labels}}}};
    return Do(Apply({"", "v1", "nodes"}, "", object, "me"));
  }
  base::Result<ApiResponse> PatchStatus() {
    return Do(Patch({"", "v1", "nodes"}, "", "n1", kStrategicMergePatch,
                    {{"status", Json::object()}}, "me", "status"));
  }

  std::unique_ptr<WatchStream> Watch() {
    auto stream = api_.Open(
        {.path = "/api/v1/nodes", .query = {{"watch", "1"}}}, [](std::string_view) {},
        [this](base::Status why) {
          ends_.push_back(why.ok() ? "ok" : std::string(base::Name(why.error().code())));
        });
    executor_.RunUntilIdle();
    return stream;
  }

  base::ManualExecutor executor_;
  FakeApi api_{executor_};
  std::vector<std::string> ends_;
};

TEST_F(FakeApiTest, FaultsHitWhatTheyNameAndAsOftenAsTheySay) {
  api_.Put(kNode, {{"metadata", {{"labels", {{"a", "1"}}}}}});
  api_.FailNext(500, 2);
  EXPECT_EQ(Do({.path = kNode}).error().code(), Code::kUnavailable);
  EXPECT_EQ(Do({.path = kNode}).error().code(), Code::kUnavailable);
  EXPECT_TRUE(Do({.path = kNode}).ok());
  api_.Forbid("PATCH", kNode + "/status");
  EXPECT_TRUE(ApplyLabels({{"b", "1"}}).ok());
  EXPECT_EQ(PatchStatus().error().code(), Code::kPermissionDenied);
  api_.Heal();
  api_.Fail({.status = 0, .method = "PATCH", .after_the_deed = true});
  EXPECT_EQ(ApplyLabels({{"b", "2"}}).error().code(), Code::kUnavailable);
  EXPECT_EQ((*api_.Find(kNode))["metadata"]["labels"]["b"], "2");
}

TEST_F(FakeApiTest, AServerThatIsAwayBreaksStreamsAndASilentOneKeepsCallsToTheirDeadline) {
  const auto stream = Watch();
  api_.SetUp(false);
  EXPECT_EQ(Do({.path = kNode}).error().code(), Code::kUnavailable);
  EXPECT_THAT(ends_, ElementsAre("UNAVAILABLE"));
  api_.SetUp(true);
  api_.SetSilent(true);
  base::Result<ApiResponse> answer = ApiResponse{};
  api_.Do({.path = kNode, .deadline = 3s},
          [&](base::Result<ApiResponse> its) { answer = std::move(its); });
  executor_.Advance(2900ms);
  EXPECT_TRUE(answer.ok());
  executor_.Advance(200ms);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kDeadlineExceeded);
}

}  // namespace
}  // namespace penstock::protocol::kube
