#include "operator/json_values.h"

#include <algorithm>

namespace penstock::cluster {
namespace {

bool IsEmpty(const Json& value) {
  return value.is_null() || ((value.is_object() || value.is_array()) && value.empty());
}

/// A server merges elements of some lists by a key, so that others may have added elements.
bool CoversList(const Json& found, const Json& wanted) {
  if (!found.is_array()) return wanted.empty() && found.is_null();
  return std::ranges::all_of(wanted, [&found](const Json& element) {
    return std::ranges::any_of(found,
                               [&element](const Json& other) { return Covers(other, element); });
  });
}

bool HasOnlyScalars(const Json& list) {
  return std::ranges::none_of(list, [](const Json& element) { return element.is_structured(); });
}

}  // namespace

const Json* Find(const Json& object, const std::string& pointer) {
  const Json::json_pointer at(pointer);
  return object.contains(at) ? &object.at(at) : nullptr;
}

std::string TextAt(const Json& object, const std::string& pointer) {
  const Json* found = Find(object, pointer);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

const Json& ListAt(const Json& object, const std::string& pointer) {
  static const Json kNone = Json::array();
  const Json* found = Find(object, pointer);
  return found != nullptr && found->is_array() ? *found : kNone;
}

std::map<std::string, std::string> TextsAt(const Json& object, const std::string& pointer) {
  std::map<std::string, std::string> texts;
  const Json* found = Find(object, pointer);
  if (found == nullptr || !found->is_object()) return texts;
  for (const auto& [key, value] : found->items())
    if (value.is_string()) texts[key] = value.get<std::string>();
  return texts;
}

Json MergePatchOf(const Json& found, const Json& wanted) {
  Json patch = Json::object();
  for (const auto& [key, value] : wanted.items()) {
    const auto other = found.find(key);
    if (other == found.end()) {
      patch[key] = value;
    } else if (value.is_object() && other->is_object()) {
      if (Json deeper = MergePatchOf(*other, value); !deeper.empty())
        patch[key] = std::move(deeper);
    } else if (*other != value) {
      patch[key] = value;
    }
  }
  for (const auto& [key, value] : found.items())
    if (!wanted.contains(key)) patch[key] = nullptr;
  return patch;
}

bool Covers(const Json& found, const Json& wanted) {
  if (wanted.is_array())
    return HasOnlyScalars(wanted) ? found == wanted : CoversList(found, wanted);
  if (!wanted.is_object()) return found == wanted;
  if (!found.is_object()) return wanted.empty();
  for (const auto& [key, value] : wanted.items()) {
    const auto other = found.find(key);
    if (other == found.end() ? !IsEmpty(value) : !Covers(*other, value)) return false;
  }
  return true;
}

}  // namespace penstock::cluster
