// What the readers of JSON, YAML and TOML build: values with marks. Nothing is guessed, and no key is dropped without a word.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/core/clock.h"
#include "base/core/quantity.h"
#include "base/core/result.h"

namespace penstock::base {

/// A place in a file, counted from 1; 0 where there is none.
struct Mark {
  int line = 0;
  int column = 0;
};

/// A node of a document. YAML plain scalars are typed by the core schema (null, bool, int, float), quoted ones are strings.
class Value {
 public:
  enum class Kind { kNull, kBool, kInt, kFloat, kString, kList, kMap };
  struct Entry;
  using List = std::vector<Value>;
  using Map = std::vector<Entry>;  // in file order; keys unique

  Kind kind = Kind::kNull;
  Mark mark;
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0;  // also set for kInt
  std::string text;   // the scalar as written (unquoted), whatever its kind
  std::shared_ptr<const List> list;
  std::shared_ptr<const Map> map;

  /// The value of a key, or null where this is no map or lacks it.
  const Value* Find(std::string_view key) const;
};

struct Value::Entry {
  std::string key;
  Mark mark;
  Value value;
};

/// "null", "a boolean", "an integer", "a number", "a string", "a list", "a map".
std::string_view Describe(Value::Kind kind);

/// How a document is read.
enum class Reading {
  kStrict,   ///< what is not known, or there twice, is a problem
  kLenient,  ///< as programs written in Go read YAML into a struct (sigs.k8s.io/yaml): names in any case, and a remark for what is passed
             ///< over
};

/// What is wrong with a document: all of it, to be said at once. Under a lenient reading also what was passed over.
class Problems {
 public:
  explicit Problems(std::string file, Reading reading = Reading::kStrict) : file_(std::move(file)), reading_(reading) {}

  void Add(Mark mark, std::string message);
  /// What only a strict reading refuses: a problem there, else the remark.
  void Tolerate(Mark mark, std::string problem, std::string remark);
  bool lenient() const { return reading_ == Reading::kLenient; }
  bool empty() const { return problems_.empty(); }
  std::size_t size() const { return problems_.size(); }

  /// kInvalidArgument; one line a problem, in file order: "file:line:column: message".
  Error ToError() const;
  /// In file order: "message (line 3)".
  std::vector<std::string> Remarks() const;

 private:
  struct Problem {
    Mark mark;
    std::string message;
  };
  static std::vector<Problem> InOrder(std::vector<Problem> problems);

  std::string file_;
  Reading reading_;
  std::vector<Problem> problems_, remarks_;
};

struct ParseLimits {
  std::size_t bytes = 4u << 20;
  int depth = 64;
};

/// Reads one JSON text (RFC 8259); YAML is read by base/yaml.h, TOML by base/toml.h. Errors (kInvalidArgument) name file:line:column, all
/// duplicates together: syntax, duplicate keys, non-UTF-8, over-deep, over-long. An empty text is a null Value.
Result<Value> ParseJson(std::string_view text, std::string_view file, const ParseLimits& limits = {});

/// Takes the keys of one map by name and type; what was not taken is reported by Finish as unknown, with "did you mean".
/// All problems go to the Problems given; a wrong type answers as if the key were absent. Where these are lenient, a key is also found in
/// another case, and a string may be written as a number or boolean.
class MapReader {
 public:
  /// `where` is the path of this map in the document ("spec.sharing"), "" at the top. With `exact`, names and types are taken to
  /// the letter under a lenient reading, too.
  MapReader(const Value& value, std::string where, Problems& problems, bool exact = false);

  bool Has(std::string_view key) const;
  Mark mark(std::string_view key) const;  ///< of the value of a key; of the map where absent

  std::optional<std::string> String(std::string_view key);
  std::optional<bool> Bool(std::string_view key);
  std::optional<std::int64_t> Int(std::string_view key, std::int64_t least, std::int64_t most);
  std::optional<double> Number(std::string_view key, double least, double most);
  std::optional<Duration> Time(std::string_view key, Duration least, Duration most);
  std::optional<Bytes> Size(std::string_view key);
  std::optional<std::vector<std::string>> Strings(std::string_view key);
  /// One of the names; anything else is a problem that lists them.
  std::optional<std::string> OneOf(std::string_view key, std::vector<std::string> names);
  const Value* Map(std::string_view key);
  const Value* List(std::string_view key);
  const Value* Any(std::string_view key);

  /// Says that a key must be there, with a value.
  void Require(std::string_view key);
  /// Reports a problem at the value of a key.
  void Problem(std::string_view key, std::string message);
  /// Path of a key below this map: "spec.sharing".
  std::string Path(std::string_view key) const;

  /// Reports every key that nobody asked for.
  void Finish();

 private:
  const Value::Entry* Find(std::string_view key) const;
  const Value* Take(std::string_view key, Value::Kind wanted);
  void ReportPassedOver(const Value::Entry& entry);
  std::optional<double> NumberIn(std::string_view key, double least, double most);

  const Value& value_;
  std::string where_;
  Problems& problems_;
  const bool inexact_;
  std::vector<std::string> known_;
};

}  // namespace penstock::base
