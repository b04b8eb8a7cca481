// Tests the Events that the API server has afterwards.
#include "protocol/kube/events.h"

#include <algorithm>
#include <functional>
#include <future>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/manual_executor.h"
#include "os/loop.h"
#include "protocol/kube/fake/fake_api.h"

namespace penstock::protocol::kube {
namespace {
using ::testing::MatchesRegex;
using namespace std::chrono_literals;

const ObjectReference kNode{"v1", "Node", "", "n1", ""};

class EventsTest : public ::testing::Test {
 protected:
  std::vector<Json> Events(const std::string& path = "/api/v1/namespaces/default/events") {
    executor_.Advance(0s);
    std::vector<Json> events;
    api_.Do({.path = path}, [&](const base::Result<ApiResponse>& answer) {
      const Json list = Json::parse(answer->body);
      for (const Json& event : list["items"]) events.push_back(event);
    });
    executor_.Advance(0s);
    return events;
  }

  std::size_t CountOf(const std::string& type) {
    return static_cast<std::size_t>(std::ranges::count(
        Events(), type, [](const Json& event) { return event["type"].get<std::string>(); }));
  }

  static ObjectReference NodeNamed(int number) {
    return {"v1", "Node", "", "node-" + std::to_string(number), ""};
  }

  base::ManualExecutor executor_;
  FakeApi api_{executor_};
  EventRecorder recorder_{api_, "penstock", "n1"};
};

TEST_F(EventsTest, AnEventAboutANodeIsFoundByKubectlDescribe) {
  recorder_.Warning(kNode, "DeviceUnhealthy", "GPU 0: XID 79");
  const auto events = Events();
  ASSERT_EQ(events.size(), 1u);
  const Json& event = events[0];
  EXPECT_THAT(event["metadata"]["name"].get<std::string>(), MatchesRegex("n1\\.[0-9a-f]+"));
  EXPECT_EQ(event["involvedObject"],
            Json({{"apiVersion", "v1"}, {"kind", "Node"}, {"name", "n1"}, {"uid", "n1"}}));
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["count"], 1);
  EXPECT_EQ(event["source"], Json({{"component", "penstock"}, {"host", "n1"}}));
  EXPECT_EQ(event["firstTimestamp"], "2023-11-14T22:13:20Z");
}

TEST_F(EventsTest, AnEventOfANamespacedObjectLiesBesideIt) {
  recorder_.Normal({"v1", "Pod", "x", "p", "some-uid"}, "R", "m");
  const auto events = Events("/api/v1/namespaces/x/events");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["involvedObject"]["uid"], "some-uid");
  EXPECT_EQ(events[0]["involvedObject"]["namespace"], "x");
}

TEST_F(EventsTest, RepeatsAreCountedInTheSameEvent) {
  recorder_.Normal(kNode, "R", "m");
  Events();
  executor_.Advance(5s);
  recorder_.Normal(kNode, "R", "m");
  recorder_.Normal(kNode, "Other", "m");
  const auto events = Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["count"], 2);
  EXPECT_EQ(events[0]["firstTimestamp"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(events[0]["lastTimestamp"], "2023-11-14T22:13:25Z");
  EXPECT_EQ(api_.Count("patch"), 1u);
}

TEST_F(EventsTest, MoreThanTenSimilarOnesBecomeOneThatSaysSo) {
  for (int i = 0; i < 15; ++i) recorder_.Warning(kNode, "R", "message " + std::to_string(i));
  const auto events = Events();
  ASSERT_EQ(events.size(), 11u);
  EXPECT_EQ(events[10]["count"], 5);
  EXPECT_EQ(events[10]["message"], "(combined from similar events): message 14");
  executor_.Advance(11min);
  recorder_.Warning(kNode, "R", "message 99");
  EXPECT_EQ(Events().back()["message"], "message 99")
      << "events count as similar for ten minutes only";
}

TEST_F(EventsTest, AfterABurstThereIsAWriteInTwoSeconds) {
  for (int i = 0; i < 40; ++i) recorder_.Warning(kNode, "R" + std::to_string(i), "m");
  Events();
  EXPECT_EQ(api_.Writes(), 25u);
  executor_.Advance(10s);
  EXPECT_EQ(api_.Writes(), 30u);
  for (int i = 0; i < 1000; ++i) recorder_.Warning(kNode, "R0", "m");
  executor_.Advance(1min);
  EXPECT_EQ(api_.Writes(), 41u);
  EXPECT_EQ(Events()[0]["count"], 1001);
}

TEST_F(EventsTest, WarningsGoFirstAndAllOfThemAreWritten) {
  for (int i = 0; i < 1000; ++i) recorder_.Normal(NodeNamed(i), "R", "begins");
  executor_.Advance(10s);
  for (int i = 0; i < 200; ++i) recorder_.Warning(NodeNamed(i), "R", "failed");
  executor_.Advance(10s);
  EXPECT_GE(CountOf("Warning"), 10u) << "they wait behind what is normal";
  executor_.Advance(5min);
  EXPECT_EQ(CountOf("Warning"), 200u) << "none is too late while others are written";
  EXPECT_LE(CountOf("Normal"), 60u + 1u) << "what had no turn within a minute is no news";
}

TEST_F(EventsTest, AFloodAboutOneObjectLeavesTheOthersTheirTurn) {
  for (int second = 0; second < 120; ++second) {
    for (int i = 0; i < 100; ++i) recorder_.Warning(kNode, "R" + std::to_string(i), "m");
    executor_.Advance(1s);
  }
  recorder_.Warning(NodeNamed(2), "R", "also");
  recorder_.Normal(NodeNamed(3), "R", "also");
  executor_.Advance(4s);
  std::vector<std::string> about;
  for (const Json& event : Events()) about.push_back(event["involvedObject"]["name"]);
  EXPECT_THAT(about, ::testing::IsSupersetOf({"node-2", "node-3"}));
  api_.ForgetCalls();
  executor_.Advance(20s);
  EXPECT_EQ(api_.Writes(), 10u) << "about the one, one in two seconds";
}

TEST_F(EventsTest, ARecorderForAWholeClusterWritesFaster) {
  EventRecorder fast(api_, "penstock", "n1", "default", {.burst = 100, .spacing = 100ms});
  for (int i = 0; i < 1000; ++i) fast.Warning(NodeNamed(i), "R", "m");
  executor_.Advance(0s);
  EXPECT_EQ(api_.Writes(), 100u);
  executor_.Advance(10s);
  EXPECT_EQ(api_.Writes(), 200u);
  executor_.Advance(80s);
  EXPECT_EQ(CountOf("Warning"), 1000u);
}

TEST_F(EventsTest, WhatWaitsIsBoundedAndWarningsHaveRoom) {
  EventRecorder fast(api_, "penstock", "n1", "default", {.burst = 1, .spacing = 100ms});
  for (int i = 0; i < 3000; ++i) fast.Normal(NodeNamed(i), "R", "m");
  for (int i = 0; i < 3000; ++i) fast.Warning(NodeNamed(i), "R", "m");
  executor_.Advance(5min);
  EXPECT_EQ(CountOf("Warning"), 1024u);
  EXPECT_EQ(CountOf("Normal"), 0u) << "they had no turn within a minute";
}

TEST_F(EventsTest, AServerThatIsAwayIsTriedForAMinute) {
  api_.SetUp(false);
  recorder_.Warning(kNode, "R", "early");
  executor_.Advance(30s);
  recorder_.Warning(kNode, "R", "late");
  executor_.Advance(40s);
  api_.SetUp(true);
  executor_.Advance(5s);
  const auto events = Events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["message"], "late");
}

TEST_F(EventsTest, AnEventWhoseAnswerWasLostIsNotWrittenTwice) {
  api_.Fail({.status = 0, .method = "POST", .after_the_deed = true});
  recorder_.Warning(kNode, "R", "m");
  executor_.Advance(10s);
  EXPECT_EQ(Events().size(), 1u);
}

TEST_F(EventsTest, AnEventThatHasExpiredIsBegunAgain) {
  recorder_.Warning(kNode, "R", "m");
  const std::string name = Events()[0]["metadata"]["name"];
  api_.Remove("/api/v1/namespaces/default/events/" + name);
  executor_.Advance(2h);
  recorder_.Warning(kNode, "R", "m");
  const auto events = Events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["count"], 2);
}

TEST_F(EventsTest, AMissingRightIsNotTriedAgain) {
  api_.Forbid("POST", "/api/v1/namespaces/default/events");
  recorder_.Warning(kNode, "R", "m");
  executor_.Advance(1min);
  EXPECT_EQ(api_.Count("create"), 1u);
}

TEST_F(EventsTest, LongMessagesAreCutBetweenLetters) {
  std::string message = "x";
  for (int i = 0; i < 1000; ++i) message += "ü";
  recorder_.Warning(kNode, "R", message);
  // 1,024 bytes hold 1,021 and the mark.
  EXPECT_EQ(Events()[0]["message"].get<std::string>(), message.substr(0, 1021) + "...");
}

// In the other tests time stands still while it is looked at.
TEST(EventsInRealTime, AreWritten) {
  os::Loop loop("events");
  std::unique_ptr<FakeApi> api;
  std::unique_ptr<EventRecorder> recorder;
  std::promise<void> written;
  const std::function<void()> look = [&] {
    if (!api->calls().empty()) return written.set_value();
    loop.PostAfter(10ms, look);
  };
  loop.Start();
  loop.Post([&] {
    api = std::make_unique<FakeApi>(loop);
    recorder = std::make_unique<EventRecorder>(*api, "penstock", "n1");
    recorder->Warning(kNode, "DeviceUnhealthy", "GPU 0: XID 79");
    look();
  });
  EXPECT_EQ(written.get_future().wait_for(1min), std::future_status::ready);
  loop.Stop();
}

}  // namespace
}  // namespace penstock::protocol::kube
