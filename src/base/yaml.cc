// YAML through yaml-cpp's event parser, whose own trees lose duplicates and positions. The only file that knows yaml-cpp.
#include "base/yaml.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "base/core/document_builder.h"
#include "base/core/strings.h"

namespace penstock::base {
namespace {

Mark ToMark(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

bool OneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

/// Types a plain scalar by YAML 1.2's core schema (https://yaml.org/spec/1.2.2/#1032-tag-resolution).
void TypePlain(Value& value) {
  const std::string& text = value.text;
  if (OneOf(text, {"", "~", "null", "Null", "NULL"})) return;
  value.kind = Value::Kind::kString;
  if (OneOf(text, {"true", "True", "TRUE", "false", "False", "FALSE"})) {
    value.kind = Value::Kind::kBool;
    value.boolean = text[0] == 't' || text[0] == 'T';
    return;
  }
  const bool sign = text[0] == '-' || text[0] == '+';
  const std::string_view digits = std::string_view(text).substr(sign ? 1 : 0);
  const int radix = digits.starts_with("0x") ? 16 : digits.starts_with("0o") ? 8 : 10;
  const auto magnitude = ParseInt(radix == 10 ? digits : digits.substr(2), radix);
  if (magnitude && *magnitude >= 0 && (radix == 10 || !sign)) {
    value.kind = Value::Kind::kInt;
    value.integer = text[0] == '-' ? -*magnitude : *magnitude;
    value.number = static_cast<double>(value.integer);
    return;
  }
  const bool numeric = !digits.empty() && digits.find_first_not_of("0123456789.eE+-") == std::string_view::npos &&
                       (std::isdigit(static_cast<unsigned char>(digits[0])) != 0 || digits[0] == '.');
  char* end = nullptr;
  const double number = numeric ? std::strtod(text.c_str(), &end) : 0;
  if (numeric && *end == '\0' && std::isfinite(number)) {
    value.kind = Value::Kind::kFloat;
    value.number = number;
  }
}

class Handler final : public YAML::EventHandler {
 public:
  Handler(Problems& problems, int most_depth) : problems_(problems), builder_(problems, most_depth) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Refuse(mark, anchor, "");
    Value value;
    value.mark = ToMark(mark);
    builder_.Scalar(std::move(value));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    problems_.Add(ToMark(mark), "aliases (*name) are not read here; write the value out");
    OnNull(mark, 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& text) override {
    Refuse(mark, anchor, tag);
    Value value;
    value.mark = ToMark(mark);
    value.text = text;
    value.kind = Value::Kind::kString;
    if (tag == "?") {
      value.kind = Value::Kind::kNull;
      TypePlain(value);
    }
    builder_.Scalar(std::move(value));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    Begin(Value::Kind::kList, mark, tag, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    Begin(Value::Kind::kMap, mark, tag, anchor);
  }
  void OnSequenceEnd() override { builder_.End(); }
  void OnMapEnd() override { builder_.End(); }

  Value Take() { return builder_.Take(); }

 private:
  void Begin(Value::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    Refuse(mark, anchor, tag);
    builder_.Begin(kind, ToMark(mark));
    if (builder_.too_deep()) throw YAML::ParserException(mark, "too deep");
  }

  void Refuse(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag) {
    if (anchor != 0) problems_.Add(ToMark(mark), "anchors (&name) are not read here; remove it");
    if (!tag.empty() && tag != "?" && tag != "!") problems_.Add(ToMark(mark), "tags (" + tag + ") are not read here; remove it");
  }

  Problems& problems_;
  internal::Builder builder_;
};

}  // namespace

Result<Value> ParseYaml(std::string_view text, std::string_view file, const ParseLimits& limits) {
  Problems problems{std::string(file)};
  if (text.size() > limits.bytes) problems.Add({}, "is larger than " + FormatBytes({limits.bytes}));
  if (problems.empty() && !IsUtf8(text)) problems.Add({}, "is not UTF-8 text");
  if (problems.empty() && text.find('\0') != std::string_view::npos) problems.Add({}, "contains a NUL byte");
  if (!problems.empty()) return problems.ToError();

  Handler handler(problems, limits.depth);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (parser.HandleNextDocument(handler)) {
      Problems ignored{std::string(file)};
      Handler second(ignored, limits.depth);
      if (parser.HandleNextDocument(second)) problems.Add({}, "holds more than one document; keep one");
    }
  } catch (const YAML::Exception& exception) {
    if (problems.empty()) problems.Add(ToMark(exception.mark), exception.msg);
  }
  if (!problems.empty()) return problems.ToError();
  return handler.Take();
}

}  // namespace penstock::base
