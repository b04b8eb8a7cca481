// Parses a specification from JSON or YAML and reports each deviation from the format with its
// place in the file. The engines' own reader is Go's, through sigs.k8s.io/yaml: it reads every file
// as YAML, and accepts plain numbers and booleans where a text is expected.
#include <charconv>
#include <limits>
#include <set>
#include <utility>

#include "api/cdi/check.h"
#include "api/cdi/spec_fields.h"
#include "base/core/strings.h"
#include "base/yaml.h"

namespace penstock::api::cdi {

namespace {

using base::MapReader;
using base::Problems;
using base::Value;

/// Returns the shortest text of a number, as Go writes it.
std::string ShortestText(double number) {
  char buffer[64];
  const auto end = std::to_chars(std::begin(buffer), std::end(buffer), number).ptr;
  return {buffer, end};
}

/// Returns a text, also of a scalar of another type; nothing if an engine would read a different
/// text than is written.
std::optional<std::string> TextOf(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull: return "";
    case Value::Kind::kString: return value.text;
    case Value::Kind::kInt:
      return value.text == std::to_string(value.integer) ? std::optional(value.text) : std::nullopt;
    case Value::Kind::kFloat:
      return value.text == ShortestText(value.number) ? std::optional(value.text) : std::nullopt;
    case Value::Kind::kBool:
      return value.text == "true" || value.text == "false" ? std::optional(value.text)
                                                           : std::nullopt;
    default: return std::nullopt;
  }
}

/// Returns a number by the rules of YAML 1.1, which engines read: 0660 is octal.
std::optional<std::int64_t> IntegerOf(const Value& value) {
  if (value.kind != Value::Kind::kInt) return std::nullopt;
  if (value.text.size() > 1 && value.text.front() == '0' &&
      value.text.find_first_not_of("01234567") == std::string::npos)
    return base::ParseInt(value.text, 8);
  return value.integer;
}

std::string WhyNo(const Value& value, std::string_view wanted) {
  return "is " + std::string(Describe(value.kind)) + " where " + std::string(wanted) +
         " is expected";
}

std::string WhyNoText(const Value& value) {
  if (value.text.empty()) return WhyNo(value, "a string");
  return "is " + std::string(Describe(value.kind)) + " (" + value.text +
         ") where a string is expected; put it in quotes";
}

/// Collects the problems of a specification. If reading a key reported a problem, the rules report
/// nothing more about it.
class Findings {
 public:
  explicit Findings(Problems& problems) : problems_(problems) {}

  Problems& problems() { return problems_; }
  void Problem(const Value& value, const std::string& path, const std::string& message) {
    reported_.insert(path);
    problems_.Add(value.mark, path + ": " + message);
  }
  bool Has(const std::string& path) const { return reported_.contains(path); }

  /// Adds the findings of the rules, each with its position in the document.
  void Notify(const std::vector<internal::SpecProblem>& findings, const Value& document);

 private:
  Problems& problems_;
  std::set<std::string> reported_;
};

/// Reads the fields of one map, for VisitFields.
class Reader {
 public:
  static constexpr bool kReads = true;

  Reader(const Value& value, std::string path, Findings& findings)
      : map_(value, std::move(path), findings.problems()), findings_(findings) {}

  template <typename T>
  void operator()(std::string_view key, T& target, const base::FieldRules& = {}) {
    const Value* value = map_.Any(key);
    if (value != nullptr && value->kind != Value::Kind::kNull) Read(*value, map_.Path(key), target);
  }

  void Finish() { map_.Finish(); }

 private:
  void Read(const Value& value, const std::string& path, std::string& target) {
    auto text = TextOf(value);
    if (!text) findings_.Problem(value, path, WhyNoText(value));
    target = std::move(text).value_or("");
  }
  void Read(const Value& value, const std::string& path, bool& target) {
    target = value.boolean;
    Expect(value, path, Value::Kind::kBool);
  }
  template <std::integral Integer>
  void Read(const Value& value, const std::string& path, std::optional<Integer>& target);
  void Read(const Value& value, const std::string& path, std::vector<std::uint32_t>& groups);
  void Read(const Value& value, const std::string& path, std::vector<std::string>& texts) {
    if (!Expect(value, path, Value::Kind::kList)) return;
    for (const Value& item : *value.list) {
      const std::string at = base::Item(path, texts.size());
      Read(item, at, texts.emplace_back());
    }
  }
  void Read(const Value& value, const std::string& path,
            std::map<std::string, std::string>& annotations) {
    if (!Expect(value, path, Value::Kind::kMap)) return;
    for (const Value::Entry& entry : *value.map)
      Read(entry.value, path + "." + entry.key, annotations[entry.key]);
  }
  template <typename Item>
  void Read(const Value& value, const std::string& path, std::vector<Item>& items) {
    if (!Expect(value, path, Value::Kind::kList)) return;
    for (const Value& item : *value.list) {
      const std::string at = base::Item(path, items.size());
      Read(item, at, items.emplace_back());
    }
  }
  template <typename T>
  void Read(const Value& value, const std::string& path, std::optional<T>& target) {
    if (Expect(value, path, Value::Kind::kMap)) Read(value, path, target.emplace());
  }
  template <typename T>
  void Read(const Value& value, const std::string& path, T& target) {
    if (!Expect(value, path, Value::Kind::kMap)) return;
    Reader reader(value, path, findings_);
    VisitFields(reader, target);
    reader.Finish();
  }

  bool Expect(const Value& value, const std::string& path, Value::Kind kind) {
    if (value.kind != kind) findings_.Problem(value, path, WhyNo(value, Describe(kind)));
    return value.kind == kind;
  }

  MapReader map_;
  Findings& findings_;
};

template <std::integral Integer>
void Reader::Read(const Value& value, const std::string& path, std::optional<Integer>& target) {
  const auto number = IntegerOf(value);
  if (!number) {
    findings_.Problem(value, path, WhyNo(value, "an integer"));
  } else if (!std::in_range<Integer>(*number)) {
    findings_.Problem(value, path,
                      "is " + value.text + ", outside of " +
                          std::to_string(std::numeric_limits<Integer>::min()) + " to " +
                          std::to_string(std::numeric_limits<Integer>::max()));
  } else {
    target = static_cast<Integer>(*number);
  }
}

void Reader::Read(const Value& value, const std::string& path, std::vector<std::uint32_t>& groups) {
  if (!Expect(value, path, Value::Kind::kList)) return;
  for (const Value& item : *value.list) {
    const auto number = item.kind == Value::Kind::kNull ? 0 : IntegerOf(item);
    const bool valid = number && std::in_range<std::uint32_t>(*number);
    if (!valid)
      findings_.Problem(item, base::Item(path, groups.size()), "must be a numeric group ID");
    groups.push_back(valid ? static_cast<std::uint32_t>(*number) : 0);
  }
}

Spec ReadSpec(const Value& document, Findings& findings) {
  Spec spec;
  Reader reader(document, "", findings);
  VisitFields(reader, spec);
  reader.Finish();
  if (spec.version.empty() && !findings.Has("cdiVersion"))
    findings.Problem(document, "cdiVersion", "is missing");
  if (spec.version.starts_with('v')) spec.version.erase(0, 1);
  return spec;
}

/// Returns the mark of the value at a path, or of the value that would contain it.
base::Mark MarkOf(const Value& document, std::string_view path) {
  const Value* value = &document;
  while (!path.empty()) {
    const auto end = std::min(path.find_first_of(".[", 1), path.size());
    const std::string_view step = path.substr(0, end);
    path.remove_prefix(end);
    const Value* below = nullptr;
    if (step.front() == '[') {
      const auto index = base::ParseUint(step.substr(1, step.size() - 2));
      if (index && value->list && *index < value->list->size()) below = &(*value->list)[*index];
    } else {
      below = value->Find(step.front() == '.' ? step.substr(1) : step);
    }
    if (below == nullptr) break;
    value = below;
  }
  return value->mark;
}

void Findings::Notify(const std::vector<internal::SpecProblem>& findings, const Value& document) {
  const auto is_reported = [this](const std::string& path) {
    for (std::size_t end = path.size(); end != std::string::npos && end > 0;
         end = path.find_last_of(".[", end - 1))
      if (reported_.contains(path.substr(0, end))) return true;
    return false;
  };
  for (const auto& finding : findings)
    if (!is_reported(finding.path))
      problems_.Add(MarkOf(document, finding.path), finding.path + ": " + finding.message);
}

}  // namespace

base::Result<Spec> Parse(std::string_view text, std::string_view file) {
  ASSIGN(const Value document, base::ParseYamlOrJson(text, file));
  Problems problems{std::string(file)};
  if (document.kind != Value::Kind::kMap) {
    problems.Add(document.mark, document.kind == Value::Kind::kNull
                                    ? "is empty; a CDI specification is expected"
                                    : "is " + std::string(Describe(document.kind)) +
                                          " where a CDI specification is expected");
    return problems.ToError();
  }
  Findings findings(problems);
  Spec spec = ReadSpec(document, findings);
  findings.Notify(internal::Inspect(spec), document);
  if (!problems.empty()) return problems.ToError();
  return spec;
}

}  // namespace penstock::api::cdi
