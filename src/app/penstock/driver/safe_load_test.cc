#include "app/penstock/driver/safe_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace penstock::app {
namespace {

using base::Code;
using protocol::kube::ApiCall;
using protocol::kube::ApiResponse;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kAnnotation[] = "nvidia.com/gpu-driver-upgrade.driver-wait-for-safe-load";

/// A server with one Node, whose annotation someone removes after some reads.
class SafeLoadTest : public testing::Test {
 protected:
  base::Status Await() {
    return AwaitSafeLoad([this](const ApiCall& call) { return Answer(call); }, "n1",
                         [this](const std::string& text) { said_.push_back(text); },
                         [this](base::Duration) { ++slept_; });
  }
  base::Result<ApiResponse> Answer(const ApiCall& call) {
    calls_.push_back(call.method + " " + call.path);
    if (failures_ > 0) {
      --failures_;
      return base::Error(failure_, "no");
    }
    if (call.method == "PATCH")
      node_.merge_patch(Json::parse(call.body));
    else if (--reads_ == 0)
      node_["metadata"]["annotations"].erase(kAnnotation);
    return ApiResponse{200, node_.dump()};
  }

  Json node_ = {{"metadata", {{"name", "n1"}, {"annotations", {{"other", "x"}}}}}};
  int reads_ = 3, slept_ = 0, failures_ = 0;
  Code failure_ = Code::kUnavailable;
  std::vector<std::string> calls_, said_;
};

TEST_F(SafeLoadTest, WaitsUntilTheAnnotationIsRemoved) {
  ASSERT_TRUE(Await().ok());
  EXPECT_THAT(calls_, ElementsAre("PATCH /api/v1/nodes/n1", "GET /api/v1/nodes/n1",
                                  "GET /api/v1/nodes/n1", "GET /api/v1/nodes/n1"));
  EXPECT_EQ(slept_, 2);
  EXPECT_EQ(node_["metadata"]["annotations"], (Json{{"other", "x"}}));
}

TEST_F(SafeLoadTest, OutlastsAServerThatDoesNotAnswer) {
  failures_ = 4;
  ASSERT_TRUE(Await().ok());
  EXPECT_THAT(said_, Contains(HasSubstr("waiting for the API server")));
}

TEST_F(SafeLoadTest, EndsWhereTheNodeMayNotBeWritten) {
  failures_ = 1;
  failure_ = Code::kPermissionDenied;
  const auto done = Await();
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.error().message(), HasSubstr("annotate Node n1"));
  EXPECT_EQ(slept_, 0);
}

}  // namespace
}  // namespace penstock::app
