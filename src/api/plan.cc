// Converts the plan to JSON and back. The keys are stable (docs/reference/plan.md): add keys, never
// rename them.
#include "api/plan.h"

#include <nlohmann/json.hpp>

#include "base/core/fields.h"

namespace penstock::api {
namespace {

/// 0.1.0 has the key `door`: both keys are written, and an older agent writes only that one.
template <typename Visit, typename T>
void VisitAllocator(Visit& visit, T& allocator) {
  visit("allocator", allocator);
  visit("door", allocator);
}

template <typename Visit, typename T>
void VisitEffect(Visit& visit, T& effect) {
  std::string text(ToString(effect));
  visit("effect", text);
  if constexpr (Visit::kReads) effect = text == "restart" ? Effect::kRestart : Effect::kNow;
}

}  // namespace

template <typename Visit, base::Of<ConfigChange> T>
static void VisitFields(Visit& visit, T& change) {
  visit("key", change.key);
  visit("from", change.from);
  visit("to", change.to);
  VisitEffect(visit, change.effect);
}

template <typename Visit, base::Of<PlannedResource> T>
static void VisitFields(Visit& visit, T& resource) {
  VisitAllocator(visit, resource.allocator);
  visit("resource", resource.resource);
  visit("before", resource.before);
  visit("after", resource.after);
  VisitEffect(visit, resource.effect);
  visit("holders", resource.holders);
}

template <typename Visit, base::Of<PlannedLabel> T>
static void VisitFields(Visit& visit, T& label) {
  visit("key", label.key);
  visit("before", label.before, {.or_null = true});
  visit("after", label.after, {.or_null = true});
  VisitEffect(visit, label.effect);
}

template <typename Visit, base::Of<PlannedDevice> T>
static void VisitFields(Visit& visit, T& device) {
  VisitAllocator(visit, device.allocator);
  visit("resource", device.resource);
  visit("id", device.id);
  visit("index", device.index, {.least = -1});
  visit("number", device.number, {.if_any = true});
  visit("model", device.model);
  visit("slots", device.slots);
  visit("free", device.free);
  visit("reason", device.reason);
}

template <typename Visit, base::Of<PlannedLink> T>
static void VisitFields(Visit& visit, T& link) {
  visit("link", link.link);
  visit("pairs", link.pairs);
}

template <typename Visit, base::Of<PlannedChoice> T>
static void VisitFields(Visit& visit, T& choice) {
  VisitAllocator(visit, choice.allocator);
  visit("resource", choice.resource);
  visit("size", choice.size);
  visit("devices", choice.devices);
  visit("within", choice.within);
  visit("left", choice.left);
  visit("exact", choice.exact);
  visit("links", choice.links);
  visit("reason", choice.reason);
}

template <typename Visit, base::Of<Plan> T>
static void VisitFields(Visit& visit, T& plan) {
  visit("origin", plan.origin);
  visit("changes", plan.changes, {.required = true});
  visit("resources", plan.resources, {.required = true});
  visit("labels", plan.labels, {.required = true});
  visit("notYet", plan.not_yet);
  visit("remarks", plan.remarks);
  if (Visit::kReads || !plan.devices.empty() || !plan.choices.empty()) {
    visit("devices", plan.devices);
    visit("choices", plan.choices);
  }
}

std::string ToJson(const Plan& plan) {
  return base::JsonText(base::ToJsonObject<nlohmann::ordered_json>(plan));
}

base::Result<Plan> ParsePlan(std::string_view json) {
  Plan plan;
  TRY(base::ReadFields(json, "plan",
                       {.parse = {.bytes = 16u << 20}, .unknown = base::UnknownKeys::kIgnored},
                       [&plan](base::StructReader& reader) { VisitFields(reader, plan); }));
  return plan;
}

}  // namespace penstock::api
