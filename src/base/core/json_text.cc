#include "base/core/json_text.h"

#include <nlohmann/json.hpp>

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

}  // namespace penstock::base
