// Reads YAML with yaml-cpp's event parser, since yaml-cpp's own trees lose duplicates and
// positions. The only file that uses yaml-cpp.
#include "base/yaml.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "base/core/document_builder.h"
#include "base/core/strings.h"

namespace penstock::base {
namespace {

Mark ToMark(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

bool OneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

/// Keys and values, with all aliases expanded: far more than any configuration has. Each takes a
/// hundred bytes and more, so that a short text could fill the memory.
constexpr std::size_t kMaxNodes = 100'000;
constexpr std::size_t kBytesOfNode = 256;  // of a text that aliases repeat

/// Types a plain scalar by YAML 1.2's core schema
/// (https://yaml.org/spec/1.2.2/#1032-tag-resolution); under a lenient reading YAML 1.1's words are
/// booleans, too (https://yaml.org/type/bool.html without y and n, as in goyaml).
void TypePlain(Value& value, bool lenient) {
  const std::string& text = value.text;
  if (OneOf(text, {"", "~", "null", "Null", "NULL"})) return;
  value.kind = Value::Kind::kString;
  const bool yes = OneOf(text, {"true", "True", "TRUE"}) ||
                   (lenient && OneOf(text, {"yes", "Yes", "YES", "on", "On", "ON"}));
  const bool no = OneOf(text, {"false", "False", "FALSE"}) ||
                  (lenient && OneOf(text, {"no", "No", "NO", "off", "Off", "OFF"}));
  if (yes || no) {
    value.kind = Value::Kind::kBool;
    value.boolean = yes;
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
  const bool numeric =
      !digits.empty() && digits.find_first_not_of("0123456789.eE+-") == std::string_view::npos &&
      (std::isdigit(static_cast<unsigned char>(digits[0])) != 0 || digits[0] == '.');
  char* end = nullptr;
  const double number = numeric ? std::strtod(text.c_str(), &end) : 0;
  if (numeric && *end == '\0' && std::isfinite(number)) {
    value.kind = Value::Kind::kFloat;
    value.number = number;
  }
}

/// Adds the entries of merge keys (https://yaml.org/type/merge.html) to the map: the map's own keys
/// take precedence, then earlier merged maps over later ones.
Value::Map Merged(const Value::Map& map) {
  Value::Map merged;
  std::set<std::string, std::less<>> keys;
  const auto add = [&](const Value::Entry& entry) {
    if (keys.insert(entry.key).second) merged.push_back(entry);
  };
  for (const Value::Entry& entry : map)
    if (entry.key != "<<") add(entry);
  for (const Value::Entry& entry : map) {
    if (entry.key != "<<") continue;
    const Value::List one = {entry.value};
    for (const Value& source : entry.value.list ? *entry.value.list : one)
      if (source.map)
        for (const Value::Entry& brought : *source.map) add(brought);
  }
  return merged;
}

/// The document with its merge keys resolved. The caller limits the depth.
Value Resolved(Value value) {
  if (value.list) {
    Value::List list;
    for (const Value& item : *value.list) list.push_back(Resolved(item));
    value.list = std::make_shared<const Value::List>(std::move(list));
  } else if (value.map) {
    Value::Map map = *value.map;
    for (Value::Entry& entry : map) entry.value = Resolved(std::move(entry.value));
    value.map = std::make_shared<const Value::Map>(value.Find("<<") != nullptr ? Merged(map)
                                                                               : std::move(map));
  }
  return value;
}

class Handler final : public YAML::EventHandler {
 public:
  Handler(Problems& problems, int most_depth)
      : problems_(problems), most_depth_(most_depth), builder_(problems, most_depth) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Refuse(mark, anchor, "");
    Value value;
    value.mark = ToMark(mark);
    Count(mark, 1);
    Put({.value = std::move(value)}, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (!problems_.lenient()) {
      problems_.Add(ToMark(mark), "aliases (*name) are not supported; write the value out");
      return OnNull(mark, 0);
    }
    const auto named = anchors_.find(anchor);
    if (named == anchors_.end())
      throw YAML::ParserException(mark, "an alias refers to a value that contains it");
    if (builder_.depth() + named->second.height > most_depth_)
      throw YAML::ParserException(mark, "nested too deeply");
    Part part = named->second;
    part.value.mark = ToMark(mark);
    Count(mark, part.nodes);
    Put(std::move(part), 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    Refuse(mark, anchor, tag);
    Value value;
    value.mark = ToMark(mark);
    value.text = text;
    value.kind = Value::Kind::kString;
    if (tag == "?") {
      value.kind = Value::Kind::kNull;
      TypePlain(value, problems_.lenient());
    }
    Count(mark, 1);
    // An alias copies the text.
    const std::size_t nodes = 1 + text.size() / kBytesOfNode;
    Put({.value = std::move(value), .nodes = nodes}, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Begin(Value::Kind::kList, mark, tag, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Begin(Value::Kind::kMap, mark, tag, anchor);
  }
  void OnSequenceEnd() override { End(); }
  void OnMapEnd() override { End(); }

  Value Take() { return problems_.lenient() ? Resolved(builder_.Take()) : builder_.Take(); }

 private:
  /// A value with its cost if an alias repeats it.
  struct Part {
    Value value;
    std::size_t nodes = 1;
    int height = 1;
  };
  struct Open {
    YAML::anchor_t anchor = 0;
    std::size_t nodes = 1;
    int height = 1;
  };

  void Begin(Value::Kind kind, const YAML::Mark& mark, const std::string& tag,
             YAML::anchor_t anchor) {
    Refuse(mark, anchor, tag);
    builder_.Begin(kind, ToMark(mark));
    if (builder_.too_deep()) throw YAML::ParserException(mark, "nested too deeply");
    open_.push_back({.anchor = anchor});
    Count(mark, 1);
  }

  void Count(const YAML::Mark& mark, std::size_t nodes) {
    nodes_ += nodes;
    if (nodes_ > kMaxNodes)
      throw YAML::ParserException(mark, "there are more than " + std::to_string(kMaxNodes) +
                                            " keys and values up to here, with aliases written "
                                            "out: leave some out");
  }

  void End() {
    const Open open = open_.back();
    open_.pop_back();
    Note({.value = builder_.End(), .nodes = open.nodes, .height = open.height}, open.anchor);
  }

  void Put(Part part, YAML::anchor_t anchor) {
    builder_.Whole(part.value);
    Note(std::move(part), anchor);
  }

  /// Adds a complete part to its parent, and keeps it for aliases.
  void Note(Part part, YAML::anchor_t anchor) {
    if (!open_.empty()) {
      open_.back().nodes += part.nodes;
      open_.back().height = std::max(open_.back().height, part.height + 1);
    }
    if (anchor != 0) anchors_[anchor] = std::move(part);
  }

  void Refuse(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag) {
    if (anchor != 0 && !problems_.lenient())
      problems_.Add(ToMark(mark), "anchors (&name) are not supported; remove it");
    if (!tag.empty() && tag != "?" && tag != "!")
      problems_.Add(ToMark(mark), "tags (" + tag + ") are not supported; remove it");
  }

  Problems& problems_;
  const int most_depth_;
  internal::Builder builder_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Part> anchors_;
  std::size_t nodes_ = 0;
};

}  // namespace

Result<Value> ParseYaml(std::string_view text, std::string_view file, const ParseLimits& limits) {
  Problems problems{std::string(file)};
  return ParseYaml(text, problems, limits);
}

Result<Value> ParseYaml(std::string_view text, Problems& problems, const ParseLimits& limits) {
  if (text.size() > limits.bytes) problems.Add({}, "is larger than " + FormatBytes({limits.bytes}));
  if (problems.empty() && !IsUtf8(text)) problems.Add({}, "is not UTF-8 text");
  if (problems.empty() && text.find('\0') != std::string_view::npos)
    problems.Add({}, "contains a NUL byte");
  if (!problems.empty()) return problems.ToError();

  Handler handler(problems, limits.depth);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (parser.HandleNextDocument(handler)) {
      Problems ignored{""};
      Handler second(ignored, limits.depth);
      if (parser.HandleNextDocument(second)) {
        const std::string what = "contains more than one document; ";
        problems.Tolerate({}, what + "keep one", what + "only the first is used");
      }
    }
  } catch (const YAML::Exception& exception) {
    if (problems.empty()) problems.Add(ToMark(exception.mark), exception.msg);
  }
  if (!problems.empty()) return problems.ToError();
  return handler.Take();
}

Result<Value> ParseYamlOrJson(std::string_view text, Problems& problems) {
  if (Trim(text).starts_with('{'))
    if (auto json = ParseJson(text, "", {.values = kMaxNodes}); json.ok()) return json;
  return ParseYaml(text, problems);
}

Result<Value> ParseYamlOrJson(std::string_view text, std::string_view file) {
  Problems problems{std::string(file)};
  return ParseYamlOrJson(text, problems);
}

}  // namespace penstock::base
