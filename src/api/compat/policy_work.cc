#include "api/compat/policy_work.h"

#include <algorithm>

#include "api/cluster/penstock_check.h"
#include "api/config/node_config_check.h"
#include "base/core/printable.h"

namespace penstock::api::compat::internal {

namespace {

using base::Value;

void SetName(PolicyWork& work, const Value& value, std::string_view what, std::string& target) {
  if (!value.text.empty() && !api::internal::IsObjectName(value.text, true))
    return work.Problem("\"" + ShownText(value.text) + "\" is not the name of a " +
                        std::string(what));
  target = value.text;
}

}  // namespace

std::map<std::string, std::string> TextsOf(const Value& value) {
  std::map<std::string, std::string> texts;
  for (const Value::Entry& entry : *value.map) texts[entry.key] = entry.value.text;
  return texts;
}

bool PolicyWork::On(std::string_view path) const { return IsFieldOn(reading, fields, path); }

void PolicyWork::Problem(const std::string& message) const {
  problems.Add({}, field + ": " + message);
}

void PolicyWork::Answer(std::string_view item, FieldFate fate, std::string_view text) const {
  answers.push_back(
      {field + (item.empty() ? "" : "[" + ShownText(item) + "]"), fate, std::string(text)});
}

void ApplyFields(PolicyWork& work) {
  for (const ResourceField& field : work.fields) {
    if (field.apply == nullptr) continue;
    if (!work.without.empty() && field.path.starts_with(work.without)) continue;
    const Value* given = work.reading.Find(field.path);
    std::optional<Value> otherwise;
    const auto dot = field.path.rfind('.');
    const bool inside = dot != std::string::npos &&
                        work.reading.Find(std::string_view(field.path).substr(0, dot)) != nullptr;
    // A default of the definition applies where the map around it is set.
    if (given == nullptr && (inside || !field.unset.empty())) otherwise = DefaultOf(field);
    if (given == nullptr && !otherwise) continue;
    work.field = "spec." + field.path;
    work.given = given != nullptr;
    field.apply(work, given != nullptr ? *given : *otherwise);
  }
}

void TakeLabels(PolicyWork& work, const Value& value, std::map<std::string, std::string>& target) {
  const auto labels = TextsOf(value);
  api::internal::CheckLabelMap("", labels, [&](std::string_view, const std::string& message) {
    work.Problem(base::Printable(message));
  });
  for (const auto& [key, text] : labels) target[key] = text;
}

void AddSecretNames(PolicyWork& work, const Value& value, std::vector<std::string>& target) {
  for (const Value& item : *value.list) {
    if (!api::internal::IsObjectName(item.text, true)) {
      work.Problem("\"" + ShownText(item.text) + "\" is not the name of a Secret");
    } else if (std::ranges::find(target, item.text) == target.end()) {
      target.push_back(item.text);
    }
  }
}

void SetAbsolutePath(PolicyWork& work, const Value& value, std::string& target) {
  if (value.text.empty()) return;
  if (value.text.front() != '/' || !base::IsPrintable(value.text))
    return work.Problem("\"" + ShownText(value.text) + "\" must be an absolute path");
  target = value.text;
}

void SetMapName(PolicyWork& work, const Value& value, std::string& target) {
  SetName(work, value, "ConfigMap", target);
}

void SetSecretName(PolicyWork& work, const Value& value, std::string& target) {
  SetName(work, value, "Secret", target);
}

void SetPriorityName(PolicyWork& work, const Value& value, std::string& target) {
  SetName(work, value, "PriorityClass", target);
}

}  // namespace penstock::api::compat::internal
