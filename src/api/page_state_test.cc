#include "api/page_state.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace penstock::api {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

PageHolder HolderNamed(const std::string& user) {
  PageHolder item;
  item.holder.kind = "run";
  item.holder.user = user;
  item.holder.command = "train --token=SECRET";
  item.holder.pids = {4711};
  return item;
}

PageState StateWith(std::size_t holders, std::size_t runs) {
  PageState state{.node = "n1", .version = "1.2.3"};
  PageDevice& device = state.devices.emplace_back();
  device.report.id = "GPU-1";
  device.report.index = 0;
  device.report.health_state = "unhealthy";
  device.report.health_reason = "Xid 79";
  device.utilization = 0.25;
  for (std::size_t i = 0; i < holders; ++i)
    device.holders.push_back(HolderNamed("user " + std::to_string(i)));
  for (std::size_t i = 0; i < runs; ++i)
    state.queue.push_back({.ticket = "q-" + std::to_string(i), .command = "SECRET"});
  return state;
}

TEST(PageState, HasTheStateInBriefHoweverLongTheListsAre) {
  const std::string text =
      ToJson(StateWith(5000, 5000), PageDetail::kProcesses, "b1", {"gpu2:9400"});
  EXPECT_LT(text.size(), 4000U);
  const json state = json::parse(text);
  EXPECT_EQ(state["build"], "b1");
  EXPECT_EQ(state["nodes"], json({"gpu2:9400"}));
  const json& device = state["devices"][0];
  EXPECT_EQ(device["health"]["reason"], "Xid 79");
  EXPECT_EQ(device["utilization"], 0.25);
  EXPECT_FALSE(device.contains("powerWatts")) << "unknown";
  EXPECT_EQ(device["holders"].size(), kHoldersInState);
  EXPECT_EQ(device["holderCount"], 5000);
  EXPECT_EQ(state["queue"].size(), kRunsInState);
  EXPECT_EQ(state["queueLength"], 5000);
}

TEST(PageState, SaysWhichPartsAQueuedRunAsksFor) {
  PageState state = StateWith(1, 2);
  state.queue[0].profile = "1g.5gb";
  state.queue[1].least_memory = base::Mebibytes(1);
  const json queue = json::parse(PageQueueToJson(state, PageDetail::kHolders, 0))["queue"];
  EXPECT_EQ(queue[0]["profile"], "1g.5gb");
  EXPECT_FALSE(queue[0].contains("minMemory"));
  EXPECT_EQ(queue[1]["minMemory"], 1u << 20);
  EXPECT_FALSE(queue[1].contains("profile"));
}

TEST(PageState, HasTheWholeListsPageByPage) {
  const PageState state = StateWith(250, 201);
  const json first = json::parse(*PageHoldersToJson(state, PageDetail::kHolders, "GPU-1", 0));
  EXPECT_EQ(first["holders"].size(), kItemsOfPage);
  EXPECT_EQ(first["count"], 250);
  const json last = json::parse(*PageHoldersToJson(state, PageDetail::kHolders, "GPU-1", 200));
  EXPECT_EQ(last["holders"].size(), 50U);
  EXPECT_EQ(last["holders"][0]["user"], "user 200");
  EXPECT_EQ(json::parse(PageQueueToJson(state, PageDetail::kHolders, 200))["queue"].size(), 1U);
  EXPECT_EQ(json::parse(PageQueueToJson(state, PageDetail::kHolders,
                                        std::numeric_limits<std::size_t>::max()))["queue"]
                .size(),
            0U);
  EXPECT_EQ(PageHoldersToJson(state, PageDetail::kHolders, "GPU-2", 0), std::nullopt);
  EXPECT_EQ(json::parse(*PageHoldersToJson(state, PageDetail::kHolders, "", 0))["count"], 0)
      << "of removed devices";
}

TEST(PageState, NamesProcessesOnlyWhereAsked) {
  const PageState state = StateWith(1, 1);
  for (const std::string& text : {ToJson(state, PageDetail::kHolders, "", {}),
                                  *PageHoldersToJson(state, PageDetail::kHolders, "GPU-1", 0),
                                  PageQueueToJson(state, PageDetail::kHolders, 0)}) {
    EXPECT_THAT(text, Not(HasSubstr("SECRET")));
    EXPECT_THAT(text, Not(HasSubstr("4711")));
  }
  EXPECT_THAT(ToJson(state, PageDetail::kProcesses, "", {}), HasSubstr("4711"));
  EXPECT_THAT(*PageHoldersToJson(state, PageDetail::kProcesses, "GPU-1", 0), HasSubstr("SECRET"));
  EXPECT_THAT(PageQueueToJson(state, PageDetail::kProcesses, 0), HasSubstr("SECRET"));
}

TEST(PageState, IsJsonWhateverTextsContain) {
  PageState state = StateWith(1, 0);
  HolderReport& holder = state.devices[0].holders[0].holder;
  holder.user = std::string("\xff\x00</script>\"", 13);
  holder.command = std::string(296, 'x') + "é" + std::string(1 << 20, 'y');
  const std::string text = ToJson(state, PageDetail::kProcesses, "", {});
  EXPECT_LT(text.size(), 2000U);
  const std::string command = json::parse(text)["devices"][0]["holders"][0]["command"];
  EXPECT_EQ(command, std::string(296, 'x') + "…") << "no half of a character";
}

TEST(PageState, HasTheLastHourAsWholeNumbers) {
  const PageHistory history{.step_seconds = 30,
                            .devices = {{"GPU-1",
                                         {.utilization = {kMissing, 0.254F, kMissing, 1},
                                          .memory_used = {kMissing, kMissing},
                                          .power = {61.6F}}},
                                        {"\"", {}}}};
  EXPECT_EQ(ToJson(history), R"({"stepSeconds":30,"devices":{"\"":{},)"
                             R"("GPU-1":{"utilization":[25,null,100],"power":[62]}}})");
}

}  // namespace
}  // namespace penstock::api
