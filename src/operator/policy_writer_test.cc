// Tests what is remembered of policies that were written, against a fake API server in this
// process.
#include "operator/policy_writer.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/manual_executor.h"
#include "protocol/kube/fake/fake_api.h"

namespace penstock::cluster {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr char kPath[] = "/apis/nvidia.com/v1/clusterpolicies/";

class PolicyWriterTest : public testing::Test {
 protected:
  std::string Put(const std::string& name) {
    api_.Put(kPath + name, {{"apiVersion", "nvidia.com/v1"}, {"kind", "ClusterPolicy"}});
    const PolicyObject policy{&api::compat::PolicyKinds().front(), *api_.Find(kPath + name)};
    const std::string key = KeyOf(policy);
    policies_[key] = policy;
    writer_.Soon(key);
    executor_.Advance(2s);
    return key;
  }
  json StateOf(const std::string& name) {
    return api_.Find(kPath + name)->value("/status/state"_json_pointer, json());
  }

  base::ManualExecutor executor_;
  protocol::kube::FakeApi api_{executor_};
  std::map<std::string, PolicyObject> policies_;
  PolicyWriter writer_{api_,
                       "pod-1",
                       {.holds = [](const auto&) { return false; },
                        .find =
                            [this](const std::string& key) {
                              const auto found = policies_.find(key);
                              return found == policies_.end() ? nullptr : &found->second;
                            },
                        .status =
                            [](const auto&, const auto&, const auto&) {
                              return json{{"state", "notReady"}};
                            },
                        .state =
                            [](const auto&, const auto&) {
                              return PolicyState{"notReady", "Starting", "x"};
                            },
                        .left = [](const auto&) { return std::vector<std::string>(); },
                        .taken_back = [] { return TakenBackOfNodes{}; },
                        .changed = [] {}}};
};

TEST_F(PolicyWriterTest, NothingStaysOfPoliciesThatAreGone) {
  const std::string kept = Put("kept");
  for (int i = 0; i < 20; ++i) {
    const std::string key = Put("p" + std::to_string(i));
    EXPECT_EQ(StateOf("p" + std::to_string(i)), "notReady");
    EXPECT_EQ(writer_.remembered(), 2u);
    policies_.erase(key);
    writer_.ForgetOthers({kept});
    EXPECT_EQ(writer_.remembered(), 1u);
  }
  const auto writes = writer_.writes();
  policies_[kept].object = *api_.Find(std::string(kPath) + "kept");
  writer_.Soon(kept);
  executor_.Advance(10s);
  EXPECT_EQ(writer_.writes(), writes) << "what stays is remembered";
}

}  // namespace
}  // namespace penstock::cluster
