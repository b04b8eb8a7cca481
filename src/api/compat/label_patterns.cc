// A recursive descent parser that turns every path through the expression into a glob. This avoids
// a regular expression matcher, whose time or stack a hostile expression could exhaust.
#include "api/compat/label_patterns.h"

#include <algorithm>
#include <cctype>

namespace penstock::api::compat {

namespace {

using Globs = std::vector<std::string>;

constexpr std::size_t kMaxGlobs = 64;
constexpr std::size_t kLongest = 1024;
constexpr int kDeepest = 16;
constexpr char kBegin = '\x01',
               kEnd = '\x02';  // anchors, until their position is known to be allowed

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  base::Result<Globs> Whole() {
    if (text_.starts_with("(?i)")) text_.remove_prefix(4);
    ASSIGN(Globs ways, Alternatives(0));
    if (!text_.empty()) return Wrong("a \")\" without its \"(\"");
    for (std::string& way : ways) TRY(Anchor(way));
    std::sort(ways.begin(), ways.end());
    ways.erase(std::unique(ways.begin(), ways.end()), ways.end());
    return ways;
  }

 private:
  static base::Error Wrong(const std::string& what) { return {base::Code::kInvalidArgument, what}; }

  base::Result<Globs> Alternatives(int depth) {
    if (depth > kDeepest) return Wrong("groups nested too deeply");
    Globs all;
    while (true) {
      ASSIGN(const Globs ways, Sequence(depth));
      all.insert(all.end(), ways.begin(), ways.end());
      if (all.size() > kMaxGlobs)
        return Wrong("more than " + std::to_string(kMaxGlobs) + " ways to match");
      if (!text_.starts_with('|')) return all;
      text_.remove_prefix(1);
    }
  }

  base::Result<Globs> Sequence(int depth) {
    Globs ways = {""};
    while (!text_.empty() && text_.front() != '|' && text_.front() != ')') {
      ASSIGN(const Globs next, Repeated(depth));
      Globs longer;
      for (const std::string& way : ways)
        for (const std::string& part : next) longer.push_back(way + part);
      if (longer.size() > kMaxGlobs)
        return Wrong("more than " + std::to_string(kMaxGlobs) + " ways to match");
      ways = std::move(longer);
    }
    return ways;
  }

  /// Parses an atom and its repetition sign.
  base::Result<Globs> Repeated(int depth) {
    ASSIGN(Globs ways, Atom(depth));
    const char sign = text_.empty() ? '\0' : text_.front();
    if (sign != '*' && sign != '+' && sign != '?' && sign != '{') return ways;
    text_.remove_prefix(1);
    if (text_.starts_with('?')) text_.remove_prefix(1);  // "lazy" matches the same
    const bool any = ways == Globs{"?"};
    if (sign == '*' && any) return Globs{"*"};
    if (sign == '+' && any) return Globs{"?*"};
    if (sign != '?') return Wrong(std::string("\"") + sign + "\" after something other than \".\"");
    ways.emplace_back("");
    return ways;
  }

  base::Result<Globs> Atom(int depth) {
    const char c = text_.front();
    text_.remove_prefix(1);
    switch (c) {
      case '^': return Globs{std::string(1, kBegin)};
      case '$': return Globs{std::string(1, kEnd)};
      case '.': return Globs{"?"};
      case '(': return Group(depth);
      case '[': return Wrong("a character class, \"[...]\"");
      case '*':
      case '+':
      case '?':
      case '{': return Wrong(std::string("\"") + c + "\" with nothing before it");
      case '\\': return Escaped();
      default: return Literal(c);
    }
  }

  base::Result<Globs> Group(int depth) {
    if (text_.starts_with("?:")) {
      text_.remove_prefix(2);
    } else if (text_.starts_with('?')) {
      return Wrong("a group that begins with \"(?\"");
    }
    ASSIGN(Globs ways, Alternatives(depth + 1));
    if (!text_.starts_with(')')) return Wrong("a \"(\" without its \")\"");
    text_.remove_prefix(1);
    return ways;
  }

  base::Result<Globs> Escaped() {
    const char c = text_.empty() ? '\0' : text_.front();
    if (c == '\0' || std::isalnum(static_cast<unsigned char>(c)) != 0)
      return Wrong("\"\\" + std::string(text_.substr(0, 1)) + "\"");
    text_.remove_prefix(1);
    return Literal(c);
  }

  static base::Result<Globs> Literal(char c) {
    const bool in_keys = static_cast<unsigned char>(c) < 0x80 &&
                         (std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                          std::string_view("-_./").find(c) != std::string_view::npos);
    if (!in_keys) return Wrong("a character that label keys cannot contain");
    return Globs{std::string(1, c)};
  }

  /// An expression without anchors may match anywhere in the key.
  static base::Status Anchor(std::string& way) {
    const std::size_t begin = way.find_first_not_of(kBegin);
    const bool begins = begin != 0 && !way.empty();
    way.erase(0, std::min(begin, way.size()));
    const bool ends = way.ends_with(kEnd);
    while (way.ends_with(kEnd)) way.pop_back();
    if (way.find_first_of({kBegin, kEnd}) != std::string::npos)
      return Wrong("a \"^\" or \"$\" in the middle");
    if (!begins && !way.starts_with('*')) way.insert(0, "*");
    if (!ends && !way.ends_with('*')) way += "*";
    return {};
  }

  std::string_view text_;
};

}  // namespace

base::Result<std::vector<std::string>> GlobsOf(std::string_view expression) {
  const std::string shown =
      "\"" + std::string(expression.substr(0, 80)) + (expression.size() > 80 ? "..." : "") + "\"";
  const auto refuse = [&shown](const std::string& what) {
    return base::Error(base::Code::kInvalidArgument,
                       shown + " has " + what +
                           ", which a glob cannot express; write globs in telemetry.holderLabels, "
                           "such as \"app.kubernetes.io/*\"");
  };
  if (expression.size() > kLongest)
    return refuse("more than " + std::to_string(kLongest) + " characters");
  auto globs = Reader(expression).Whole();
  if (!globs.ok()) return refuse(globs.error().message());
  return globs;
}

}  // namespace penstock::api::compat
