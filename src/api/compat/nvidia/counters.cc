// Reads the rows first, then compares each with the known fields.
#include "api/compat/nvidia/counters.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "api/compat/nvidia/counters_csv.h"
#include "base/core/strings.h"

namespace penstock::api::compat {

namespace {

constexpr std::size_t kMaxProblems = 20;
constexpr std::size_t kLongestHelp = 4096;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::string Quote(std::string_view text) {
  constexpr std::size_t kShown = 60;
  return "\"" + std::string(text.substr(0, kShown)) + (text.size() > kShown ? "..." : "") + "\"";
}

std::string_view TrimBlanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

/// Checks rows one by one.
class Judge {
 public:
  explicit Judge(std::span<const CounterField> fields) : fields_(fields) {
    for (const CounterField& field : fields) by_name_.emplace(field.name, &field);
    for (const CounterField& field : fields)
      if (!field.new_name.empty()) by_name_.emplace(field.new_name, &field);
  }

  /// `where` precedes each message about the row.
  void Take(const std::string& where, MetricRow row) {
    const auto known = by_name_.find(row.field);
    const CounterField* field = known == by_name_.end() ? nullptr : known->second;
    const bool typed = CheckType(where, row, field);
    const bool helped = CheckHelp(where, row.help);
    if (field == nullptr) return Problem(where, Unknown(row.field));
    if (!typed || !helped) return;
    if (row.field != field->name)
      Remark(where, row.field + " is the newer name of " + std::string(field->name) +
                        "; telemetry.names selects the name that is shown");
    if (!field->unavailable.empty())
      Remark(where, row.field + " is not available here: " + std::string(field->unavailable));
    row.field = field->name;
    if (const auto [first, fresh] = first_.emplace(row.field, where); !fresh)
      return Remark(
          where, row.field + " is already listed (" + first->second + "); the first row is used");
    counters_.rows.push_back(std::move(row));
  }

  void Problem(const std::string& where, const std::string& what) {
    ++problems_count_;
    if (Full()) return;
    problems_.push_back(where + ": " + what);
  }
  bool Full() const { return problems_count_ > kMaxProblems; }

  base::Result<CounterSelection> Verdict() && {
    if (problems_count_ == 0) return std::move(counters_);
    if (Full())
      problems_.push_back("... and more; only the first " + std::to_string(kMaxProblems) +
                          " are shown");
    return Error(Code::kInvalidArgument, base::Join(problems_, "\n"));
  }

 private:
  void Remark(const std::string& where, const std::string& what) {
    counters_.remarks.push_back(where + ": " + what);
  }

  bool CheckType(const std::string& where, const MetricRow& row, const CounterField* field) {
    static const std::vector<std::string> kTypes = {"gauge", "counter", "label"};
    if (std::ranges::find(kTypes, row.type) == kTypes.end()) {
      const auto near = base::Nearest(base::ToLower(row.type), kTypes);
      const bool other = row.type == "histogram" || row.type == "summary";
      Problem(where, "type " + Quote(row.type) + " is none of gauge, counter, label" +
                         (other  ? ": a field has one value; write gauge"
                          : near ? "; did you mean \"" + *near + "\"?"
                                 : ""));
      return false;
    }
    if (field != nullptr && field->text && row.type != "label") {
      Problem(where,
              row.field + " is text, which a " + row.type + " cannot show; its type must be label");
      return false;
    }
    return true;
  }

  /// On the metrics page, HELP is one line of text in which line ends are escaped.
  bool CheckHelp(const std::string& where, const std::string& help) {
    const bool control = std::ranges::any_of(
        help, [](unsigned char c) { return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f; });
    if (control) Problem(where, "the help contains a control character; remove it");
    if (help.size() > kLongestHelp)
      Problem(where,
              "the help is longer than " + std::to_string(kLongestHelp) + " bytes; shorten it");
    return !control && help.size() <= kLongestHelp;
  }

  std::string Unknown(const std::string& name) const {
    if (name.empty()) return "has no field before the first comma";
    if (name.find('\t') != std::string::npos)
      return Quote(name) + " contains a tab; only spaces may surround a field's name";
    std::string what = "there is no field " + Quote(name);
    if (base::ParseUint(name))
      return what +
             ": fields are given by name, not by number; write for example DCGM_FI_DEV_GPU_TEMP";
    std::vector<std::string> names;
    for (const auto& [known, field] : by_name_) names.emplace_back(known);
    const auto near = name.size() > 128 ? std::nullopt : base::Nearest(name, names);
    return what + (near ? "; did you mean \"" + *near + "\"?"
                        : "; `penstock metrics list` lists the fields");
  }

  const std::span<const CounterField> fields_;
  std::map<std::string_view, const CounterField*, std::less<>> by_name_;
  std::map<std::string, std::string> first_;  // field → its first row
  CounterSelection counters_;
  std::vector<std::string> problems_;
  std::size_t problems_count_ = 0;
};

std::size_t FirstBadLine(std::string_view text) {
  std::size_t number = 1;
  for (const std::string& line : base::Split(text, '\n')) {
    if (!base::IsUtf8(line)) break;
    ++number;
  }
  return number;
}

/// Explains what is wrong with a record that does not have three fields.
std::string WrongCount(const internal::CsvRecord& record) {
  const std::vector<std::string>& fields = record.fields;
  const std::string_view first = TrimBlanks(fields.front());
  if (fields.size() == 1 && first.empty())
    return "contains only spaces; an empty line must not contain any";
  if (fields.size() == 1 && first.starts_with('#'))
    return "the # of a comment must be the first character of its line; remove the spaces before "
           "it";
  const std::string what = "has " + std::to_string(fields.size()) +
                           (fields.size() == 1 ? " field" : " fields") +
                           "; a row has three: FIELD, type, help";
  return fields.size() > 3 ? what +
                                 "; a help with commas must be quoted, without a space before the "
                                 "quote: FIELD, type,\"a, b\""
                           : what;
}

}  // namespace

base::Result<CounterSelection> ParseCounters(std::string_view text, std::string_view file,
                                             std::span<const CounterField> fields) {
  const std::string name(file);
  if (text.size() > kLongestCounters)
    return Error(Code::kInvalidArgument, name + ": is longer than " +
                                             std::to_string(kLongestCounters >> 20) +
                                             " MiB; is it the right file?");
  if (!base::IsUtf8(text))
    return Error(Code::kInvalidArgument, name + ":" + std::to_string(FirstBadLine(text)) +
                                             ": is not UTF-8; save the file as UTF-8");
  Judge judge(fields);
  CounterSelection begun;
  if (text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
    begun.remarks.push_back(
        name + ":1: begins with a byte order mark, which dcgm-exporter does not accept");
  }
  std::size_t records = 0;
  const auto where = [&name](std::size_t line) { return name + ":" + std::to_string(line); };
  internal::ReadCsv(
      text,
      [&](internal::CsvRecord record) {
        ++records;
        if (record.fields.size() != 3) {
          judge.Problem(where(record.line), WrongCount(record));
        } else {
          judge.Take(where(record.line), {std::string(TrimBlanks(record.fields[0])),
                                          std::string(TrimBlanks(record.fields[1])),
                                          std::string(TrimBlanks(record.fields[2]))});
        }
        return !judge.Full();
      },
      [&](std::size_t line, std::string_view what) {
        ++records;
        judge.Problem(where(line), std::string(what));
        return !judge.Full();
      });
  if (records == 0)
    return Error(Code::kInvalidArgument, name +
                                             ": has no row; write FIELD, type, help, for example: "
                                             "DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature");
  ASSIGN(CounterSelection counters, std::move(judge).Verdict());
  counters.remarks.insert(counters.remarks.begin(), begun.remarks.begin(), begun.remarks.end());
  return counters;
}

base::Result<CounterSelection> CheckCounters(std::span<const MetricRow> rows,
                                             std::string_view where,
                                             std::span<const CounterField> fields) {
  if (rows.empty()) return CounterSelection();  // each command of the tool checks them
  Judge judge(fields);
  for (std::size_t i = 0; i < rows.size(); ++i) judge.Take(base::Item(where, i), rows[i]);
  return std::move(judge).Verdict();
}

bool LooksLikeCounters(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (const std::string& line : base::Split(text.substr(0, kLongestCounters), '\n')) {
    const std::string_view row = base::Trim(line);
    if (row.empty() || row.front() == '#') continue;
    const std::string_view field = base::Trim(row.substr(0, row.find(',')));
    const bool name = !field.empty() && std::ranges::all_of(field, [](unsigned char c) {
      return c == '_' || c == '"' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
             (c >= 'A' && c <= 'Z');
    });
    return name &&
           (row.find(',') != std::string_view::npos || base::ToLower(field).starts_with("dcgm_"));
  }
  return false;
}

}  // namespace penstock::api::compat
