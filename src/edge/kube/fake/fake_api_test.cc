// That the fake is as hard on its clients as a real API server.
#include "edge/kube/fake/fake_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace penstock::edge::kube {
namespace {

using base::Code;
using testing::ElementsAre;
using namespace std::chrono_literals;

const std::string kNode = "/api/v1/nodes/n1";

class FakeApiTest : public testing::Test {
 protected:
  base::Result<Answer> Do(Call call) {
    base::Result<Answer> answer = base::Error(Code::kUnknown, "not answered");
    api_.Do(std::move(call), [&](base::Result<Answer> its) { answer = std::move(its); });
    executor_.RunUntilIdle();
    return answer;
  }

  base::Result<Answer> Apply(const Json& fields, const std::string& manager, bool force = false, const std::string& path = kNode) {
    Json object = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", "n1"}}}};
    object.merge_patch(fields);
    return Do({.method = "PATCH",
               .path = path,
               .query = {{"fieldManager", manager}, {"force", force ? "true" : "false"}},
               .content_type = std::string(kApplyPatch),
               .body = object.dump()});
  }

  base::Result<Answer> Patch(const std::string& path, std::string_view type, const Json& patch) {
    return Do(
        {.method = "PATCH", .path = path, .query = {{"fieldManager", "me"}}, .content_type = std::string(type), .body = patch.dump()});
  }

  std::unique_ptr<Stream> Watch(std::map<std::string, std::string> query, const std::string& path = "/api/v1/nodes") {
    query["watch"] = "1";
    auto stream = api_.Open(
        {.path = path, .query = std::move(query)}, [this](std::string_view line) { lines_.push_back(Json::parse(line)); },
        [this](base::Status why) { ends_.push_back(why.ok() ? "ok" : std::string(base::Name(why.error().code()))); });
    executor_.RunUntilIdle();
    return stream;
  }

  std::vector<std::string> Types() const {
    std::vector<std::string> types;
    for (const Json& line : lines_) types.push_back(line["type"]);
    return types;
  }

  static Json Labels(const Json& labels) { return {{"metadata", {{"labels", labels}}}}; }

  base::ManualExecutor executor_;
  FakeApi api_{executor_};
  std::vector<Json> lines_;
  std::vector<std::string> ends_;
};

TEST_F(FakeApiTest, ApplyOwnsItsLabelsAndRemovesThoseItNoLongerNames) {
  api_.Put(kNode, Labels({{"theirs", "1"}}));
  ASSERT_TRUE(Apply(Labels({{"a.b/c", "1"}, {"d", "2"}}), "penstock").ok());
  EXPECT_THAT(api_.ManagersOf(kNode, "/metadata/labels/a.b~1c"), ElementsAre("penstock"));
  ASSERT_TRUE(Apply(Labels({{"d", "3"}}), "penstock").ok());
  EXPECT_EQ((*api_.Find(kNode))["metadata"]["labels"], Json({{"theirs", "1"}, {"d", "3"}}));
}

TEST_F(FakeApiTest, ApplyConflictsOverAnothersValueUnlessForced) {
  ASSERT_TRUE(Apply(Labels({{"x", "1"}}), "nfd").ok());
  EXPECT_TRUE(Apply(Labels({{"x", "1"}}), "penstock").ok()) << "the same value may have two owners";
  EXPECT_EQ(Apply(Labels({{"x", "2"}}), "penstock").error().code(), Code::kAborted);
  ASSERT_TRUE(Apply(Labels({{"x", "2"}}), "penstock", true).ok());
  EXPECT_THAT(api_.ManagersOf(kNode, "/metadata/labels/x"), ElementsAre("penstock"));
  ASSERT_TRUE(Apply(Labels(Json::object()), "nfd").ok());
  EXPECT_EQ((*api_.Find(kNode))["metadata"]["labels"]["x"], "2") << "what was taken from it is not its to remove";
}

TEST_F(FakeApiTest, ApplyThatChangesNothingWritesNothing) {
  ASSERT_TRUE(Apply(Labels({{"x", "1"}}), "penstock").ok());
  const std::string version = (*api_.Find(kNode))["metadata"]["resourceVersion"];
  ASSERT_TRUE(Apply(Labels({{"x", "1"}}), "penstock").ok());
  EXPECT_EQ((*api_.Find(kNode))["metadata"]["resourceVersion"], version);
  EXPECT_EQ(api_.Count("apply"), 2u);
}

TEST_F(FakeApiTest, ConditionsAreMergedAndOwnedByTheirType) {
  api_.Put(kNode, {{"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}}, "kubelet");
  const Json ours = {{"status", {{"conditions", {{{"type", "GPU"}, {"status", "True"}}}}}}};
  ASSERT_TRUE(Apply(ours, "penstock", false, kNode + "/status").ok());
  EXPECT_EQ((*api_.Find(kNode))["status"]["conditions"].size(), 2u);
  ASSERT_TRUE(
      Patch(kNode + "/status", kStrategicMergePatch, {{"status", {{"conditions", {{{"type", "GPU"}, {"$patch", "delete"}}}}}}}).ok());
  EXPECT_EQ((*api_.Find(kNode))["status"]["conditions"], Json::array({{{"type", "Ready"}, {"status", "True"}}}));
}

TEST_F(FakeApiTest, StatusIsWrittenOnlyByItsSubresource) {
  api_.Put(kNode, Labels({{"a", "1"}}));
  ASSERT_TRUE(Patch(kNode, kMergePatch, {{"status", {{"capacity", {{"x/gpu", "8"}}}}}}).ok());
  EXPECT_FALSE(api_.Find(kNode)->contains("status"));
  ASSERT_TRUE(
      Patch(kNode + "/status", kMergePatch, {{"status", {{"capacity", {{"x/gpu", "8"}}}}}, {"spec", {{"unschedulable", true}}}}).ok());
  EXPECT_EQ((*api_.Find(kNode))["status"]["capacity"]["x/gpu"], "8");
  EXPECT_FALSE(api_.Find(kNode)->contains("spec"));
  EXPECT_EQ(Patch("/apis/a.io/v1/things/x/status", kMergePatch, {}).error().code(), Code::kNotFound);
}

TEST_F(FakeApiTest, AnOldVersionIsAConflictAndASecondCreateToo) {
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/x/leases";
  const Json lease = {{"apiVersion", "coordination.k8s.io/v1"}, {"kind", "Lease"}, {"metadata", {{"name", "l"}}}};
  ASSERT_TRUE(Do({.method = "POST", .path = leases, .body = lease.dump()}).ok());
  EXPECT_EQ(Do({.method = "POST", .path = leases, .body = lease.dump()}).error().code(), Code::kAlreadyExists);
  Json mine = *api_.Find(leases + "/l");
  api_.Merge(leases + "/l", {{"spec", {{"holderIdentity", "other"}}}});
  mine["spec"]["holderIdentity"] = "me";
  EXPECT_EQ(Do({.method = "PUT", .path = leases + "/l", .body = mine.dump()}).error().code(), Code::kAborted);
}

TEST_F(FakeApiTest, WatchesGoOnFromAVersionAndSeeWhatTheirSelectorSees) {
  api_.Put(kNode, Labels({{"a", "1"}}));
  const std::string version = (*api_.Find(kNode))["metadata"]["resourceVersion"];
  api_.Put("/api/v1/nodes/n2", Labels({{"a", "1"}}));
  api_.Merge(kNode, Labels({{"a", "2"}}));
  const auto stream = Watch({{"resourceVersion", version}, {"fieldSelector", "metadata.name=n1"}, {"labelSelector", "a"}});
  EXPECT_THAT(Types(), ElementsAre("MODIFIED"));
  api_.Merge(kNode, Labels({{"a", nullptr}}));
  executor_.RunUntilIdle();
  EXPECT_THAT(Types(), ElementsAre("MODIFIED", "DELETED"));
}

TEST_F(FakeApiTest, AStreamingListEndsWithItsBookmark) {
  api_.Put(kNode, Labels({{"a", "1"}}));
  const auto stream = Watch({{"sendInitialEvents", "true"}, {"resourceVersionMatch", "NotOlderThan"}, {"allowWatchBookmarks", "true"}});
  ASSERT_THAT(Types(), ElementsAre("ADDED", "BOOKMARK"));
  EXPECT_EQ(lines_[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
  api_.Bookmark();
  executor_.RunUntilIdle();
  EXPECT_THAT(Types(), ElementsAre("ADDED", "BOOKMARK", "BOOKMARK"));
  EXPECT_GT(lines_[2]["object"]["metadata"]["resourceVersion"], lines_[1]["object"]["metadata"]["resourceVersion"]);
}

TEST_F(FakeApiTest, AForgottenHistoryExpiresWatchesAndContinueTokens) {
  for (const char* name : {"n1", "n2", "n3"}) api_.Put("/api/v1/nodes/" + std::string(name), {{"kind", "Node"}});
  const auto page_answer = Do({.path = "/api/v1/nodes", .query = {{"limit", "2"}}});
  ASSERT_TRUE(page_answer.ok());
  const Json page = Json::parse(page_answer->body);
  EXPECT_EQ(page["items"].size(), 2u);
  EXPECT_FALSE(page["items"][0].contains("kind"));
  api_.ForgetHistory();
  EXPECT_EQ(Do({.path = "/api/v1/nodes", .query = {{"limit", "2"}, {"continue", page["metadata"]["continue"]}}}).error().code(),
            Code::kOutOfRange);
  const auto stream = Watch({{"resourceVersion", page["metadata"]["resourceVersion"]}});
  EXPECT_THAT(Types(), ElementsAre("ERROR"));
  EXPECT_EQ(lines_[0]["object"]["code"], 410);
  EXPECT_THAT(ends_, ElementsAre("ok"));
}

TEST_F(FakeApiTest, FaultsHitWhatTheyNameAndAsOftenAsTheySay) {
  api_.Put(kNode, Labels({{"a", "1"}}));
  api_.FailNext(500, 2);
  EXPECT_EQ(Do({.path = kNode}).error().code(), Code::kUnavailable);
  EXPECT_EQ(Do({.path = kNode}).error().code(), Code::kUnavailable);
  EXPECT_TRUE(Do({.path = kNode}).ok());
  api_.Forbid("PATCH", kNode + "/status");
  EXPECT_TRUE(Apply(Labels({{"b", "1"}}), "me").ok());
  EXPECT_EQ(Apply({}, "me", false, kNode + "/status").error().code(), Code::kPermissionDenied);
  api_.Heal();
  api_.Fail({.status = 0, .method = "PATCH", .after_the_deed = true});
  EXPECT_EQ(Apply(Labels({{"b", "2"}}), "me").error().code(), Code::kUnavailable);
  EXPECT_EQ((*api_.Find(kNode))["metadata"]["labels"]["b"], "2");
}

TEST_F(FakeApiTest, AServerThatIsAwayBreaksStreamsAndASilentOneKeepsCallsToTheirDeadline) {
  const auto stream = Watch({});
  api_.SetUp(false);
  EXPECT_EQ(Do({.path = kNode}).error().code(), Code::kUnavailable);
  EXPECT_THAT(ends_, ElementsAre("UNAVAILABLE"));
  api_.SetUp(true);
  api_.SetSilent(true);
  base::Result<Answer> answer = Answer{};
  api_.Do({.path = kNode, .deadline = 3s}, [&](base::Result<Answer> its) { answer = std::move(its); });
  executor_.Advance(2900ms);
  EXPECT_TRUE(answer.ok());
  executor_.Advance(200ms);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kDeadlineExceeded);
}

}  // namespace
}  // namespace penstock::edge::kube
