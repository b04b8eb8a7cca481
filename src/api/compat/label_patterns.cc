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

class PatternReader {
 public:
  explicit PatternReader(std::string_view text) : text_(text) {}

  base::Result<Globs> Whole() {
    if (text_.starts_with("(?i)")) text_.remove_prefix(4);
    ASSIGN(Globs globs, Alternatives(0));
    if (!text_.empty()) return Wrong("a \")\" without its \"(\"");
    for (std::string& glob : globs) TRY(Anchor(glob));
    std::ranges::sort(globs);
    globs.erase(std::unique(globs.begin(), globs.end()), globs.end());
    return globs;
  }

 private:
  static base::Error Wrong(const std::string& what) { return {base::Code::kInvalidArgument, what}; }

  base::Result<Globs> Alternatives(int depth) {
    if (depth > kDeepest) return Wrong("groups nested too deeply");
    Globs all;
    while (true) {
      ASSIGN(const Globs globs, Sequence(depth));
      all.insert(all.end(), globs.begin(), globs.end());
      if (all.size() > kMaxGlobs)
        return Wrong("more than " + std::to_string(kMaxGlobs) + " ways to match");
      if (!text_.starts_with('|')) return all;
      text_.remove_prefix(1);
    }
  }

  base::Result<Globs> Sequence(int depth) {
    Globs globs = {""};
    while (!text_.empty() && text_.front() != '|' && text_.front() != ')') {
      ASSIGN(const Globs next, Repeated(depth));
      Globs longer;
      for (const std::string& glob : globs)
        for (const std::string& part : next) longer.push_back(glob + part);
      if (longer.size() > kMaxGlobs)
        return Wrong("more than " + std::to_string(kMaxGlobs) + " ways to match");
      globs = std::move(longer);
    }
    return globs;
  }

  /// Parses an atom and its repetition sign.
  base::Result<Globs> Repeated(int depth) {
    ASSIGN(Globs globs, Atom(depth));
    const char sign = text_.empty() ? '\0' : text_.front();
    if (sign != '*' && sign != '+' && sign != '?' && sign != '{') return globs;
    text_.remove_prefix(1);
    if (text_.starts_with('?')) text_.remove_prefix(1);  // "lazy" matches the same
    const bool any = globs == Globs{"?"};
    if (sign == '*' && any) return Globs{"*"};
    if (sign == '+' && any) return Globs{"?*"};
    if (sign != '?') return Wrong(std::string("\"") + sign + "\" after something other than \".\"");
    globs.emplace_back("");
    return globs;
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
    ASSIGN(Globs globs, Alternatives(depth + 1));
    if (!text_.starts_with(')')) return Wrong("a \"(\" without its \")\"");
    text_.remove_prefix(1);
    return globs;
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
  static base::Status Anchor(std::string& glob) {
    const std::size_t begin = glob.find_first_not_of(kBegin);
    const bool begins = begin != 0 && !glob.empty();
    glob.erase(0, std::min(begin, glob.size()));
    const bool ends = glob.ends_with(kEnd);
    while (glob.ends_with(kEnd)) glob.pop_back();
    if (glob.find_first_of({kBegin, kEnd}) != std::string::npos)
      return Wrong("a \"^\" or \"$\" in the middle");
    if (!begins && !glob.starts_with('*')) glob.insert(0, "*");
    if (!ends && !glob.ends_with('*')) glob += "*";
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
  auto globs = PatternReader(expression).Whole();
  if (!globs.ok()) return refuse(globs.error().message());
  return globs;
}

}  // namespace penstock::api::compat
