// Values, problems and the reader of maps; the parsers are in files of their own.
#include "base/core/document.h"

#include <algorithm>

#include "base/core/document_builder.h"
#include "base/core/printable.h"
#include "base/core/strings.h"

namespace penstock::base {
namespace {

/// A file may have a megabyte, and what is wrong with it is logged and reported to a cluster.
constexpr std::size_t kLongestProblem = 500, kMostProblems = 100;

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ToLower(a) == ToLower(b);
}

}  // namespace

namespace internal {

/// The map's existing entry for the current key; null if there is none.
Value::Entry* Builder::Open::Known() {
  constexpr std::size_t kFew = 16;
  if (map.size() < kFew) {
    const auto found = std::ranges::find(map, key, &Value::Entry::key);
    return found == map.end() ? nullptr : &*found;
  }
  for (std::size_t i = places.size(); i < map.size(); ++i) places.emplace(map[i].key, i);
  const auto found = places.find(key);
  return found == places.end() ? nullptr : &map[found->second];
}

void Builder::Place(Value value) {
  if (open_.empty()) {
    root_ = std::move(value);
    return;
  }
  Open& open = open_.back();
  if (open.value.kind == Value::Kind::kList) {
    open.list.push_back(std::move(value));
    return;
  }
  open.has_key = false;
  Value::Entry* known = open.Known();
  Value::Entry entry{std::move(open.key), open.key_mark, std::move(value)};
  if (known == nullptr) {
    open.map.push_back(std::move(entry));
    return;
  }
  const std::string what = "the key \"" + entry.key + "\" is given twice; ";
  problems_.Tolerate(entry.mark, what + "keep one", what + "the last one is used");
  *known = std::move(entry);
}

void Builder::Key(std::string key, Mark mark) {
  open_.back().key = std::move(key);
  open_.back().key_mark = mark;
  open_.back().has_key = true;
}

void Builder::Whole(Value value) {
  if (value.list != nullptr || value.map != nullptr) RefuseKey(value.mark);
  if (WantsKey()) return Key(std::move(value.text), value.mark);
  Place(std::move(value));
}

void Builder::RefuseKey(Mark mark) {
  if (!WantsKey()) return;
  problems_.Add(mark, "a list or map cannot be a key");
  Key("?", mark);
}

void Builder::Begin(Value::Kind kind, Mark mark) {
  RefuseKey(mark);
  if (static_cast<int>(open_.size()) >= most_depth_ && !too_deep_) {
    too_deep_ = true;
    problems_.Add(mark, "nested deeper than " + std::to_string(most_depth_) + " levels");
  }
  Open open;
  open.value.kind = kind;
  open.value.mark = mark;
  open_.push_back(std::move(open));
}

Value Builder::End() {
  Open open = std::move(open_.back());
  open_.pop_back();
  if (open.value.kind == Value::Kind::kList) {
    open.value.list = std::make_shared<const Value::List>(std::move(open.list));
  } else {
    open.value.map = std::make_shared<const Value::Map>(std::move(open.map));
  }
  Place(open.value);
  return std::move(open.value);
}

}  // namespace internal

const Value* Value::Find(std::string_view key) const {
  if (map == nullptr) return nullptr;
  for (const Entry& entry : *map)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

std::string_view Describe(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::kNull: return "null";
    case Value::Kind::kBool: return "a boolean";
    case Value::Kind::kInt: return "an integer";
    case Value::Kind::kFloat: return "a number";
    case Value::Kind::kString: return "a string";
    case Value::Kind::kList: return "a list";
    case Value::Kind::kMap: return "a map";
  }
  return "?";
}

void Problems::Add(Mark mark, std::string message) {
  problems_.push_back({mark, Shortened(message, kLongestProblem)});
}

void Problems::Tolerate(Mark mark, std::string problem, std::string remark) {
  if (!lenient()) return Add(mark, std::move(problem));
  Remark(mark, std::move(remark));
}

void Problems::Remark(Mark mark, std::string remark) {
  remarks_.push_back({mark, Shortened(remark, kLongestProblem)});
}

std::vector<Problems::Problem> Problems::InOrder(std::vector<Problem> problems) {
  std::ranges::stable_sort(problems, [](const Problem& a, const Problem& b) {
    return std::pair(a.mark.line, a.mark.column) < std::pair(b.mark.line, b.mark.column);
  });
  return problems;
}

std::vector<std::string> Problems::Remarks() const {
  std::vector<std::string> remarks;
  for (Problem& remark : InOrder(remarks_))
    remarks.push_back(
        std::move(remark.message) +
        (remark.mark.line > 0 ? " (line " + std::to_string(remark.mark.line) + ")" : ""));
  return remarks;
}

Error Problems::ToError() const {
  std::string text;
  std::size_t shown = 0;
  for (const Problem& problem : InOrder(problems_)) {
    if (!text.empty()) text += '\n';
    if (shown++ == kMostProblems) {
      text +=
          file_ + ": and " + std::to_string(problems_.size() - kMostProblems) + " more problems";
      break;
    }
    text += file_;
    if (problem.mark.line > 0)
      text += ":" + std::to_string(problem.mark.line) + ":" + std::to_string(problem.mark.column);
    text += ": " + problem.message;
  }
  return {Code::kInvalidArgument, text};
}

MapReader::MapReader(const Value& value, std::string where, Problems& problems, bool exact)
    : value_(value),
      where_(std::move(where)),
      problems_(problems),
      inexact_(problems.lenient() && !exact) {
  if (value.kind != Value::Kind::kMap && value.kind != Value::Kind::kNull)
    problems_.Add(value.mark, (where_.empty() ? std::string("this") : where_) + " is " +
                                  std::string(Describe(value.kind)) + " where a map is expected");
}

std::string MapReader::Path(std::string_view key) const {
  return where_.empty() ? std::string(key) : where_ + "." + std::string(key);
}

const Value::Entry* MapReader::Find(std::string_view key) const {
  if (value_.map == nullptr) return nullptr;
  const Value::Entry* similar = nullptr;
  for (const Value::Entry& entry : *value_.map) {
    if (entry.key == key) return &entry;
    if (similar == nullptr && inexact_ && EqualsIgnoringCase(entry.key, key)) similar = &entry;
  }
  return similar;
}

bool MapReader::Has(std::string_view key) const { return Find(key) != nullptr; }

Mark MapReader::mark(std::string_view key) const {
  const Value::Entry* found = Find(key);
  return found != nullptr ? found->value.mark : value_.mark;
}

void MapReader::Problem(std::string_view key, std::string message) {
  problems_.Add(mark(key), Path(key) + ": " + std::move(message));
}

const Value* MapReader::Any(std::string_view key) {
  known_.emplace_back(key);
  const Value::Entry* found = Find(key);
  return found != nullptr ? &found->value : nullptr;
}

const Value* MapReader::Take(std::string_view key, Value::Kind wanted) {
  const Value* found = Any(key);
  if (found == nullptr || found->kind == Value::Kind::kNull) return nullptr;
  if (found->kind == wanted || (wanted == Value::Kind::kFloat && found->kind == Value::Kind::kInt))
    return found;
  if (wanted == Value::Kind::kString && inexact_ && !found->text.empty()) return found;
  std::string message = "is " + std::string(Describe(found->kind));
  if (!found->text.empty()) message += " (" + found->text + ")";
  message += " where " + std::string(Describe(wanted)) + " is expected";
  if (wanted == Value::Kind::kString && !found->text.empty()) message += "; put it in quotes";
  Problem(key, std::move(message));
  return nullptr;
}

std::optional<std::string> MapReader::String(std::string_view key) {
  const Value* found = Take(key, Value::Kind::kString);
  return found != nullptr ? std::optional(found->text) : std::nullopt;
}

std::optional<bool> MapReader::Bool(std::string_view key) {
  const Value* found = Take(key, Value::Kind::kBool);
  return found != nullptr ? std::optional(found->boolean) : std::nullopt;
}

std::optional<double> MapReader::NumberIn(std::string_view key, double least, double most) {
  const Value* found = &Find(key)->value;
  if (found->number >= least && found->number <= most) return found->number;
  const auto show = [](double number) {
    std::string text = std::to_string(number);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
  };
  Problem(key, "is " + found->text + ", outside of " + show(least) + " to " + show(most));
  return std::nullopt;
}

std::optional<std::int64_t> MapReader::Int(std::string_view key, std::int64_t least,
                                           std::int64_t most) {
  const Value* found = Take(key, Value::Kind::kInt);
  if (found == nullptr || !NumberIn(key, static_cast<double>(least), static_cast<double>(most)))
    return std::nullopt;
  return found->integer;
}

std::optional<double> MapReader::Number(std::string_view key, double least, double most) {
  if (Take(key, Value::Kind::kFloat) == nullptr) return std::nullopt;
  return NumberIn(key, least, most);
}

std::optional<Duration> MapReader::Time(std::string_view key, Duration least, Duration most) {
  const Value* found = Any(key);
  if (found == nullptr || found->kind == Value::Kind::kNull) return std::nullopt;
  auto parsed = ParseDuration(found->text);
  if (!parsed.ok()) {
    Problem(key, parsed.error().message());
  } else if (*parsed < least || *parsed > most) {
    Problem(key, "is " + found->text + ", outside of " + FormatDuration(least) + " to " +
                     FormatDuration(most));
  } else {
    return *parsed;
  }
  return std::nullopt;
}

std::optional<Bytes> MapReader::Size(std::string_view key) {
  const Value* found = Any(key);
  if (found == nullptr || found->kind == Value::Kind::kNull) return std::nullopt;
  auto parsed = ParseBytes(found->text);
  if (parsed.ok()) return *parsed;
  Problem(key, parsed.error().message());
  return std::nullopt;
}

std::optional<std::vector<std::string>> MapReader::Strings(std::string_view key) {
  const Value* found = List(key);
  if (found == nullptr) return std::nullopt;
  std::vector<std::string> strings;
  for (const Value& item : *found->list) {
    if (item.kind == Value::Kind::kString) {
      strings.push_back(item.text);
    } else {
      problems_.Add(item.mark, Path(key) + ": an item is " + std::string(Describe(item.kind)) +
                                   " where a string is expected");
    }
  }
  return strings;
}

std::optional<std::string> MapReader::OneOf(std::string_view key, std::vector<std::string> names) {
  auto text = String(key);
  if (!text || std::ranges::find(names, *text) != names.end()) return text;
  Problem(key, "\"" + *text + "\" is none of " + Join(names, ", "));
  return std::nullopt;
}

const Value* MapReader::Map(std::string_view key) { return Take(key, Value::Kind::kMap); }
const Value* MapReader::List(std::string_view key) { return Take(key, Value::Kind::kList); }

void MapReader::Require(std::string_view key) {
  const Value::Entry* found = Find(key);
  if (found == nullptr) {
    problems_.Add(value_.mark, Path(key) + " is missing");
  } else if (found->value.kind == Value::Kind::kNull) {
    Problem(key, "has no value");
  }
}

/// Reports a key that was not read: unknown, or under a lenient reading possibly known in another
/// case.
void MapReader::ReportIgnored(const Value::Entry& entry) {
  const auto same = std::ranges::find_if(
      known_, [&entry](const std::string& key) { return EqualsIgnoringCase(key, entry.key); });
  const bool read = inexact_ && same != known_.end() && Find(*same) == &entry;
  std::string message = "unknown key \"" + Path(entry.key) + "\"", remark = Path(entry.key) + ": ";
  if (const auto near = Nearest(entry.key, known_)) {
    message += "; did you mean \"" + *near + "\"?";
    remark += read ? "is read as \"" + *same + "\""
                   : "is unknown and ignored; did you mean \"" + *near + "\"?";
  } else {
    message += "; known keys: " + Join(known_, ", ");
    remark += read ? "is read as \"" + *same + "\"" : "is unknown and ignored";
  }
  problems_.Tolerate(entry.mark, std::move(message), std::move(remark));
}

void MapReader::Finish() {
  if (value_.map == nullptr) return;
  for (const Value::Entry& entry : *value_.map)
    if (std::ranges::find(known_, entry.key) == known_.end()) ReportIgnored(entry);
}

void ForEachMap(const Value& list, const std::string& where, Problems& problems,
                const std::function<void(const Value& map, const std::string& where)>& take) {
  for (std::size_t i = 0; i < list.list->size(); ++i) {
    const Value& item = (*list.list)[i];
    const std::string place = Item(where, i);
    if (item.kind == Value::Kind::kMap) {
      take(item, place);
    } else {
      problems.Add(item.mark,
                   place + ": is " + std::string(Describe(item.kind)) + " where a map is expected");
    }
  }
}

}  // namespace penstock::base
