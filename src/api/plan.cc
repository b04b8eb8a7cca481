// Converts the plan to JSON and back. The keys are stable (docs/reference/plan.md): add keys, never
// rename them.
#include "api/plan.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "base/core/document.h"

namespace penstock::api {

namespace {

using base::MapReader;
using base::Problems;
using base::Value;
using Json = nlohmann::ordered_json;

Json Optional(const std::optional<std::string>& text) { return text ? Json(*text) : Json(nullptr); }

Effect ReadEffect(MapReader& reader) {
  return reader.String("effect").value_or("now") == "restart" ? Effect::kRestart : Effect::kNow;
}

/// 0.1.0 has the key `door`: both keys are written, and an older agent writes only that one.
std::string ReadAllocator(MapReader& reader) {
  const auto door = reader.String("door");
  return reader.String("allocator").value_or(door.value_or(""));
}

std::size_t ReadCount(MapReader& reader, std::string_view key) {
  return static_cast<std::size_t>(reader.Int(key, 0, std::numeric_limits<int>::max()).value_or(0));
}

/// Reads each item of a list with `read`.
template <typename Item, typename Read>
std::vector<Item> ReadItems(MapReader& top, std::string_view key, Problems& problems,
                            const Read& read) {
  std::vector<Item> items;
  const Value* list = top.List(key);
  if (list == nullptr) return items;
  for (const Value& value : *list->list) {
    MapReader reader(value, std::string(key), problems);
    items.push_back(read(reader));
  }
  return items;
}

Json ToJson(const PlannedDevice& device) {
  return {{"allocator", device.allocator}, {"door", device.allocator},
          {"resource", device.resource},   {"id", device.id},
          {"index", device.index},         {"model", device.model},
          {"slots", device.slots},         {"free", device.free},
          {"reason", device.reason}};
}

PlannedDevice ReadDevice(MapReader& reader) {
  return {.allocator = ReadAllocator(reader),
          .resource = reader.String("resource").value_or(""),
          .id = reader.String("id").value_or(""),
          .index = static_cast<int>(
              reader.Int("index", -1, std::numeric_limits<int>::max()).value_or(-1)),
          .model = reader.String("model").value_or(""),
          .slots = ReadCount(reader, "slots"),
          .free = ReadCount(reader, "free"),
          .reason = reader.String("reason").value_or("")};
}

Json ToJson(const PlannedChoice& choice) {
  Json document = {{"allocator", choice.allocator}, {"door", choice.allocator},
                   {"resource", choice.resource},   {"size", choice.size},
                   {"devices", choice.devices},     {"within", choice.within},
                   {"left", choice.left},           {"exact", choice.exact},
                   {"links", Json::array()},        {"reason", choice.reason}};
  for (const PlannedLink& link : choice.links)
    document["links"].push_back({{"link", link.link}, {"pairs", link.pairs}});
  return document;
}

PlannedChoice ReadChoice(MapReader& reader, Problems& problems) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  PlannedChoice choice{.allocator = ReadAllocator(reader),
                       .resource = reader.String("resource").value_or(""),
                       .size = ReadCount(reader, "size"),
                       .devices = reader.Strings("devices").value_or(std::vector<std::string>{}),
                       .within = reader.Int("within", 0, kMax).value_or(0),
                       .left = reader.Int("left", 0, kMax).value_or(0),
                       .exact = reader.Bool("exact").value_or(true)};
  choice.links = ReadItems<PlannedLink>(reader, "links", problems, [](MapReader& link) {
    return PlannedLink{link.String("link").value_or(""),
                       link.Strings("pairs").value_or(std::vector<std::string>{})};
  });
  choice.reason = reader.String("reason").value_or("");
  return choice;
}

}  // namespace

std::string ToJson(const Plan& plan) {
  Json document = {{"origin", plan.origin},      {"changes", Json::array()},
                   {"resources", Json::array()}, {"labels", Json::array()},
                   {"notYet", plan.not_yet},     {"remarks", plan.remarks}};
  for (const ConfigChange& change : plan.changes)
    document["changes"].push_back({{"key", change.key},
                                   {"from", change.from},
                                   {"to", change.to},
                                   {"effect", ToString(change.effect)}});
  for (const PlannedResource& resource : plan.resources)
    document["resources"].push_back({{"allocator", resource.allocator},
                                     {"door", resource.allocator},
                                     {"resource", resource.resource},
                                     {"before", resource.before},
                                     {"after", resource.after},
                                     {"effect", ToString(resource.effect)},
                                     {"holders", resource.holders}});
  for (const PlannedLabel& label : plan.labels)
    document["labels"].push_back({{"key", label.key},
                                  {"before", Optional(label.before)},
                                  {"after", Optional(label.after)},
                                  {"effect", ToString(label.effect)}});
  if (!plan.devices.empty() || !plan.choices.empty()) {
    document["devices"] = Json::array();
    document["choices"] = Json::array();
  }
  for (const PlannedDevice& device : plan.devices) document["devices"].push_back(ToJson(device));
  for (const PlannedChoice& choice : plan.choices) document["choices"].push_back(ToJson(choice));
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

base::Result<Plan> ParsePlan(std::string_view json) {
  ASSIGN(const Value value, base::ParseJson(json, "plan", {.bytes = 16u << 20}));
  Problems problems("plan");
  MapReader top(value, "", problems);
  for (const char* key : {"changes", "resources", "labels"}) top.Require(key);
  Plan plan{.origin = top.String("origin").value_or("")};
  plan.changes = ReadItems<ConfigChange>(top, "changes", problems, [](MapReader& reader) {
    return ConfigChange{reader.String("key").value_or(""), reader.String("from").value_or(""),
                        reader.String("to").value_or(""), ReadEffect(reader)};
  });
  plan.resources = ReadItems<PlannedResource>(top, "resources", problems, [](MapReader& reader) {
    return PlannedResource{ReadAllocator(reader),
                           reader.String("resource").value_or(""),
                           ReadCount(reader, "before"),
                           ReadCount(reader, "after"),
                           ReadEffect(reader),
                           reader.Strings("holders").value_or(std::vector<std::string>{})};
  });
  plan.labels = ReadItems<PlannedLabel>(top, "labels", problems, [](MapReader& reader) {
    return PlannedLabel{reader.String("key").value_or(""), reader.String("before"),
                        reader.String("after"), ReadEffect(reader)};
  });
  plan.devices = ReadItems<PlannedDevice>(top, "devices", problems, ReadDevice);
  plan.choices = ReadItems<PlannedChoice>(top, "choices", problems, [&problems](MapReader& reader) {
    return ReadChoice(reader, problems);
  });
  plan.not_yet = top.Strings("notYet").value_or(plan.not_yet);
  plan.remarks = top.Strings("remarks").value_or(plan.remarks);
  if (!problems.empty()) return problems.ToError();
  return plan;
}

}  // namespace penstock::api
