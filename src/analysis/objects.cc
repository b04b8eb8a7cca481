#include "analysis/objects.h"

#include <nlohmann/json.hpp>

namespace penstock::analysis {

const Json& At(const Json& object, std::initializer_list<std::string_view> path) {
  static const Json nothing;
  const Json* here = &object;
  for (const std::string_view key : path) {
    if (!here->is_object()) return nothing;
    const auto found = here->find(key);
    if (found == here->end()) return nothing;
    here = &*found;
  }
  return *here;
}

std::string TextAt(const Json& object, std::initializer_list<std::string_view> path) {
  const Json& value = At(object, path);
  return value.is_string() ? value.get<std::string>() : "";
}

std::map<std::string, std::string> TextsAt(const Json& object,
                                           std::initializer_list<std::string_view> path) {
  std::map<std::string, std::string> texts;
  const Json& values = At(object, path);
  if (!values.is_object()) return texts;
  for (const auto& [key, value] : values.items())
    if (value.is_string()) texts.emplace(key, value.get<std::string>());
  return texts;
}

}  // namespace penstock::analysis
