// The document model that the readers of JSON, YAML and TOML build: values with their positions.
// Readers do not guess, and every ignored key is reported.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "base/core/quantity.h"
#include "base/core/result.h"

namespace penstock::base {

/// A position in a file, counted from 1; 0 if there is none.
struct Mark {
  int line = 0;
  int column = 0;
};

/// A node of a document. YAML plain scalars are typed by the core schema (null, bool, int, float),
/// quoted ones are strings.
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

  /// The value of a key; null if this is not a map or lacks the key.
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
enum class ReadingMode {
  kStrict,   ///< unknown and duplicate keys are problems
  kLenient,  ///< as Go programs read YAML into a struct (sigs.k8s.io/yaml): keys match in any case,
             ///< and ignored keys become remarks
};

/// Collects everything that is wrong with a document, to report it at once, and remarks on what is
/// deprecated or, under a lenient reading, ignored.
class Problems {
 public:
  explicit Problems(std::string file, ReadingMode reading = ReadingMode::kStrict)
      : file_(std::move(file)), reading_(reading) {}

  void Add(Mark mark, std::string message);
  /// For what only a strict reading refuses: adds the problem under a strict reading, otherwise the
  /// remark.
  void Tolerate(Mark mark, std::string problem, std::string remark);
  /// What is read and should be written differently.
  void Remark(Mark mark, std::string remark);
  bool lenient() const { return reading_ == ReadingMode::kLenient; }
  bool empty() const { return problems_.empty(); }
  std::size_t size() const { return problems_.size(); }

  /// kInvalidArgument; one line per problem, in file order: "file:line:column: message". Of more
  /// than 100 the first, and how many more there are; of a message at most 500 bytes.
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
  ReadingMode reading_;
  std::vector<Problem> problems_, remarks_;
};

struct ParseLimits {
  std::size_t bytes = 4u << 20;
  int depth = 64;
  std::size_t values = static_cast<std::size_t>(-1);  ///< of JSON; keys count, too
};

/// Reads one JSON text (RFC 8259); for YAML see base/yaml.h, for TOML base/toml.h. Errors
/// (kInvalidArgument) name file:line:column, with all duplicates together: syntax, duplicate keys,
/// non-UTF-8, too deep, too long, too many values. An empty text is a null Value.
Result<Value> ParseJson(std::string_view text, std::string_view file,
                        const ParseLimits& limits = {});

/// Reads the keys of one map by name and type; Finish reports the keys that were not read as
/// unknown, with "did you mean". All problems are added to `problems`; a value of the wrong type is
/// returned as if the key were absent. If `problems` is lenient, keys also match in another case,
/// and a string may be written as a number or boolean.
class MapReader {
 public:
  /// `where` is the path of this map in the document ("spec.sharing"), "" at the top. With `exact`,
  /// names and types must match exactly under a lenient reading, too.
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
  /// One of the names; any other value is a problem that lists them.
  std::optional<std::string> OneOf(std::string_view key, std::vector<std::string> names);
  const Value* Map(std::string_view key);
  const Value* List(std::string_view key);
  const Value* Any(std::string_view key);

  /// Reports a problem if the key is missing or has no value.
  void Require(std::string_view key);
  /// Reports a problem at the value of a key.
  void Problem(std::string_view key, std::string message);
  /// Path of a key below this map: "spec.sharing".
  std::string Path(std::string_view key) const;

  /// Reports every key that was not read.
  void Finish();

 private:
  const Value::Entry* Find(std::string_view key) const;
  const Value* Take(std::string_view key, Value::Kind wanted);
  void ReportIgnored(const Value::Entry& entry);
  std::optional<double> NumberIn(std::string_view key, double least, double most);

  const Value& value_;
  std::string where_;
  Problems& problems_;
  const bool inexact_;
  std::vector<std::string> known_;
};

/// Calls `take` with each map in a list at `where`, and with its own place ("rules[2]"). Each other
/// element is a problem.
void ForEachMap(const Value& list, const std::string& where, Problems& problems,
                const std::function<void(const Value& map, const std::string& where)>& take);

}  // namespace penstock::base
