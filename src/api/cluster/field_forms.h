// Forms of fields that several parts of a Penstock object have. Visitors that read have Below, and
// the others Items, Part, Word and NumberOrPercent. Private to src/api.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/cluster/kube_json.h"
#include "base/core/fields.h"
#include "base/core/strings.h"

namespace penstock::api {

/// A list or a map that is passed on as it is.
template <typename Visit>
void VisitKubeJson(Visit& visit, std::string_view key, auto& value, base::Value::Kind kind) {
  if constexpr (Visit::kReads) {
    const base::Value* found =
        kind == base::Value::Kind::kList ? visit.map().List(key) : visit.map().Map(key);
    if (found != nullptr) value = internal::KubeJsonOf(*found);
  } else {
    visit.Part(key, value, kind);
  }
}

/// One of several words, or nothing.
template <typename Visit>
void VisitWord(Visit& visit, std::string_view key, auto& value,
               const std::vector<std::string>& words) {
  if constexpr (Visit::kReads) {
    if (auto word = visit.map().OneOf(key, words)) value = *std::move(word);
  } else {
    visit.Word(key, value, words);
  }
}

/// A number, or a text with a percent sign.
template <typename Visit>
void VisitNumberOrPercent(Visit& visit, std::string_view key, auto& value) {
  if constexpr (Visit::kReads) {
    const base::Value* found = visit.map().Any(key);
    if (found == nullptr || found->kind == base::Value::Kind::kNull) return;
    const bool scalar =
        found->kind == base::Value::Kind::kInt || found->kind == base::Value::Kind::kString;
    if (scalar && (found->text.empty() || internal::IsNumberOrPercent(found->text))) {
      value = found->text;
    } else {
      visit.map().Problem(key, "is neither a number of nodes nor a percentage such as \"25%\"");
    }
  } else {
    visit.NumberOrPercent(key, value);
  }
}

/// A list of maps with names: an item changes the one with its name, or is added.
template <typename Visit, typename Name>
void VisitNamed(Visit& visit, std::string_view key, auto& items, Name name) {
  using Item = typename std::remove_cvref_t<decltype(items)>::value_type;
  if constexpr (Visit::kReads) {
    const base::Value* list = visit.map().List(key);
    for (std::size_t i = 0; list != nullptr && i < list->list->size(); ++i) {
      const base::Value& one = (*list->list)[i];
      const base::Value* named = one.Find("name");
      auto found = items.end();
      if (named != nullptr && named->kind == base::Value::Kind::kString)
        found = std::find_if(items.begin(), items.end(),
                             [&](const Item& item) { return item.*name == named->text; });
      if (found == items.end()) found = items.insert(items.end(), Item{});
      visit.Below(one, base::Item(visit.map().Path(key), i), *found);
    }
  } else {
    visit.Items(key, items);
  }
}

/// A variable of a container.
struct EnvironmentVariable {
  std::string name, value;
};

template <typename Visit, base::Of<EnvironmentVariable> T>
void VisitFields(Visit& visit, T& variable) {
  visit("name", variable.name, {.filled = true});
  visit("value", variable.value);
}

template <typename Visit>
void VisitEnvironment(Visit& visit, std::string_view key, auto& environment) {
  std::vector<EnvironmentVariable> variables;
  for (const auto& [name, value] : environment) variables.push_back({name, value});
  VisitNamed(visit, key, variables, &EnvironmentVariable::name);
  if constexpr (Visit::kReads) {
    environment.clear();
    for (EnvironmentVariable& variable : variables)
      environment.emplace_back(std::move(variable.name), std::move(variable.value));
  }
}

}  // namespace penstock::api
