// Tests the informer against a server that behaves in all the ways of real ones.
#include "protocol/kube/informer.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <nlohmann/json.hpp>

#include "base/testing/manual_executor.h"
#include "protocol/kube/fake/fake_api.h"
#include "protocol/kube/object_cache.h"

namespace penstock::protocol::kube {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using namespace std::chrono_literals;

const std::string kNodesPath = "/api/v1/nodes";
constexpr const char* kExpired =
    R"({"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old resource version"}})";

std::string PathOf(const std::string& name) { return kNodesPath + "/" + name; }

Json Node(const std::string& value = "1") {
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"labels", {{"a", value}}}}},
          {"status", {{"images", {"x"}}}}};
}

class InformerTest : public ::testing::Test {
 protected:
  InformerTest() {
    options_.resource = {"", "v1", "nodes"};
    options_.spread = 5s;
  }

  void Start() {
    informer_ = std::make_unique<Informer>(
        api_, options_,
        Informer::Handlers{
            [this](const Json& object) { Saw("+" + NameOf(object)); },
            [this](const std::string&, const std::string& name) { Saw("-" + name); },
            [this] { Saw("synced"); },
            [this](const base::Status& why) { Saw(why.ok() ? "well" : "trouble"), last_ = why; },
        });
    informer_->Start();
    Run();
  }

  virtual void Saw(const std::string& what) { seen_.push_back(what); }
  void Run(base::Duration time = 0s) { executor_.Advance(time); }
  std::vector<std::string> Take() { return std::exchange(seen_, {}); }
  static std::string NameOf(const Json& object) {
    return object["metadata"]["name"].get<std::string>() + "=" +
           object["metadata"]["labels"]["a"].get<std::string>();
  }
  std::string VersionOf(const std::string& name) const {
    return (*api_.Find(PathOf(name)))["metadata"]["resourceVersion"];
  }
  const ApiCall& LastCall() const { return api_.calls().back(); }

  base::ManualExecutor executor_;
  FakeApi api_{executor_};
  Informer::Options options_;
  std::vector<std::string> seen_;
  base::Status last_;
  std::unique_ptr<Informer> informer_;
};

TEST_F(InformerTest, BeginsWithAStreamingListInOneRequest) {
  api_.Put(PathOf("n1"), Node());
  Start();
  EXPECT_THAT(Take(), ElementsAre("+n1=1", "synced"));
  EXPECT_EQ(api_.Requests(), 1u);
  EXPECT_THAT(LastCall().query,
              AllOf(Contains(Pair("sendInitialEvents", "true")),
                    Contains(Pair("resourceVersionMatch", "NotOlderThan")),
                    Contains(Pair("allowWatchBookmarks", "true")), Contains(Pair("watch", "1"))));
  api_.Merge(PathOf("n1"), {{"metadata", {{"labels", {{"a", "2"}}}}}});
  api_.Remove(PathOf("n1"));
  Run();
  EXPECT_THAT(Take(), ElementsAre("+n1=2", "-n1"));
  EXPECT_EQ(informer_->size(), 0u);
  EXPECT_EQ(informer_->bytes(), 0u);
}

TEST_F(InformerTest, KeepsOneObjectWithoutWhatNoOneReads) {
  options_.field_selector = "metadata.name=n1";
  options_.without = {"/status/images", "/no/such"};
  api_.Put(PathOf("n1"), Node());
  api_.Put(PathOf("n2"), Node());
  Start();
  const auto node = informer_->Find("", "n1");
  ASSERT_NE(node, nullptr);
  EXPECT_FALSE((*node)["metadata"].contains("managedFields"));
  EXPECT_FALSE((*node)["status"].contains("images"));
  EXPECT_EQ(informer_->size(), 1u);
  EXPECT_LT(informer_->bytes(), 400u);
}

TEST_F(InformerTest, APackedObjectIsTheSameAndIsNoChangeWhereNothingKeptOfItIs) {
  options_.packed = true;
  options_.without = {"/status"};
  api_.Put(PathOf("n1"), Node());
  Start();
  EXPECT_EQ(informer_->Find("", "n0"), nullptr);
  Json expected = *api_.Find(PathOf("n1"));
  expected.erase("status");
  expected["metadata"].erase("managedFields");
  ASSERT_NE(informer_->Find("", "n1"), nullptr);
  EXPECT_EQ(*informer_->Find("", "n1"), expected);
  EXPECT_EQ(informer_->bytes(), expected.dump().size());
  Take();
  const Json without_version = {{"metadata", {{"resourceVersion", nullptr}}}};
  options_.reduce = [&without_version](Json node) {
    node.merge_patch(without_version);
    return node;
  };
  Start();
  Take();
  api_.Merge(PathOf("n1"), {{"status", {{"images", "other ones"}}}});
  Run();
  EXPECT_THAT(Take(), IsEmpty());
  api_.Merge(PathOf("n1"), {{"metadata", {{"labels", {{"a", "2"}}}}}});
  Run();
  EXPECT_THAT(Take(), ElementsAre("+n1=2"));
}

class OldServer : public InformerTest, public ::testing::WithParamInterface<StreamingLists> {};

TEST_P(OldServer, IsAskedForPagesAndNeverAgainForAStream) {
  api_.SetStreamingLists(GetParam());
  for (int i = 0; i < 1100; ++i) api_.Put(PathOf("n" + std::to_string(i)), Node());
  Start();
  EXPECT_EQ(std::ranges::count(seen_, "synced"), 1);
  EXPECT_THAT(seen_, Not(Contains("trouble")));
  EXPECT_EQ(informer_->size(), 1100u);
  EXPECT_EQ(api_.Count("list"), 1u) << "the API server's cache does not paginate";
  EXPECT_EQ((*informer_->Find("", "n7"))["kind"], "Node");
  const auto first = std::ranges::find_if(
      api_.calls(), [](const ApiCall& call) { return call.query.contains("limit"); });
  EXPECT_EQ(first->query.at("resourceVersion"), "0")
      << "the first list may come from the server's cache";
  api_.ForgetCalls();
  api_.ForgetHistory();
  api_.Disconnect();
  Run(20s);
  EXPECT_EQ(api_.Count("list"), 3u);
  const auto again = std::ranges::find_if(
      api_.calls(), [](const ApiCall& call) { return call.query.contains("limit"); });
  EXPECT_FALSE(again->query.contains("resourceVersion")) << "the list never goes back in time";
  for (const ApiCall& call : api_.calls()) EXPECT_FALSE(call.query.contains("sendInitialEvents"));
  EXPECT_EQ(std::ranges::count(seen_, "synced"), 1);
}

INSTANTIATE_TEST_SUITE_P(, OldServer,
                         ::testing::Values(StreamingLists::kInvalid, StreamingLists::kErrorEvent));

TEST_F(InformerTest, LeavesOutWhatIsOlderThanAnAnswer) {
  api_.Put(PathOf("n1"), Node());
  Start();
  Take();
  api_.SetLateWatches(1s);
  api_.Put(PathOf("n1"), Node("2"));
  const Json second = *api_.Find(PathOf("n1"));
  api_.Put(PathOf("n1"), Node("3"));
  const Json third = *api_.Find(PathOf("n1"));
  EXPECT_TRUE(informer_->Learn(third));
  EXPECT_THAT(Take(), ElementsAre("+n1=3"));
  EXPECT_FALSE(informer_->Learn(second)) << "a newer one is known";
  api_.Put(PathOf("n1"), Node("4"));
  Run(2s);
  EXPECT_THAT(Take(), ElementsAre("+n1=4"));
  EXPECT_FALSE(informer_->Learn(third));
  EXPECT_TRUE(informer_->Learn(*api_.Find(PathOf("n1")))) << "the same as the watch has shown";
  EXPECT_THAT(Take(), IsEmpty());
}

TEST_F(InformerTest, AnAnswerAboutAnObjectThatIsDeletedBringsNothingBack) {
  api_.Put(PathOf("n1"), Node());
  Start();
  const Json first = *api_.Find(PathOf("n1"));
  api_.Remove(PathOf("n1"));
  Run();
  Take();
  EXPECT_FALSE(informer_->Learn(first));
  EXPECT_EQ(informer_->Find("", "n1"), nullptr);

  api_.Put(PathOf("n1"), Node("2"));
  Run();
  Take();
  api_.SetLateWatches(1s);
  api_.Remove(PathOf("n1"));
  api_.Put(PathOf("n1"), Node("3"));
  EXPECT_TRUE(informer_->Learn(*api_.Find(PathOf("n1"))));
  Run(2s);
  EXPECT_THAT(Take(), ElementsAre("+n1=3")) << "not what was deleted before";
  api_.Remove(PathOf("n1"));
  Run(2s);
  EXPECT_THAT(Take(), ElementsAre("-n1"));
}

TEST(ObjectCache, ForgetsWhatItLearnedFromAServerThatIsListedAgain) {
  ObjectCache cache(10, 1000);
  const auto meta = [](const char* version) { return ObjectMeta{"Node", "", "n1", version}; };
  const auto node = [](const char* value) { return std::make_shared<const Json>(Node(value)); };
  using enum ObjectCache::Kept;
  EXPECT_EQ(cache.Put(meta("9"), node("1")), kChanged);
  EXPECT_EQ(cache.Learn(meta("12"), node("2")), kChanged);
  EXPECT_EQ(cache.Put(meta("10"), node("3")), kSame) << "10 is more than 9, and less than 12";
  EXPECT_EQ(cache.Learn(meta("12"), node("2b")), kChanged) << "a watch may have shown less of it";
  EXPECT_EQ(cache.Learn(meta("12"), node("2b")), kSame);
  cache.BeginList();
  EXPECT_EQ(cache.Put(meta("5"), node("4")), kChanged) << "it came back with an older state";
  EXPECT_EQ(cache.Learn(meta("x"), node("5")), kChanged) << "which is newer is not known";
  EXPECT_EQ(cache.Put(meta("y"), node("6")), kChanged);
}

/// Of a Node, what the operator keeps of it.
TEST(ObjectCache, ATextTakesLessThanHalfOfWhatAnObjectTakes) {
  const auto used = [] { return ::mallinfo2().uordblks; };
  const auto fill = [](ObjectCache& cache) {
    for (int i = 0; i < 200; ++i) {
      const std::string name = "node-" + std::to_string(i);
      Json labels = Json::object();
      for (int k = 0; k < 12; ++k)
        labels["nvidia.com/gpu.deploy.service-" + std::to_string(k)] = "true";
      cache.Put({"Node", "", name, "1"},
                std::make_shared<const Json>(
                    Json{{"metadata", {{"name", name}, {"uid", name}, {"labels", labels}}}}));
    }
  };
  ObjectCache objects(1000, 1u << 20), texts(1000, 1u << 20, true);
  const auto before = used();
  fill(objects);
  const auto with_objects = used();
  fill(texts);
  const auto with_texts = used();
  if (with_objects == before) GTEST_SKIP() << "this allocator does not count";
  EXPECT_LT(with_texts - with_objects, (with_objects - before) / 2);
  EXPECT_EQ(texts.bytes(), objects.bytes());
  EXPECT_EQ(*texts.Find({"", "node-7"}), *objects.Find({"", "node-7"}));
}

TEST_F(InformerTest, AStreamingListThatNeverEndsIsAskedForInPages) {
  api_.SetStreamingLists(StreamingLists::kIgnored);
  api_.Put(PathOf("n1"), Node());
  Start();
  EXPECT_FALSE(informer_->synced());
  Run(2min);
  EXPECT_TRUE(informer_->synced());
  EXPECT_EQ(seen_.back(), "well");
}

TEST_F(InformerTest, GoesOnFromTheLastBookmarkAfterTheServerRestarts) {
  api_.Put(PathOf("n1"), Node());
  Start();
  api_.Bookmark();
  Run();
  Take();
  api_.SetUp(false);
  Run(1s);
  api_.Put(PathOf("n2"), Node());
  api_.SetUp(true);
  api_.ForgetCalls();
  Run(60s);
  EXPECT_THAT(Take(), ElementsAre("trouble", "+n2=1", "well"));
  EXPECT_EQ(api_.Count("list"), 0u);
  EXPECT_EQ(api_.Count("watch"), 1u);
  EXPECT_EQ(LastCall().query.at("resourceVersion"), std::to_string(std::stoi(VersionOf("n2")) - 1))
      << "the version of the bookmark";
}

class Fleet : public InformerTest {
 protected:
  static constexpr std::size_t kAgents = 400;

  Fleet() {
    for (std::size_t i = 0; i < kAgents; ++i) {
      fleet_.push_back(std::make_unique<Informer>(api_, options_, Informer::Handlers{}));
      fleet_.back()->Start();
    }
    Run(1s);
  }

  // The most requests in a tenth of a second; evenly spread over 5 s they would be 8.
  std::size_t MostUntilBack() {
    std::size_t most = 0;
    for (int tenth = 0; tenth < 60; ++tenth) {
      api_.ForgetCalls();
      Run(100ms);
      most = std::max<std::size_t>(most, api_.Requests());
    }
    EXPECT_EQ(api_.OpenStreams(), kAgents);
    return most;
  }

  std::vector<std::unique_ptr<Informer>> fleet_;
};

TEST_F(Fleet, ComesBackSpreadOverTime) {
  ASSERT_EQ(api_.OpenStreams(), kAgents);
  api_.Disconnect();
  EXPECT_LT(MostUntilBack(), 30u);
}

TEST_F(Fleet, RelistsSpreadOverTime) {
  api_.SendLine(kNodesPath, kExpired);
  EXPECT_LT(MostUntilBack(), 30u);
}

TEST_F(InformerTest, WaitsLongerTheLongerAServerIsAway) {
  Start();
  api_.Fail({.status = 503, .times = -1});
  api_.Disconnect();
  Run(10min);
  api_.ForgetCalls();
  Run(10min);
  EXPECT_GE(api_.Requests(), 50u);
  EXPECT_LE(api_.Requests(), 120u) << "every 7.5 s on average";
}

TEST_F(InformerTest, AnExpiredVersionIsRelistedWithinTheSpreadAndOnlyDifferencesAreReported) {
  for (const char* name : {"n1", "n2", "n3"}) api_.Put(PathOf(name), Node());
  Start();
  Take();
  api_.Disconnect();
  api_.Merge(PathOf("n2"), {{"metadata", {{"labels", {{"a", "2"}}}}}});
  api_.Remove(PathOf("n3"));
  Run();
  api_.ForgetHistory();
  Run(11s);
  EXPECT_THAT(Take(), ElementsAre("trouble", "+n2=2", "-n3", "well"));
  EXPECT_EQ(informer_->size(), 2u);
}

TEST_F(InformerTest, AServerThatSaysOfEveryWatchThatItExpiredIsAskedEverMoreSeldom) {
  options_.spread = 1s;
  api_.SetStreamingLists(StreamingLists::kInvalid);
  api_.Put(PathOf("n1"), Node());
  Start();
  api_.Fail({.status = 410, .times = -1, .method = "WATCH", .reason = "Expired"});
  api_.Disconnect();
  Run(1min);
  api_.ForgetCalls();
  Run(10min);
  EXPECT_GE(api_.Count("list"), 20u);
  EXPECT_LE(api_.Count("list"), 130u) << "every 7.5 s on average";
  api_.Heal();
  Run(1min);
  EXPECT_EQ(api_.OpenStreams(), 1u);
}

TEST_F(InformerTest, AContinueTokenThatExpiresBeginsTheListAgain) {
  api_.SetStreamingLists(StreamingLists::kInvalid);
  for (int i = 0; i < 600; ++i) api_.Put(PathOf("n" + std::to_string(i)), Node());
  Start();
  // Its version is forgotten: it now needs the newest list, which comes in pages.
  api_.ForgetCalls();
  api_.SetDelay(100ms);
  api_.ForgetHistory();
  api_.Disconnect();
  for (int step = 0; step < 6000 && api_.Count("list") == 0; ++step) Run(10ms);
  ASSERT_EQ(api_.Count("list"), 1u) << "the first page has arrived, the second is requested";
  api_.ForgetHistory();
  Run(30s);
  EXPECT_EQ(informer_->size(), 600u);
  EXPECT_EQ(api_.Count("list"), 4u);
  EXPECT_EQ(seen_.back(), "well");
}

TEST_F(InformerTest, AWatchIsRenewedInPeaceWithoutTrouble) {
  options_.watch_for = 60s;
  api_.Put(PathOf("n1"), Node());
  Start();
  Take();
  const auto asked = std::stoi(LastCall().query.at("timeoutSeconds"));
  EXPECT_GE(asked, 60);
  EXPECT_LE(asked, 120);
  Run(std::chrono::seconds(asked) + 1ms);
  EXPECT_EQ(api_.Count("watch"), 2u);
  EXPECT_EQ(LastCall().query.at("resourceVersion"), VersionOf("n1"));
  Run(10min);
  EXPECT_THAT(Take(), IsEmpty());
}

TEST_F(InformerTest, AServerThatEndsEveryStreamAtOnceIsNotAskedInALoop) {
  Start();
  for (int i = 0; i < 1200; ++i) {
    api_.EndStreams();
    Run(100ms);
  }
  EXPECT_LT(api_.Requests(), 60u);
}

TEST_F(InformerTest, AWatchThatNeverEndsIsRenewedByUs) {
  options_.watch_for = 60s;
  api_.Put(PathOf("n1"), Node());
  Start();
  api_.SetSilent(true);
  Run(4min);
  EXPECT_THAT(seen_, Contains("trouble"));
  api_.SetSilent(false);
  api_.Put(PathOf("n2"), Node());
  Run(4min);
  EXPECT_THAT(seen_, Contains("+n2=1"));
}

TEST_F(InformerTest, ReportsAMissingRightOnceAndRecovers) {
  api_.Put(PathOf("n1"), Node());
  api_.Forbid("", kNodesPath);
  Start();
  Run(2min);
  EXPECT_THAT(Take(), ElementsAre("trouble"));
  EXPECT_EQ(last_.error().code(), Code::kPermissionDenied);
  api_.Heal();
  Run(1min);
  EXPECT_THAT(Take(), ElementsAre("+n1=1", "synced", "well"));
}

TEST_F(InformerTest, AServerThatDoesNotKnowItsRolesYetIsAskedAgainSoon) {
  Start();
  api_.Disconnect();
  api_.Fail({.status = 403, .times = -1});
  Run(3s);
  api_.Heal();
  Run(15s);
  EXPECT_EQ(api_.OpenStreams(), 1u);
}

TEST_F(InformerTest, AServerThatRefusesIsAskedSeldom) {
  api_.Forbid("", kNodesPath);
  Start();
  Run(20min);
  EXPECT_LE(api_.Requests(), 42u);
}

TEST_F(InformerTest, MoreThanItsBoundsAreReportedAndThoseKnownStay) {
  options_.most_objects = 2;
  for (const char* name : {"n1", "n2", "n3"}) api_.Put(PathOf(name), Node());
  Start();
  EXPECT_THAT(Take(), ElementsAre("+n1=1", "+n2=1", "trouble", "synced"));
  EXPECT_THAT(last_.error().message(), HasSubstr("more nodes than the cache holds"));
  api_.Merge(PathOf("n1"), {{"metadata", {{"labels", {{"a", "2"}}}}}});
  Run();
  EXPECT_THAT(Take(), ElementsAre("+n1=2"));
  api_.Remove(PathOf("n1"));
  api_.SendLine(kNodesPath, kExpired);
  Run(10s);
  EXPECT_THAT(Take(), ElementsAre("-n1", "+n3=1", "well"));
}

TEST_F(InformerTest, BytesAreBoundedToo) {
  options_.most_bytes = 2000;
  api_.Put(PathOf("n1"), Node());
  Start();
  Take();
  Json large = Node("2");
  large["metadata"]["annotations"]["x"] = std::string(1800, 'x');
  api_.Put(PathOf("n1"), large);
  Run();
  EXPECT_THAT(seen_, Contains("trouble"));
  EXPECT_EQ((*informer_->Find("", "n1"))["metadata"]["labels"]["a"], "1");
}

class BadLine : public InformerTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(BadLine, IsTroubleAndTheWatchGoesOn) {
  api_.Put(PathOf("n1"), Node());
  Start();
  Run(20s);
  Take();
  api_.SendLine(kNodesPath, GetParam());
  Run();
  EXPECT_THAT(Take(), ElementsAre("trouble"));
  EXPECT_EQ(api_.OpenStreams(), 0u);
  api_.Put(PathOf("n2"), Node());
  Run(30s);
  EXPECT_THAT(Take(), ElementsAre("+n2=1", "well"));
}

INSTANTIATE_TEST_SUITE_P(
    , BadLine,
    ::testing::Values(
        "<html>", "[]", "{}", "{\"type\":\"ADDED\"}",
        "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Node\"}}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":7,\"resourceVersion\":\"9\"}}}",
        "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"n1\","
        "\"resourceVersion\":\"9\"}}}",
        "{\"type\":\"SPUN\",\"object\":{\"metadata\":{}}}", "{\"type\":\"BOOKMARK\",\"object\":{}}",
        "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Node\",\"metadata\":{\"na"));

TEST_F(InformerTest, AnErrorThatIsNotExpiryRelistsWithPatience) {
  api_.Put(PathOf("n1"), Node());
  Start();
  Run(20s);
  api_.SendLine(
      kNodesPath,
      R"({"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd has lost it"}})");
  Run(20s);
  EXPECT_EQ(LastCall().query.at("sendInitialEvents"), "true");
  EXPECT_EQ(seen_.back(), "well");
}

TEST_F(InformerTest, AnswersThatAreNoListAreTrouble) {
  api_.SetStreamingLists(StreamingLists::kInvalid);
  api_.Put(PathOf("x/y"), Node());
  options_.resource.plural = "nodes/x";  // answered with a single object
  Start();
  EXPECT_EQ(seen_, std::vector<std::string>{"trouble"});
  EXPECT_EQ(informer_->size(), 0u);
}

class Leaver : public InformerTest {
 protected:
  void Saw(const std::string& what) override {
    InformerTest::Saw(what);
    if (what == leave_at_) informer_.reset();
  }
  std::string leave_at_;
};

TEST_F(Leaver, MayBeDestroyedByItsOwnHandlers) {
  for (const char* at : {"+n1=1", "-n1", "synced", "trouble"}) {
    leave_at_ = at;
    Take();
    api_.Put(PathOf("n1"), Node());
    api_.Put(PathOf("n2"), Node());
    Start();
    Run();
    if (informer_) api_.Remove(PathOf("n1"));
    Run();
    if (informer_) api_.SetUp(false);
    Run(10s);
    api_.SetUp(true);
    EXPECT_EQ(informer_, nullptr) << at;
    EXPECT_EQ(seen_.back(), at);
    Run(1min);
    EXPECT_EQ(api_.OpenStreams(), 0u);
  }
}

}  // namespace
}  // namespace penstock::protocol::kube
