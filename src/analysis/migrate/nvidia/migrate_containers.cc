#include "analysis/migrate/nvidia/migrate_containers.h"

#include <nlohmann/json.hpp>

namespace penstock::analysis {

const Json& Items(const Json& object, std::initializer_list<std::string_view> path) {
  static const Json none = Json::array();
  const Json& list = At(object, path);
  return list.is_array() ? list : none;
}

std::vector<std::string> Words(const Json& container) {
  std::vector<std::string> words;
  for (const char* list : {"command", "args"})
    for (const Json& word : Items(container, {list}))
      if (word.is_string()) words.push_back(word.get<std::string>());
  return words;
}

std::string Program(const Json& container) {
  const auto words = Words(container);
  return words.empty() ? "" : words.front().substr(words.front().rfind('/') + 1);
}

std::string ImageName(const Json& container) {
  std::string image = TextAt(container, {"image"});
  image = image.substr(0, image.find('@'));
  image = image.substr(image.rfind('/') + 1);
  return image.substr(0, image.find(':'));
}

std::string EnvironmentOf(const Json& container, std::string_view name) {
  for (const Json& one : Items(container, {"env"}))
    if (TextAt(one, {"name"}) == name) return TextAt(one, {"value"});
  return "";
}

}  // namespace penstock::analysis
