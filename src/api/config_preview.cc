// Converts the preview of a configuration to JSON and back. The keys are stable
// (docs/reference/plan.md): add keys, never rename them.
#include "api/config_preview.h"

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

template <typename Visit, base::Of<PreviewedResource> T>
static void VisitFields(Visit& visit, T& resource) {
  VisitAllocator(visit, resource.allocator);
  visit("resource", resource.resource);
  visit("before", resource.before);
  visit("after", resource.after);
  VisitEffect(visit, resource.effect);
  visit("holders", resource.holders);
}

template <typename Visit, base::Of<PreviewedLabel> T>
static void VisitFields(Visit& visit, T& label) {
  visit("key", label.key);
  visit("before", label.before, {.or_null = true});
  visit("after", label.after, {.or_null = true});
  VisitEffect(visit, label.effect);
}

template <typename Visit, base::Of<PreviewedDevice> T>
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

template <typename Visit, base::Of<PreviewedLink> T>
static void VisitFields(Visit& visit, T& link) {
  visit("link", link.link);
  visit("pairs", link.pairs);
}

template <typename Visit, base::Of<PreviewedChoice> T>
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

template <typename Visit, base::Of<ConfigPreview> T>
static void VisitFields(Visit& visit, T& preview) {
  visit("origin", preview.origin);
  visit("changes", preview.changes, {.required = true});
  visit("resources", preview.resources, {.required = true});
  visit("labels", preview.labels, {.required = true});
  visit("notYet", preview.not_yet);
  visit("remarks", preview.remarks);
  if (Visit::kReads || !preview.devices.empty() || !preview.choices.empty()) {
    visit("devices", preview.devices);
    visit("choices", preview.choices);
  }
}

std::string ToJson(const ConfigPreview& preview) {
  return base::JsonText(base::ToJsonObject<nlohmann::ordered_json>(preview));
}

base::Result<ConfigPreview> ParseConfigPreview(std::string_view json) {
  ConfigPreview preview;
  TRY(base::ReadFields(json, "plan",
                       {.parse = {.bytes = 16u << 20}, .unknown = base::UnknownKeys::kIgnored},
                       [&preview](base::StructReader& reader) { VisitFields(reader, preview); }));
  return preview;
}

}  // namespace penstock::api
