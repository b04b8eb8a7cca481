// Implements templates of kubectl's JSONPath (k8s.io/client-go/util/jsonpath).
#include <algorithm>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "app/command/output.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"

namespace penstock::app::command {

namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Status;
using Json = nlohmann::ordered_json;
using Found = std::vector<const Json*>;

constexpr int kMaxDepth = 32;  // of filters in filters, ranges in ranges

struct Step;
using Path = std::vector<Step>;

/// One side of a comparison: a path, or a value.
struct Operand {
  bool is_path = false, from_root = false;
  std::shared_ptr<const Path> path;
  Json value;
};

struct Filter {
  Operand left, right;
  std::string compares;  ///< "==", ...; empty: whether the left side exists
};

/// Selects from each value that was found so far.
struct Step {
  enum Kind { kNames, kEvery, kIndices, kSlice, kBelow, kFilter } kind = kNames;
  std::vector<std::string> names;
  std::vector<std::int64_t> indices;
  std::optional<std::int64_t> begin, end, step;
  std::shared_ptr<const Filter> filter;
};

struct Node {
  enum Kind { kText, kPath, kRange } kind = kText;
  std::string text;
  bool from_root = false;
  Path path;
  std::vector<Node> body;  ///< of a range
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<Node>> Parse() {
    auto nodes = Nodes(0);
    if (nodes.ok() && at_ < text_.size()) return Problem("{end} without {range}");
    return nodes;
  }

  /// The whole text as one expression without braces.
  Result<std::vector<Node>> ParseBare() {
    Node node{.kind = Node::kPath};
    ASSIGN(node.path, PathHere(node.from_root, 0));
    if (at_ < text_.size()) return Problem("unexpected \"" + std::string(text_.substr(at_)) + "\"");
    return std::vector<Node>{std::move(node)};
  }

 private:
  Error Problem(const std::string& what) const {
    return {Code::kInvalidArgument, what + ", at character " + std::to_string(at_ + 1)};
  }

  bool Skip(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void SkipBlanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool SkipWord(std::string_view word) {
    const std::size_t before = at_;
    SkipBlanks();
    if (Skip(word) && (at_ == text_.size() || text_[at_] == ' ' || text_[at_] == '}')) return true;
    at_ = before;
    return false;
  }
  Status Expect(std::string_view token) {
    SkipBlanks();
    return Skip(token) ? Status() : Problem("expected \"" + std::string(token) + "\"");
  }

  /// Up to the end of the text, or of the range that it is in.
  Result<std::vector<Node>> Nodes(int depth) {
    if (depth > kMaxDepth) return Problem("too many ranges in each other");
    std::vector<Node> nodes;
    while (at_ < text_.size()) {
      const std::size_t brace = std::min(text_.find('{', at_), text_.size());
      if (brace > at_) nodes.push_back({.text = std::string(text_.substr(at_, brace - at_))});
      at_ = brace;
      if (!Skip("{")) break;
      const std::size_t expression = at_;
      if (SkipWord("end")) {
        at_ = expression - 1;
        return nodes;
      }
      ASSIGN(Node node, Expression(depth));
      nodes.push_back(std::move(node));
    }
    return nodes;
  }

  Result<Node> Expression(int depth) {
    Node node;
    SkipBlanks();
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      ASSIGN(node.text, Quoted());
    } else if (SkipWord("range")) {
      node.kind = Node::kRange;
      ASSIGN(node.path, PathHere(node.from_root, depth));
      TRY(Expect("}"));
      ASSIGN(node.body, Nodes(depth + 1));
      if (!Skip("{") || !SkipWord("end")) return Problem("{range} without {end}");
    } else {
      node.kind = Node::kPath;
      ASSIGN(node.path, PathHere(node.from_root, depth));
    }
    TRY(Expect("}"));
    return node;
  }

  Result<std::string> Quoted() {
    const char quote = text_[at_++];
    std::string value;
    while (at_ < text_.size() && text_[at_] != quote) {
      char c = text_[at_++];
      if (c == '\\' && at_ < text_.size()) {
        c = text_[at_++];
        c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
      }
      value += c;
    }
    if (at_ == text_.size()) return Problem("a quote does not end");
    ++at_;
    return value;
  }

  /// A key without quotes; a backslash takes the next character as it is: a\.b.
  std::string Name() {
    std::string name;
    while (at_ < text_.size() &&
           std::string_view(".[]{}()=!<>, '\"").find(text_[at_]) == std::string_view::npos) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      name += text_[at_++];
    }
    return name;
  }

  Result<Path> PathHere(bool& from_root, int depth) {
    if (depth > kMaxDepth) return Problem("too many filters in each other");
    Path path;
    SkipBlanks();
    from_root = Skip("$");
    if (!from_root) (void)Skip("@");
    for (;;) {
      if (Skip("..")) {
        path.push_back({.kind = Step::kBelow});
        if (at_ < text_.size() && text_[at_] == '[') continue;
        TRY(NameStep(path));
      } else if (Skip(".")) {
        if (at_ < text_.size() && text_[at_] == '[') continue;
        if (at_ == text_.size() || text_[at_] == '}') return path;  // "{.}": the value itself
        TRY(NameStep(path));
      } else if (Skip("[")) {
        ASSIGN(Step step, Brackets(depth));
        path.push_back(std::move(step));
      } else if (path.empty() && !Name().empty()) {
        return Problem("expected a path such as .devices[*].id");
      } else {
        return path;
      }
    }
  }

  Status NameStep(Path& path) {
    if (Skip("*")) {
      path.push_back({.kind = Step::kEvery});
      return {};
    }
    std::string name = Name();
    if (name.empty()) return Problem("expected a key");
    path.push_back({.names = {std::move(name)}});
    return {};
  }

  Result<Step> Brackets(int depth) {
    SkipBlanks();
    if (Skip("*")) return Closed({.kind = Step::kEvery});
    if (Skip("?")) return FilterStep(depth);
    Step step;
    if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) {
      do {
        SkipBlanks();
        if (at_ == text_.size()) return Problem("expected \"]\"");
        ASSIGN(std::string name, Quoted());
        step.names.push_back(std::move(name));
        SkipBlanks();
      } while (Skip(","));
      return Closed(std::move(step));
    }
    const auto first = Number();
    SkipBlanks();
    if (Skip(":")) {
      step = {.kind = Step::kSlice, .begin = first, .end = Number()};
      if (Skip(":")) step.step = Number();
      return Closed(std::move(step));
    }
    if (!first) return Problem("expected a number, a quoted key, * or a filter");
    step = {.kind = Step::kIndices, .indices = {*first}};
    while (Skip(",")) {
      SkipBlanks();
      const auto next = Number();
      if (!next) return Problem("expected a number");
      step.indices.push_back(*next);
    }
    return Closed(std::move(step));
  }

  Result<Step> Closed(Step step) {
    TRY(Expect("]"));
    return step;
  }

  std::optional<std::int64_t> Number() {
    const std::size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    const auto number = base::ParseInt(text_.substr(begin, at_ - begin));
    if (!number) at_ = begin;
    return number;
  }

  Result<Step> FilterStep(int depth) {
    TRY(Expect("("));
    Filter filter;
    ASSIGN(filter.left, Side(depth));
    SkipBlanks();
    for (const char* one : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!Skip(one)) continue;
      filter.compares = one;
      ASSIGN(filter.right, Side(depth));
      break;
    }
    TRY(Expect(")"));
    return Closed(
        {.kind = Step::kFilter, .filter = std::make_shared<const Filter>(std::move(filter))});
  }

  Result<Operand> Side(int depth) {
    Operand side;
    SkipBlanks();
    if (at_ == text_.size()) return Problem("expected a path or a value");
    if (text_[at_] == '"' || text_[at_] == '\'') {
      ASSIGN(side.value, Quoted());
      return side;
    }
    if (text_[at_] == '@' || text_[at_] == '$' || text_[at_] == '.') {
      side.is_path = true;
      ASSIGN(Path path, PathHere(side.from_root, depth + 1));
      side.path = std::make_shared<const Path>(std::move(path));
      return side;
    }
    // A number, true or false; a number may have a point, which ends a name.
    std::string word = Name();
    if (Skip(".")) word += "." + Name();
    side.value = base::ParseJson<Json>(word);
    if (word.empty() || side.value.is_discarded())
      return Problem("\"" + word + "\" is not a value; put texts into quotes");
    return side;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
};

class Evaluation {
 public:
  explicit Evaluation(const Json& root) : root_(root) {}

  std::string Text(const std::vector<Node>& nodes, const Json& current) const {
    std::string text;
    for (const Node& node : nodes) {
      if (node.kind == Node::kText) {
        text += node.text;
        continue;
      }
      const Found found = Select(node.path, node.from_root ? root_ : current);
      if (node.kind == Node::kRange) {
        for (const Json* one : found) text += Text(node.body, *one);
      } else {
        std::vector<std::string> words;
        for (const Json* one : found) words.push_back(WordOf(*one));
        text += base::Join(words, " ");
      }
    }
    return text;
  }

 private:
  static std::string WordOf(const Json& value) {
    if (value.is_string()) return value.get<std::string>();
    return value.is_null() ? "" : base::JsonText(value);
  }

  Found Select(const Path& path, const Json& from) const {
    Found found{&from};
    for (const Step& step : path) {
      Found next;
      for (const Json* one : found) Take(step, *one, next);
      found = std::move(next);
    }
    return found;
  }

  void Take(const Step& step, const Json& from, Found& found) const {
    switch (step.kind) {
      case Step::kNames:
        for (const std::string& name : step.names)
          if (from.is_object() && from.contains(name)) found.push_back(&from.at(name));
        return;
      case Step::kEvery:
        if (from.is_structured())
          for (const Json& one : from) found.push_back(&one);
        return;
      case Step::kIndices:
        for (std::int64_t index : step.indices) {
          if (!from.is_array()) return;
          const auto size = static_cast<std::int64_t>(from.size());
          if (index < 0) index += size;
          if (index >= 0 && index < size) found.push_back(&from[static_cast<std::size_t>(index)]);
        }
        return;
      case Step::kSlice: return TakeSlice(step, from, found);
      case Step::kBelow: return TakeBelow(from, found);
      case Step::kFilter:
        if (!from.is_array()) return;
        for (const Json& one : from)
          if (Holds(*step.filter, one)) found.push_back(&one);
        return;
    }
  }

  static void TakeSlice(const Step& step, const Json& from, Found& found) {
    if (!from.is_array()) return;
    const auto size = static_cast<std::int64_t>(from.size());
    const auto place = [size](std::optional<std::int64_t> given, std::int64_t otherwise) {
      if (!given) return otherwise;
      return std::clamp<std::int64_t>(*given < 0 ? *given + size : *given, 0, size);
    };
    const std::int64_t by = std::clamp<std::int64_t>(step.step.value_or(1), 1, size + 1);
    for (std::int64_t at = place(step.begin, 0); at < place(step.end, size); at += by)
      found.push_back(&from[static_cast<std::size_t>(at)]);
  }

  static void TakeBelow(const Json& from, Found& found) {
    found.push_back(&from);
    if (from.is_structured())
      for (const Json& one : from)
        if (one.is_structured()) TakeBelow(one, found);
  }

  bool Holds(const Filter& filter, const Json& current) const {
    const Found left = ValuesOf(filter.left, current);
    if (filter.compares.empty()) return !left.empty();
    const Found right = ValuesOf(filter.right, current);
    if (left.empty() || right.empty()) return false;
    const Json &a = *left.front(), &b = *right.front();
    if (filter.compares == "==") return a == b;
    if (filter.compares == "!=") return a != b;
    const bool comparable = (a.is_number() && b.is_number()) || (a.is_string() && b.is_string());
    if (!comparable) return false;
    if (filter.compares == "<") return a < b;
    if (filter.compares == "<=") return a <= b;
    return filter.compares == ">" ? a > b : a >= b;
  }

  Found ValuesOf(const Operand& side, const Json& current) const {
    if (!side.is_path) return {&side.value};
    return Select(*side.path, side.from_root ? root_ : current);
  }

  const Json& root_;
};

Result<std::vector<Node>> ParseTemplate(std::string_view path) {
  const bool bare = path.find('{') == std::string_view::npos;
  return bare ? Parser(path).ParseBare() : Parser(path).Parse();
}

}  // namespace

Status CheckJsonPath(std::string_view path) {
  if (path.empty())
    return Error(Code::kInvalidArgument, "expected a template, e.g. jsonpath='{.devices[*].id}'");
  const auto nodes = ParseTemplate(path);
  return nodes.ok() ? Status() : nodes.error();
}

Result<std::string> JsonPath(std::string_view path, std::string_view json) {
  ASSIGN(const std::vector<Node> nodes, ParseTemplate(path));
  const Json root = base::ParseJson<Json>(json);
  if (root.is_discarded()) return Error(Code::kInternal, "the output is not JSON");
  return Evaluation(root).Text(nodes, root);
}

}  // namespace penstock::app::command
