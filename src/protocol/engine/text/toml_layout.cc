// Scans TOML 1.0 only as far as needed to find the ends of strings, comments and brackets.
#include "protocol/engine/text/toml_layout.h"

#include <algorithm>

#include "base/toml.h"

namespace penstock::protocol::engine {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  base::Result<TomlLayout> Scan();

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  char Here() const { return AtEnd() ? '\0' : text_[at_]; }
  bool Ahead(std::string_view what) const { return text_.substr(at_, what.size()) == what; }
  void SkipBlanks() {
    while (Here() == ' ' || Here() == '\t') ++at_;
  }
  /// Skips a comment: to the line end or the end of the text.
  void SkipComment() { at_ = std::min(text_.find('\n', at_), text_.size()); }
  Status EndLine();
  Status Header(std::size_t line_begin);
  Status Entry(std::size_t line_begin);
  base::Result<Path> DottedKey();
  base::Result<std::string> Key();
  Status String();
  Status Value();
  Status Brackets();
  Error Lost() const {
    return Error(Code::kInternal, "cannot parse the text at byte " + std::to_string(at_));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  TomlLayout layout_;
};

base::Result<TomlLayout> Scanner::Scan() {
  if (const auto first = text_.find('\n');
      first != std::string_view::npos && first > 0 && text_[first - 1] == '\r')
    layout_.line_end = "\r\n";
  if (Ahead(kByteOrderMark)) at_ = kByteOrderMark.size();
  layout_.tables.push_back({.begin = at_, .header_end = at_});
  while (!AtEnd()) {
    const std::size_t line_begin = at_;
    SkipBlanks();
    if (Here() == '[') {
      TRY(Header(line_begin));
    } else if (AtEnd() || Here() == '#' || Here() == '\n' || Here() == '\r') {
      TRY(EndLine());
    } else {
      TRY(Entry(line_begin));
    }
  }
  layout_.tables.back().end = text_.size();
  return std::move(layout_);
}

/// Skips what may follow a header or a value on its line.
Status Scanner::EndLine() {
  SkipBlanks();
  if (Here() == '#') SkipComment();
  if (Here() == '\r') ++at_;
  if (AtEnd()) return {};
  if (Here() != '\n') return Lost();
  ++at_;
  return {};
}

Status Scanner::Header(std::size_t line_begin) {
  const bool list = Ahead("[[");
  at_ += list ? 2 : 1;
  ASSIGN(Path path, DottedKey());
  if (!Ahead(list ? "]]" : "]")) return Lost();
  at_ += list ? 2 : 1;
  TRY(EndLine());
  const bool listed = list || std::ranges::any_of(layout_.tables, [&path](const TomlTable& table) {
                        return table.listed && IsBelow(path, table.path);
                      });
  layout_.tables.back().end = line_begin;
  layout_.tables.push_back({std::move(path), listed, line_begin, at_, at_});
  return {};
}

Status Scanner::Entry(std::size_t line_begin) {
  TomlEntry entry{.table = layout_.tables.size() - 1,
                  .path = layout_.tables.back().path,
                  .line_begin = line_begin};
  ASSIGN(const Path key, DottedKey());
  entry.path.insert(entry.path.end(), key.begin(), key.end());
  if (Here() != '=') return Lost();
  ++at_;
  SkipBlanks();
  entry.value_begin = at_;
  TRY(Value());
  entry.value_end = at_;
  TRY(EndLine());
  entry.line_end = at_;
  layout_.entries.push_back(std::move(entry));
  return {};
}

base::Result<Path> Scanner::DottedKey() {
  Path path;
  while (true) {
    SkipBlanks();
    ASSIGN(std::string key, Key());
    path.push_back(std::move(key));
    SkipBlanks();
    if (Here() != '.') return path;
    ++at_;
  }
}

base::Result<std::string> Scanner::Key() {
  const std::size_t begin = at_;
  if (Here() == '"' || Here() == '\'') {
    TRY(String());
    // The TOML parser decodes the escapes.
    ASSIGN(const base::Value value,
           base::ParseToml("key = " + std::string(text_.substr(begin, at_ - begin)), "key"));
    return value.Find("key")->text;
  }
  constexpr std::string_view kEnds = " \t\r\n.=]\"'#[{";
  while (!AtEnd() && kEnds.find(Here()) == std::string_view::npos) ++at_;
  if (at_ == begin) return Lost();
  return std::string(text_.substr(begin, at_ - begin));
}

Status Scanner::String() {
  const char quote = Here();
  const bool lines = Ahead(std::string(3, quote));
  at_ += lines ? 3 : 1;
  while (!AtEnd()) {
    if (Here() == '\\' && quote == '"') {
      at_ += 2;
    } else if (lines ? Ahead(std::string(3, quote)) : Here() == quote) {
      at_ += lines ? 3 : 1;
      // Up to two quotes may precede the three closing ones.
      while (lines && Here() == quote) ++at_;
      return {};
    } else {
      ++at_;
    }
  }
  return Lost();
}

Status Scanner::Value() {
  if (Here() == '"' || Here() == '\'') return String();
  if (Here() == '[' || Here() == '{') return Brackets();
  const std::size_t begin = at_;
  while (!AtEnd() && Here() != '#' && Here() != '\n' && Here() != '\r') ++at_;
  while (at_ > begin && (text_[at_ - 1] == ' ' || text_[at_ - 1] == '\t')) --at_;
  return at_ > begin ? Status() : Lost();
}

Status Scanner::Brackets() {
  int depth = 0;
  while (!AtEnd()) {
    const char c = Here();
    if (c == '"' || c == '\'') {
      TRY(String());
      continue;
    }
    if (c == '#') {
      SkipComment();
      continue;
    }
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    ++at_;
    if (depth == 0) return {};
  }
  return Lost();
}

}  // namespace

base::Result<TomlLayout> LayOut(std::string_view text) { return Scanner(text).Scan(); }

std::string_view Indentation(std::string_view text, std::size_t line_begin) {
  const std::size_t end = std::min(text.find_first_not_of(" \t", line_begin), text.size());
  return text.substr(line_begin, end - line_begin);
}

}  // namespace penstock::protocol::engine
