// TOML through toml++, whose tables lose the order of keys: it is made again from their positions. The only file that knows toml++.
#include "base/toml.h"

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

// One of toml++'s assertions is false of a header without a name ("[" and a line end), which its next lines report as an error; with NDEBUG
// it would be told to the compiler as a fact. Neither may happen to a text that others wrote.
#undef NDEBUG
#define TOML_ASSERT(expression) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_UNRELEASED_FEATURES 0
#include <toml++/toml.h>

#include "base/core/document_builder.h"
#include "base/core/strings.h"

namespace penstock::base {
namespace {

Mark ToMark(const toml::source_region& source) { return {static_cast<int>(source.begin.line), static_cast<int>(source.begin.column)}; }

Value Scalar(Value::Kind kind, std::string text) {
  Value value;
  value.kind = kind;
  value.text = std::move(text);
  return value;
}

template <typename T>
std::string Written(const T& what) {
  std::ostringstream text;
  text << what;
  return text.str();
}

Value ScalarOf(const toml::node& node) {
  if (const auto* text = node.as_string()) return Scalar(Value::Kind::kString, text->get());
  if (const auto* boolean = node.as_boolean()) {
    Value value = Scalar(Value::Kind::kBool, boolean->get() ? "true" : "false");
    value.boolean = boolean->get();
    return value;
  }
  if (const auto* integer = node.as_integer()) {
    Value value = Scalar(Value::Kind::kInt, std::to_string(integer->get()));
    value.integer = integer->get();
    value.number = static_cast<double>(integer->get());
    return value;
  }
  if (const auto* number = node.as_floating_point()) {
    Value value = Scalar(Value::Kind::kFloat, Written(number->get()));
    value.number = number->get();
    return value;
  }
  if (const auto* date = node.as_date()) return Scalar(Value::Kind::kString, Written(date->get()));
  if (const auto* time = node.as_time()) return Scalar(Value::Kind::kString, Written(time->get()));
  return Scalar(Value::Kind::kString, Written(node.as_date_time()->get()));
}

void Build(const toml::node& node, internal::Builder& builder) {
  if (builder.too_deep()) return;
  if (const auto* table = node.as_table()) {
    std::vector<std::pair<const toml::key*, const toml::node*>> entries;
    for (const auto& [key, value] : *table) entries.emplace_back(&key, &value);
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      const auto &x = a.first->source().begin, &y = b.first->source().begin;
      return std::pair(x.line, x.column) < std::pair(y.line, y.column);
    });
    builder.Begin(Value::Kind::kMap, ToMark(table->source()));
    for (const auto& [key, value] : entries) {
      builder.Key(std::string(key->str()), ToMark(key->source()));
      Build(*value, builder);
    }
    return builder.End();
  }
  if (const auto* array = node.as_array()) {
    builder.Begin(Value::Kind::kList, ToMark(array->source()));
    for (const toml::node& element : *array) Build(element, builder);
    return builder.End();
  }
  Value value = ScalarOf(node);
  value.mark = ToMark(node.source());
  builder.Scalar(std::move(value));
}

}  // namespace

Result<Value> ParseToml(std::string_view text, std::string_view file, const ParseLimits& limits) {
  Problems problems{std::string(file)};
  if (text.size() > limits.bytes) problems.Add({}, "is larger than " + FormatBytes({limits.bytes}));
  if (problems.empty() && !IsUtf8(text)) problems.Add({}, "is not UTF-8 text");
  if (!problems.empty()) return problems.ToError();

  const toml::parse_result parsed = toml::parse(text, file);
  if (!parsed) {
    problems.Add(ToMark(parsed.error().source()), std::string(parsed.error().description()));
    return problems.ToError();
  }
  internal::Builder builder(problems, limits.depth);
  Build(parsed.table(), builder);
  if (!problems.empty()) return problems.ToError();
  return builder.Take();
}

}  // namespace penstock::base
