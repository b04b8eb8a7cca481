// Reads JSON with nlohmann's event parser; the input iterator counts positions. The only file of
// base that uses nlohmann.
#include <iterator>

#include <nlohmann/json.hpp>

#include "base/core/document.h"
#include "base/core/document_builder.h"
#include "base/core/strings.h"

namespace penstock::base {
namespace {

/// The parser's position, and the start of the current token.
struct Position {
  Mark here{1, 0};
  Mark token{1, 1};
  bool in_token = false;

  void Pass(char c) {
    if (c == '\n') {
      ++here.line;
      here.column = 0;
    } else {
      ++here.column;
    }
    const bool between = c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',' || c == ':';
    if (!in_token && !between) {
      token = here;
      in_token = true;
    }
  }
};

/// Passes the text to the parser and tracks the position.
class Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  Iterator(const char* at, Position* position) : at_(at), position_(position) {}
  char operator*() const { return *at_; }
  Iterator& operator++() {
    if (position_ != nullptr) position_->Pass(*at_);
    ++at_;
    return *this;
  }
  Iterator operator++(int) {
    Iterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const Iterator& other) const { return at_ == other.at_; }
  bool operator!=(const Iterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  Position* position_;
};

class Handler {
 public:
  using number_integer_t = std::int64_t;
  using number_unsigned_t = std::uint64_t;
  using number_float_t = double;
  using string_t = std::string;
  using binary_t = nlohmann::json::binary_t;

  Handler(Problems& problems, const ParseLimits& limits, Position& position)
      : problems_(problems),
        builder_(problems, limits.depth),
        most_values_(limits.values),
        position_(position) {}

  bool null() { return Place({}); }
  bool boolean(bool boolean) {
    Value value;
    value.kind = Value::Kind::kBool;
    value.boolean = boolean;
    value.text = boolean ? "true" : "false";
    return Place(std::move(value));
  }
  bool number_integer(std::int64_t number) {
    Value value;
    value.kind = Value::Kind::kInt;
    value.integer = number;
    value.number = static_cast<double>(number);
    value.text = std::to_string(number);
    return Place(std::move(value));
  }
  bool number_unsigned(std::uint64_t number) {
    if (number <= INT64_MAX) return number_integer(static_cast<std::int64_t>(number));
    return number_float(static_cast<double>(number), std::to_string(number));
  }
  bool number_float(double number, const std::string& text) {
    Value value;
    value.kind = Value::Kind::kFloat;
    value.number = number;
    value.text = text;
    return Place(std::move(value));
  }
  bool string(std::string& text) {
    Value value;
    value.kind = Value::Kind::kString;
    value.text = std::move(text);
    return Place(std::move(value));
  }
  bool binary(binary_t&) { return false; }
  bool start_object(std::size_t) { return Begin(Value::Kind::kMap); }
  bool start_array(std::size_t) { return Begin(Value::Kind::kList); }
  bool end_object() { return End(); }
  bool end_array() { return End(); }
  bool key(std::string& key) {
    builder_.Key(std::move(key), TakeMark());
    return Count();
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& exception) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ...": drop
    // the prefix, since the mark already has the position.
    std::string_view text = exception.what();
    if (const auto colon = text.find(": "); colon != std::string_view::npos)
      text.remove_prefix(colon + 2);
    problems_.Add(position_.here, std::string(text));
    return false;
  }

  Value Take() { return builder_.Take(); }

 private:
  Mark TakeMark() {
    position_.in_token = false;
    return position_.token;
  }
  bool Place(Value value) {
    value.mark = TakeMark();
    builder_.Whole(std::move(value));
    return Count();
  }
  bool Begin(Value::Kind kind) {
    builder_.Begin(kind, TakeMark());
    return !builder_.too_deep() && Count();
  }
  bool Count() {
    if (values_ < most_values_) return ++values_, true;
    problems_.Add(position_.here, "there are more than " + std::to_string(most_values_) +
                                      " keys and values up to here");
    return false;
  }
  bool End() {
    TakeMark();
    builder_.End();
    return true;
  }

  Problems& problems_;
  internal::Builder builder_;
  const std::size_t most_values_;
  std::size_t values_ = 0;
  Position& position_;
};

}  // namespace

Result<Value> ParseJson(std::string_view text, std::string_view file, const ParseLimits& limits) {
  Problems problems{std::string(file)};
  if (text.size() > limits.bytes) problems.Add({}, "is larger than " + FormatBytes({limits.bytes}));
  if (problems.empty() && !IsUtf8(text)) problems.Add({}, "is not UTF-8 text");
  if (!problems.empty()) return problems.ToError();

  Position position;
  Handler handler(problems, limits, position);
  const bool whole = nlohmann::json::sax_parse(
      Iterator(text.data(), &position), Iterator(text.data() + text.size(), nullptr), &handler);
  if (!whole && problems.empty()) problems.Add(position.here, "is not JSON");
  if (!problems.empty()) return problems.ToError();
  return handler.Take();
}

}  // namespace penstock::base
