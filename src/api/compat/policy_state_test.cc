#include "api/compat/policy_state.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace penstock::api::compat {
namespace {

using nlohmann::json;

std::string StateWith(const json& status) { return StateOfPolicy({{"status", status}}); }

json ReadyWith(const json& condition) {
  json ready = {{"type", "Ready"}};
  ready.update(condition);
  return {{"conditions", {{{"type", "Error"}, {"status", "True"}}, ready}}};
}

TEST(PolicyState, IsThatOfTheStatusElseOfTheConditionReady) {
  json both = ReadyWith({{"status", "True"}});
  EXPECT_EQ(StateWith(both), "ready");
  both["state"] = "notReady";
  EXPECT_EQ(StateWith(both), "notReady");
  EXPECT_EQ(StateWith(ReadyWith({{"status", "False"}, {"reason", "Deleting"}})), "notReady");
  EXPECT_EQ(StateWith(ReadyWith({{"status", "Unknown"}})), "notReady");
  EXPECT_EQ(StateWith(ReadyWith({{"status", "False"}, {"reason", "Ignored"}})), "ignored");
}

TEST(PolicyState, IsEmptyWhereNothingWasReported) {
  EXPECT_EQ(StateOfPolicy(json::object()), "");
  for (const json& status : {json(), json("ready"), json(1), json({{"state", 1}}),
                             json({{"conditions", "Ready"}}), json({{"conditions", {1, "Ready"}}}),
                             ReadyWith(json::object()), ReadyWith({{"status", true}})})
    EXPECT_EQ(StateWith(status), "") << status.dump();
}

}  // namespace
}  // namespace penstock::api::compat
