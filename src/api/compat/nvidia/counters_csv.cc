// Follows encoding/csv's documentation: a quoted field begins with a quote as its very first
// character; a quote in it is doubled; it may span several lines; a quote in an unquoted field is
// an error. "\r\n" ends a line like "\n".
#include "api/compat/nvidia/counters_csv.h"

#include <optional>
#include <utility>

namespace penstock::api::compat::internal {

namespace {

constexpr std::string_view kBareQuote =
    "has a quote in a field that does not begin with one; a quoted field must begin with its "
    "quote, without a space before it";
constexpr std::string_view kStrayQuote =
    "a quoted field does not end with a quote before its comma; a quote inside it is written twice";

class CountersReader {
 public:
  explicit CountersReader(std::string_view text) : text_(text) {}

  bool AtEnd() const { return at_ >= text_.size(); }
  std::size_t line() const { return line_; }

  /// Returns the next line without its end.
  std::string_view Line() {
    const std::size_t end = text_.find('\n', at_);
    std::string_view line = text_.substr(at_, end == std::string_view::npos ? end : end - at_);
    at_ = end == std::string_view::npos ? text_.size() : end + 1;
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  /// Returns the record that begins with this line; nothing if it is invalid, with the reason in
  /// `what`.
  std::optional<std::vector<std::string>> Record(std::string_view line, std::string_view& what) {
    std::vector<std::string> fields;
    while (true) {
      std::string field;
      const bool quoted = line.starts_with('"');
      if (!(quoted ? Quoted(line, field, what) : Plain(line, field, what))) return std::nullopt;
      fields.push_back(std::move(field));
      if (line.empty()) return fields;
      line.remove_prefix(1);  // the comma; a field follows it, possibly an empty one
    }
  }

 private:
  static bool Plain(std::string_view& line, std::string& field, std::string_view& what) {
    field = line.substr(0, line.find(','));
    line.remove_prefix(field.size());
    if (field.find('"') == std::string::npos) return true;
    what = kBareQuote;
    return false;
  }

  bool Quoted(std::string_view& line, std::string& field, std::string_view& what) {
    line.remove_prefix(1);
    while (true) {
      const std::size_t quote = line.find('"');
      field += line.substr(0, quote);
      if (quote == std::string_view::npos) {
        if (AtEnd()) break;
        field += '\n';
        line = Line();
        continue;
      }
      line.remove_prefix(quote + 1);
      if (line.empty() || line.front() == ',') return true;
      if (line.front() != '"') break;
      field += '"';
      line.remove_prefix(1);
    }
    what = kStrayQuote;
    return false;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 0;  // number of the last line read
};

}  // namespace

void ReadCsv(std::string_view text, const std::function<bool(CsvRecord)>& record,
             const std::function<bool(std::size_t line, std::string_view what)>& wrong) {
  CountersReader reader(text);
  while (!reader.AtEnd()) {
    const std::string_view line = reader.Line();
    if (line.empty() || line.front() == '#') continue;
    const std::size_t begin = reader.line();
    std::string_view what;
    auto fields = reader.Record(line, what);
    const bool on = fields ? record({begin, *std::move(fields)}) : wrong(begin, what);
    if (!on) return;
  }
}

}  // namespace penstock::api::compat::internal
