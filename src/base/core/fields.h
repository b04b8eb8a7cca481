// Describes the fields of a struct once, in a function that both reads and writes them:
//
//   template <typename Visit, base::Of<Process> T>
//   void VisitFields(Visit& visit, T& process) {
//     visit("pid", process.pid, {.required = true, .least = 1});
//     visit("user", process.user);
//   }
//
// StructReader reads them from a document, StructWriter writes them into a JSON object. VisitFields
// must be in the namespace of its struct. Its part that only reads is in `if constexpr
// (Visit::kReads)`.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "base/core/document.h"
#include "base/core/json_text.h"
#include "base/core/quantity.h"
#include "base/core/result.h"
#include "base/core/shared_vector.h"

namespace penstock::base {

/// T, const or not: VisitFields writes from the one and reads into the other.
template <typename Given, typename T>
concept Of = std::same_as<std::remove_const_t<Given>, T>;

/// The names of an enumeration's values.
template <typename T, std::size_t N>
using Names = std::array<std::pair<T, std::string_view>, N>;

struct FieldRules {
  bool required = false;  ///< the key must exist
  bool filled = false;    ///< the key must exist, and its text or list must not be empty
  bool if_any = false;    ///< is not written if it has its type's initial value
  bool or_null = false;   ///< an optional without a value is written as null, else not at all
  bool rounded = false;   ///< is written in thousandths
  /// Of a number; of a duration in nanoseconds. The range of its type limits it further.
  std::int64_t least = 0, most = std::numeric_limits<std::int64_t>::max();
  /// Only so many bytes of a text, or elements of a list, are written.
  std::size_t longest = std::string::npos;
};

enum class UnknownKeys { kRefused, kIgnored };

/// Reads fields from one map. An absent key leaves its field as it is. All problems are added to
/// one list.
class StructReader {
 public:
  static constexpr bool kReads = true;

  StructReader(const Value& value, std::string where, Problems& problems, UnknownKeys unknown)
      : map_(value, std::move(where), problems), problems_(problems), unknown_(unknown) {}

  template <typename T>
  void operator()(std::string_view key, T& target, const FieldRules& rules = {}) {
    if (rules.required || rules.filled) map_.Require(key);
    Read(key, target, rules);
    if constexpr (requires { target.empty(); })
      if (rules.filled && map_.Has(key) && target.empty()) map_.Problem(key, "is empty");
  }

  template <typename T, std::size_t N>
  void Named(std::string_view key, T& target, const Names<T, N>& names) {
    std::vector<std::string> known;
    for (const auto& [value, name] : names) known.emplace_back(name);
    const auto chosen = map_.OneOf(key, std::move(known));
    for (const auto& [value, name] : names)
      if (chosen == name) target = value;
  }

  MapReader& map() { return map_; }

  /// Reports the keys that were not read, if they are refused.
  void Finish() {
    if (unknown_ == UnknownKeys::kRefused) map_.Finish();
  }

 private:
  template <typename T>
  static void Take(std::optional<T> value, T& target) {
    if (value) target = *std::move(value);
  }

  void Read(std::string_view key, std::string& target, const FieldRules&) {
    Take(map_.String(key), target);
  }
  void Read(std::string_view key, bool& target, const FieldRules&) { Take(map_.Bool(key), target); }
  void Read(std::string_view key, std::vector<std::string>& target, const FieldRules&) {
    Take(map_.Strings(key), target);
  }
  template <std::integral T>
  void Read(std::string_view key, T& target, const FieldRules& rules) {
    std::int64_t most = rules.most;
    if constexpr (sizeof(T) < sizeof(most))
      most = std::min(most, static_cast<std::int64_t>(std::numeric_limits<T>::max()));
    if (const auto number = map_.Int(key, rules.least, most)) target = static_cast<T>(*number);
  }
  void Read(std::string_view key, double& target, const FieldRules& rules) {
    constexpr double kMost = 1e300;
    const bool bounded = rules.most != FieldRules{}.most;
    Take(map_.Number(key, static_cast<double>(rules.least),
                     bounded ? static_cast<double>(rules.most) : kMost),
         target);
  }
  void Read(std::string_view key, Bytes& target, const FieldRules& rules) {
    Read(key, target.count, rules);
  }
  void Read(std::string_view key, WallTime& target, const FieldRules&) {
    if (const auto text = map_.String(key)) target = ParseTime(*text);
  }
  void Read(std::string_view key, Duration& target, const FieldRules& rules) {
    Take(map_.Time(key, Duration(rules.least), Duration(rules.most)), target);
  }
  void Read(std::string_view key, TimePoint& target, const FieldRules& rules) {
    std::int64_t count = target.time_since_epoch().count();
    Read(key, count, rules);
    target = TimePoint(Duration(count));
  }
  template <typename T>
  void Read(std::string_view key, std::optional<T>& target, const FieldRules& rules) {
    const Value* value = map_.Any(key);
    if (value == nullptr || value->kind == Value::Kind::kNull) return;
    const std::size_t problems = problems_.size();
    Read(key, target.emplace(), rules);
    if (problems_.size() > problems) target.reset();
  }
  void Read(std::string_view key, std::vector<WallTime>& target, const FieldRules&) {
    for (const std::string& text : map_.Strings(key).value_or(std::vector<std::string>{}))
      target.push_back(ParseTime(text));
  }
  template <typename T>
  void Read(std::string_view key, std::vector<T>& target, const FieldRules&) {
    const Value* list = map_.List(key);
    if (list == nullptr) return;
    for (const Value& item : *list->list) ReadStruct(item, map_.Path(key), target.emplace_back());
  }
  /// Texts are taken in their order: looking up each key would be slow for the thousands of labels
  /// that a hostile request may have.
  template <typename T>
  void Read(std::string_view key, std::map<std::string, T>& target, const FieldRules& rules) {
    const Value* map = map_.Map(key);
    if (map == nullptr) return;
    StructReader reader(*map, map_.Path(key), problems_, unknown_);
    for (const Value::Entry& entry : *map->map) {
      if constexpr (std::is_same_v<T, std::string>) {
        target[entry.key] = entry.value.text;
        if (entry.value.kind != Value::Kind::kString)
          problems_.Add(entry.value.mark, reader.map_.Path(entry.key) + ": is " +
                                              std::string(Describe(entry.value.kind)) +
                                              " where a string is expected");
      } else {
        reader.Read(entry.key, target[entry.key], rules);
      }
    }
  }
  /// A struct of its own.
  template <typename T>
  void Read(std::string_view key, T& target, const FieldRules&) {
    if (const Value* map = map_.Map(key)) ReadStruct(*map, map_.Path(key), target);
  }
  template <typename T>
  void ReadStruct(const Value& value, std::string where, T& target) {
    StructReader reader(value, std::move(where), problems_, unknown_);
    VisitFields(reader, target);
    reader.Finish();
  }

  MapReader map_;
  Problems& problems_;
  UnknownKeys unknown_;
};

/// Writes fields into a JSON object, of nlohmann's library.
template <typename Json>
class StructWriter {
 public:
  static constexpr bool kReads = false;

  explicit StructWriter(Json& json) : json_(json) { json_ = Json::object(); }

  Json& json() { return json_; }

  template <typename T>
  void operator()(std::string_view key, const T& value, const FieldRules& rules = {}) {
    if (!rules.if_any || !IsInitial(value)) json_[std::string(key)] = Written(value, rules);
  }
  template <typename T>
  void operator()(std::string_view key, const std::optional<T>& value,
                  const FieldRules& rules = {}) {
    if (value || rules.or_null)
      json_[std::string(key)] = value ? Written(*value, rules) : Json(nullptr);
  }
  template <typename T, std::size_t N>
  void Named(std::string_view key, T value, const Names<T, N>& names) {
    for (const auto& [one, name] : names)
      if (one == value) json_[std::string(key)] = name;
  }

 private:
  template <typename T>
  static bool IsInitial(const T& value) {
    if constexpr (requires { value.empty(); }) return value.empty();
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, Bytes>) return value == T{};
    return false;
  }

  /// May cut a character in two, which JsonText replaces.
  static Json Written(const std::string& text, const FieldRules& rules) {
    return text.substr(0, rules.longest);
  }
  static Json Written(bool value, const FieldRules&) { return value; }
  template <std::integral T>
  static Json Written(const T& value, const FieldRules&) {
    return value;
  }
  static Json Written(double value, const FieldRules& rules) {
    return rules.rounded ? std::round(value * 1000) / 1000 : value;
  }
  /// The readers' numbers end at 2^63; a larger size is written as 0, unknown.
  static Json Written(Bytes bytes, const FieldRules&) {
    return bytes.count > std::uint64_t{std::numeric_limits<std::int64_t>::max()} ? 0 : bytes.count;
  }
  static Json Written(WallTime time, const FieldRules&) { return FormatTime(time); }
  static Json Written(Duration duration, const FieldRules&) {
    return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(duration).count()) + "ms";
  }
  static Json Written(TimePoint time, const FieldRules&) {
    return Duration(time.time_since_epoch()).count();
  }
  template <typename T>
  static Json Written(const std::vector<T>& items, const FieldRules& rules) {
    return WrittenList(items, rules);
  }
  template <typename T>
  static Json Written(const SharedVector<T>& items, const FieldRules& rules) {
    return WrittenList(items, rules);
  }
  template <typename T>
  static Json Written(const std::map<std::string, T>& map, const FieldRules& rules) {
    Json object = Json::object();
    for (const auto& [key, value] : map) object[key] = Written(value, rules);
    return object;
  }
  /// A struct of its own.
  template <typename T>
  static Json Written(const T& value, const FieldRules&) {
    Json object;
    StructWriter writer(object);
    VisitFields(writer, value);
    return object;
  }

  static Json WrittenList(const auto& items, const FieldRules& rules) {
    Json list = Json::array();
    for (const auto& item : items)
      if (list.size() < rules.longest) list.push_back(Written(item, {}));
    return list;
  }

  Json& json_;
};

/// Returns a struct as a JSON object.
template <typename Json, typename T>
Json ToJsonObject(const T& value) {
  Json json;
  StructWriter<Json> writer(json);
  VisitFields(writer, value);
  return json;
}

/// How an untrusted text is read.
struct FieldLimits {
  ParseLimits parse;
  UnknownKeys unknown = UnknownKeys::kRefused;
};

/// Reads a text, which must be one JSON object, by a function of its reader. kDataLoss with all
/// problems.
template <typename Function>
Status ReadFields(std::string_view text, std::string_view file, const FieldLimits& limits,
                  Function function) {
  const auto damaged = [](const Error& error) { return Error(Code::kDataLoss, error.message()); };
  const auto document = ParseJson(text, file, limits.parse);
  if (!document.ok()) return damaged(document.error());
  Problems problems{std::string(file)};
  if (document->kind != Value::Kind::kMap) problems.Add(document->mark, "is not an object");
  StructReader reader(*document, "", problems, limits.unknown);
  if constexpr (std::is_same_v<decltype(function(reader)), Status>) {
    TRY(function(reader));
  } else {
    function(reader);
  }
  reader.Finish();
  return problems.empty() ? Status() : damaged(problems.ToError());
}

}  // namespace penstock::base
