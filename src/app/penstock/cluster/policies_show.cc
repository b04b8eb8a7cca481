#include "app/penstock/cluster/policies_show.h"

#include <cstdint>

#include <nlohmann/json.hpp>

#include "api/compat/policy_state.h"
#include "app/penstock/local/show.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"

namespace penstock::app {

using analysis::At;
using analysis::TextAt;

namespace {

constexpr char kNoOperator[] = "unknown";  // no operator has reported yet

std::string NameOfPolicy(const PolicyToShow& policy) {
  const std::string space = TextAt(policy.object, {"metadata", "namespace"});
  return policy.resource + "/" + TextAt(policy.object, {"metadata", "name"}) +
         (space.empty() ? "" : " (" + space + ")");
}

/// Why there is no state. Objects in namespaces may be another operator's.
std::string WithoutState(const Json& object) {
  if (TextAt(object, {"metadata", "namespace"}).empty())
    return "no operator has reported: is penstock-operator running?";
  return "no operator has reported: it reads the objects in its own namespace that no other "
         "operator has";
}

Color ColorOf(const std::string& state) {
  if (state == "ready") return Color::kGreen;
  return state == "notReady" ? Color::kRed : Color::kYellow;
}

std::int64_t NumberIn(const Json& object, std::initializer_list<std::string_view> path) {
  const Json& found = At(object, path);
  return found.is_number_integer() ? found.get<std::int64_t>() : 0;
}

/// The elements of a list that are objects.
std::vector<Json> ListIn(const Json& object, std::initializer_list<std::string_view> path) {
  const Json& list = At(object, path);
  std::vector<Json> found;
  if (list.is_array())
    for (const Json& one : list)
      if (one.is_object()) found.push_back(one);
  return found;
}

Json ConditionOf(const Json& object, std::string_view type) {
  for (const Json& one : ListIn(object, {"status", "conditions"}))
    if (TextAt(one, {"type"}) == type) return one;
  return Json::object();
}

std::string KnownState(const Json& object) {
  const std::string state = api::compat::StateOfPolicy(object);
  return state.empty() ? kNoOperator : state;
}

std::string ReadyOf(std::int64_t ready, std::int64_t all) {
  return std::to_string(ready) + "/" + std::to_string(all) + " ready";
}

/// What AMD's kind counts of the nodes of one component; empty: nothing.
std::string CountedFor(const Json& object, std::string_view component) {
  const Json& counts = At(object, {"status", component});
  if (!counts.is_object()) return "";
  return ReadyOf(NumberIn(counts, {"availableNumber"}), NumberIn(counts, {"desiredNumber"}));
}

std::string NodesOf(const Json& object) {
  const Json& nodes = At(object, {"status", "nodes"});
  if (!nodes.is_object()) return CountedFor(object, "devicePlugin");
  return ReadyOf(NumberIn(nodes, {"byState", "ready"}), NumberIn(nodes, {"total"}));
}

std::string DriversIn(const Json& object) {
  std::int64_t nodes = 0, ready = 0;
  for (const Json& driver : ListIn(object, {"status", "drivers"})) {
    nodes += NumberIn(driver, {"nodes"});
    ready += NumberIn(driver, {"ready"});
  }
  return nodes == 0 ? CountedFor(object, "driver") : ReadyOf(ready, nodes);
}

/// Why it is as it is: an error, else how far it is.
std::string MessageOf(const Json& object) {
  const Json error = ConditionOf(object, "Error");
  const bool failed = TextAt(error, {"status"}) == "True";
  return TextAt(failed ? error : ConditionOf(object, "Ready"), {"message"});
}

Table ConditionTable(const Json& object, base::WallTime now) {
  Table table({"CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"});
  for (const Json& one : ListIn(object, {"status", "conditions"}))
    table.Add({TextAt(one, {"type"}), TextAt(one, {"status"}), TextAt(one, {"reason"}),
               AgeOf(TextAt(one, {"lastTransitionTime"}), now), TextAt(one, {"message"})});
  return table;
}

Table NodeTable(const Json& object, base::WallTime now) {
  Table table({"NODE", "STATE", "REASON", "SINCE", "MESSAGE"});
  for (const Json& one : ListIn(object, {"status", "nodes", "notReady"}))
    table.Add({TextAt(one, {"name"}),
               {TextAt(one, {"state"}), Color::kRed},
               TextAt(one, {"reason"}),
               AgeOf(TextAt(one, {"since"}), now),
               TextAt(one, {"message"})});
  return table;
}

Table DriverTable(const Json& object) {
  Table table({"DRIVER", "READY", "NODE", "STATE", "REASON", "MESSAGE"});
  for (const Json& driver : ListIn(object, {"status", "drivers"})) {
    if (NumberIn(driver, {"nodes"}) == 0) continue;
    const std::string name = TextAt(driver, {"name"});
    std::string message = TextAt(driver, {"stopped", "message"});
    if (const Json& problems = At(driver, {"problems"}); problems.is_array())
      for (const Json& one : problems)
        if (one.is_string())
          message += (message.empty() ? "" : "; ") + one.get_ref<const std::string&>();
    table.Add({name.empty() ? "(the policy's)" : name,
               std::to_string(NumberIn(driver, {"ready"})) + "/" +
                   std::to_string(NumberIn(driver, {"nodes"})),
               "", "", "", message});
    for (const Json& node : ListIn(driver, {"waiting"}))
      table.Add({"", "", TextAt(node, {"name"}), TextAt(node, {"state"}), TextAt(node, {"reason"}),
                 TextAt(node, {"message"})});
  }
  return table;
}

}  // namespace

std::string ShowPolicies(const std::vector<PolicyToShow>& policies, const Style& style,
                         base::WallTime now) {
  Table table({"POLICY", "STATE", "REASON", "NODES", "DRIVERS", "SINCE", "MESSAGE"});
  for (const PolicyToShow& policy : policies) {
    const Json& object = policy.object;
    const std::string state = KnownState(object);
    const Json ready = ConditionOf(object, "Ready");
    table.Add({NameOfPolicy(policy),
               {state, ColorOf(state)},
               TextAt(ready, {"reason"}),
               NodesOf(object),
               DriversIn(object),
               AgeOf(TextAt(ready, {"lastTransitionTime"}), now),
               state == kNoOperator ? WithoutState(object) : MessageOf(object)});
  }
  return table.Render(style);
}

std::string ShowPolicy(const PolicyToShow& policy, const Style& style, base::WallTime now) {
  std::string text = ShowPolicies({policy}, style, now);
  for (const Table& table : {ConditionTable(policy.object, now), NodeTable(policy.object, now),
                             DriverTable(policy.object)})
    if (!table.empty()) text += "\n" + table.Render(style);
  return text;
}

std::string PoliciesToJson(const std::vector<PolicyToShow>& policies) {
  Json list = Json::array();
  for (const PolicyToShow& policy : policies) {
    list.push_back({{"resource", policy.resource},
                    {"name", TextAt(policy.object, {"metadata", "name"})},
                    {"status", At(policy.object, {"status"})}});
    if (const std::string space = TextAt(policy.object, {"metadata", "namespace"}); !space.empty())
      list.back()["namespace"] = space;
  }
  return base::JsonText(Json{{"policies", std::move(list)}});
}

}  // namespace penstock::app
