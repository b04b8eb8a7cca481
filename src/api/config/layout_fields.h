// The JSON fields of layouts, for base::StructReader and base::StructWriter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/config/layouts.h"
#include "base/core/fields.h"
#include "base/core/strings.h"

namespace penstock::api {

template <typename Visit>
void VisitPciId(Visit& visit, const char* key, auto& id) {
  int number = id;
  visit(key, number, {.most = 0xffff});
  if constexpr (Visit::kReads) id = static_cast<std::uint16_t>(number);
}

template <typename Visit, base::Of<PciModel::Subsystem> T>
void VisitFields(Visit& visit, T& subsystem) {
  VisitPciId(visit, "vendor", subsystem.vendor);
  VisitPciId(visit, "device", subsystem.device);
}

template <typename Visit, base::Of<PciModel> T>
void VisitFields(Visit& visit, T& model) {
  VisitPciId(visit, "vendor", model.vendor);
  VisitPciId(visit, "device", model.device);
  visit("subsystem", model.subsystem);
}

template <typename Visit, base::Of<LayoutPlace> T>
void VisitFields(Visit& visit, T& place) {
  visit("start", place.start, {.most = 1 << 20});
  visit("size", place.size, {.least = 1, .most = 1 << 20});
}

template <typename Visit, base::Of<LayoutParts> T>
void VisitFields(Visit& visit, T& parts) {
  visit("profile", parts.profile, {.filled = true});
  visit("count", parts.count, {.least = 1, .most = 1 << 20});
  visit("place", parts.place);
  visit("outer", parts.outer);
  visit("vacant", parts.vacant, {.if_any = true});
}

/// Indices are written as the numbers in texts.
template <typename Visit, base::Of<LayoutRule> T>
void VisitFields(Visit& visit, T& rule) {
  visit("models", rule.models, {.if_any = true});
  visit("allDevices", rule.all_devices);
  std::vector<std::string> devices;
  for (const int index : rule.devices) devices.push_back(std::to_string(index));
  visit("devices", devices, {.if_any = true});
  if constexpr (Visit::kReads) {
    for (const std::string& text : devices) {
      const auto index = base::ParseUint(text);
      if (!index || *index > 1 << 20) visit.map().Problem("devices", "contains no index");
      rule.devices.push_back(static_cast<int>(index.value_or(0)));
    }
  }
  visit("ids", rule.ids, {.if_any = true});
  visit("partitioned", rule.partitioned);
  visit("parts", rule.parts, {.if_any = true});
  visit("modes", rule.modes, {.if_any = true});
}

template <typename Visit, base::Of<Layout> T>
void VisitFields(Visit& visit, T& layout) {
  visit("name", layout.name);
  visit("rules", layout.rules, {.if_any = true});
  visit("total", layout.total, {.if_any = true, .most = 1 << 20});
  visit("totalBy", layout.total_by, {.if_any = true});
}

}  // namespace penstock::api
