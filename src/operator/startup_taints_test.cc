#include "operator/startup_taints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/manual_executor.h"
#include "protocol/kube/fake/fake_api.h"

namespace penstock::cluster {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using protocol::kube::ApiCall;
using protocol::kube::FakeApi;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kKey[] = "penstock.io/accelerators-not-ready";

json Listed(const std::vector<std::string>& keys) {
  json list = json::array();
  for (const std::string& key : keys) list.push_back({{"key", key}, {"effect", "NoSchedule"}});
  return list;
}

class StartupTaintsTest : public testing::Test {
 protected:
  void Put(const std::string& node, const std::vector<std::string>& taints) {
    api_.Put("/api/v1/nodes/" + node, {{"kind", "Node"}, {"spec", {{"taints", Listed(taints)}}}});
  }
  void SetReady(std::set<std::string> nodes) {
    taints_.SetReady(std::move(nodes));
    executor_.Advance(1s);
  }
  json Taints(const std::string& node) {
    const json& found = *api_.Find("/api/v1/nodes/" + node);
    return found.contains("spec") && found["spec"].contains("taints") ? found["spec"]["taints"]
                                                                      : json::array();
  }
  std::size_t Calls(const std::string& method) {
    return static_cast<std::size_t>(std::ranges::count(api_.calls(), method, &ApiCall::method));
  }

  base::ManualExecutor executor_;
  FakeApi api_{executor_};
  int changes_ = 0;
  StartupTaints taints_{api_, [this] { ++changes_; }};
};

TEST_F(StartupTaintsTest, ATaintEndsWhenItsNodeIsReadyAndOthersStay) {
  taints_.Want({kKey});
  Put("n1", {"dedicated", kKey, "other"});
  Put("n2", {kKey});
  SetReady({});
  EXPECT_THAT(Taints("n1"), SizeIs(3));
  SetReady({"n1"});
  EXPECT_EQ(Taints("n1"), Listed({"dedicated", "other"}));
  EXPECT_THAT(Taints("n2"), SizeIs(1));
  SetReady({"n1", "n2"});
  EXPECT_THAT(Taints("n2"), IsEmpty());
  EXPECT_EQ(taints_.writes(), 2);
}

TEST_F(StartupTaintsTest, ANodeIsReadOnceForEachTimeItBecomesReady) {
  taints_.Want({kKey});
  Put("n1", {"dedicated"});
  for (int i = 0; i < 3; ++i) SetReady({"n1"});
  EXPECT_EQ(Calls("GET"), 1);
  SetReady({});
  SetReady({"n1"});
  EXPECT_EQ(Calls("GET"), 2);
  EXPECT_EQ(Calls("PATCH"), 0);
}

TEST_F(StartupTaintsTest, WithoutKeysNoNodeIsReadAndAKeyThatIsAddedCountsForAll) {
  Put("n1", {"mine"});
  taints_.Want({});
  SetReady({"n1"});
  EXPECT_THAT(api_.calls(), IsEmpty());
  taints_.Want({"mine"});
  executor_.Advance(1s);
  EXPECT_THAT(Taints("n1"), IsEmpty());
}

TEST_F(StartupTaintsTest, ANodeThatChangesMeanwhileKeepsTheTaintsOfOthers) {
  taints_.Want({kKey});
  Put("n1", {kKey});
  api_.SetLateAnswers(100ms);
  taints_.SetReady({"n1"});
  executor_.Advance(50ms);
  EXPECT_EQ(Calls("GET"), 1);
  Put("n1", {kKey, "unreachable"});  // after it was read
  executor_.Advance(5s);
  EXPECT_EQ(Taints("n1"), Listed({"unreachable"}));
}

TEST_F(StartupTaintsTest, ARefusalIsAProblemUntilItWorks) {
  taints_.Want({kKey});
  Put("n1", {kKey});
  api_.Fail({.status = 403, .times = -1, .method = "PATCH", .path = "/api/v1/nodes"});
  SetReady({"n1"});
  EXPECT_THAT(taints_.problems(), ElementsAre(HasSubstr("patch")));
  EXPECT_EQ(changes_, 1);
  api_.Heal();
  executor_.Advance(60s);
  EXPECT_THAT(taints_.problems(), IsEmpty());
  EXPECT_THAT(Taints("n1"), IsEmpty());
  EXPECT_EQ(changes_, 2);
}

TEST_F(StartupTaintsTest, ANodeThatIsDeletedIsForgotten) {
  taints_.Want({kKey});
  SetReady({"n1"});
  EXPECT_THAT(taints_.problems(), IsEmpty());
  EXPECT_EQ(Calls("GET"), 1);
}

}  // namespace
}  // namespace penstock::cluster
