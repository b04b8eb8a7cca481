#include "base/core/json_text.h"

#include <nlohmann/json.hpp>

#include "base/core/document.h"

namespace penstock::base {

namespace {

template <typename Json>
std::string TextOf(const Json& json, int indent, bool ascii) {
  return json.dump(indent, ' ', ascii, Json::error_handler_t::replace);
}

}  // namespace

std::string JsonText(const nlohmann::json& json, int indent, bool ascii) {
  return TextOf(json, indent, ascii);
}

std::string JsonText(const nlohmann::ordered_json& json, int indent, bool ascii) {
  return TextOf(json, indent, ascii);
}

template <typename Json>
Json ParseJson(std::string_view text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

template nlohmann::json ParseJson(std::string_view text);
template nlohmann::ordered_json ParseJson(std::string_view text);

template <typename Json>
Json JsonOf(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull: return nullptr;
    case Value::Kind::kBool: return value.boolean;
    case Value::Kind::kInt: return value.integer;
    case Value::Kind::kFloat: return value.number;
    case Value::Kind::kString: return value.text;
    case Value::Kind::kList: {
      auto list = Json::array();
      for (const Value& item : *value.list) list.push_back(JsonOf<Json>(item));
      return list;
    }
    case Value::Kind::kMap: {
      auto map = Json::object();
      for (const Value::Entry& entry : *value.map) map[entry.key] = JsonOf<Json>(entry.value);
      return map;
    }
  }
  return nullptr;
}

template nlohmann::json JsonOf(const Value& value);
template nlohmann::ordered_json JsonOf(const Value& value);

}  // namespace penstock::base
