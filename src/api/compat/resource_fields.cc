// Reads the fields of vendors' custom resources by their tables, and answers those that do not take
// effect.
#include "api/compat/resource_fields.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "api/cluster/kube_json.h"
#include "base/core/json_text.h"
#include "base/core/printable.h"
#include "base/core/strings.h"

namespace penstock::api::compat::internal {

namespace {

using base::Problems;
using base::Value;
using enum FieldType;

constexpr std::size_t kMostUnknown = 20;  // conditions are bounded
constexpr std::size_t kLongestShown = 100;

std::string SpecPath(std::string_view path) { return "spec." + std::string(path); }

class FieldReader {
 public:
  FieldReader(std::span<const ResourceField> fields, std::span<const FieldAlias> aliases,
              Problems& problems)
      : fields_(fields), aliases_(aliases), problems_(problems) {
    for (const ResourceField& field : fields) known_.emplace(field.path, &field);
  }

  void Read(const Value& map, const std::string& prefix) {
    for (const Value::Entry& entry : *map.map) {
      const std::string written = prefix + entry.key;
      const auto alias = std::ranges::find(aliases_, written, &FieldAlias::alias);
      const bool other = alias != aliases_.end();
      const std::string path(other ? alias->field : std::string_view(written));
      if (other && !TakeAlias(*alias, map)) continue;
      const auto field = known_.find(path);
      if (field == known_.end()) {
        Unknown(written, prefix);
      } else {
        ReadOne(*field->second, entry.value);
      }
    }
  }

  ResourceReading Finish() {
    if (unknown_ > kMostUnknown)
      reading_.unknown.back().text +=
          " There are " + std::to_string(unknown_ - kMostUnknown) + " more such fields.";
    return std::move(reading_);
  }

 private:
  bool TakeAlias(const FieldAlias& alias, const Value& map) {
    const std::string_view leaf = alias.field.substr(alias.field.rfind('.') + 1);
    const bool both = map.Find(leaf) != nullptr;
    reading_.aliases.push_back(
        {SpecPath(alias.alias), both ? FieldFate::kUnknown : FieldFate::kElsewhere,
         both
             ? "Is another name of " + SpecPath(alias.field) +
                   ", which is set too and applies; remove this one."
             : "Is read as " + SpecPath(alias.field) + ", the name that the resource has for it."});
    return !both;
  }

  void Unknown(const std::string& written, const std::string& prefix) {
    if (++unknown_ > kMostUnknown) return;
    std::vector<std::string> names;
    for (const auto& [path, field] : known_)
      if (path.starts_with(prefix) && path.find('.', prefix.size()) == std::string_view::npos)
        names.emplace_back(path.substr(prefix.size()));
    const auto near = base::Nearest(std::string_view(written).substr(prefix.size()), names);
    reading_.unknown.push_back(
        {SpecPath(ShownText(written)), FieldFate::kUnknown,
         near ? "Is in no known version of the resource; did you mean \"" + *near + "\"?"
              : std::string("Is in no known version of the resource, and has no effect.")});
  }

  void ReadOne(const ResourceField& field, const Value& value) {
    if (value.kind == Value::Kind::kNull) return;
    const std::size_t before = problems_.size();
    Check(field, value);
    if (problems_.size() > before) return;
    reading_.given[field.path] = &value;
    if (field.type == kMap) Read(value, field.path + ".");
  }

  void Problem(const ResourceField& field, const std::string& message) {
    problems_.Add({}, SpecPath(field.path) + ": " + message);
  }

  void Expect(const ResourceField& field, const Value& value, Value::Kind kind) {
    if (value.kind != kind)
      Problem(field, "is " + std::string(Describe(value.kind)) +
                         (value.text.empty() ? "" : " (" + ShownText(value.text) + ")") +
                         " where " + std::string(Describe(kind)) + " is expected");
  }

  void ExpectItems(const ResourceField& field, const Value& value, Value::Kind kind) {
    Expect(field, value, Value::Kind::kList);
    for (std::size_t i = 0; value.list && i < value.list->size(); ++i)
      if (const Value& item = (*value.list)[i]; item.kind != kind)
        problems_.Add({}, base::Item(SpecPath(field.path), i) + ": is " +
                              std::string(Describe(item.kind)) + " where " +
                              std::string(Describe(kind)) + " is expected");
  }

  void ExpectValues(const ResourceField& field, const Value& value, Value::Kind kind) {
    Expect(field, value, Value::Kind::kMap);
    if (!value.map) return;
    for (const Value::Entry& entry : *value.map)
      if (entry.value.kind != kind)
        problems_.Add({}, SpecPath(field.path) + "[" + ShownText(entry.key) + "]: is " +
                              std::string(Describe(entry.value.kind)) + " where " +
                              std::string(Describe(kind)) + " is expected");
  }

  void CheckEnvironment(const ResourceField& field, const Value& value) {
    ExpectItems(field, value, Value::Kind::kMap);
    for (std::size_t i = 0; value.list && i < value.list->size(); ++i) {
      const Value& item = (*value.list)[i];
      const std::string place = base::Item(SpecPath(field.path), i);
      const Value* name = item.Find("name");
      if (item.map && (name == nullptr || name->kind != Value::Kind::kString || name->text.empty()))
        problems_.Add({}, place + ".name: is not the name of a variable");
      const Value* given = item.Find("value");
      if (given != nullptr && given->kind != Value::Kind::kString &&
          given->kind != Value::Kind::kNull)
        problems_.Add({}, place + ".value: is " + std::string(Describe(given->kind)) + " (" +
                              ShownText(given->text) +
                              ") where a string is expected; put it in quotes");
    }
  }

  void CheckText(const ResourceField& field, const Value& value) {
    Expect(field, value, Value::Kind::kString);
    if (value.kind != Value::Kind::kString || field.words.empty()) return;
    if (std::ranges::find(field.words, value.text) != field.words.end()) return;
    std::vector<std::string> words;
    for (const std::string_view word : field.words)
      words.push_back(word.empty() ? "\"\"" : std::string(word));
    Problem(field, "\"" + ShownText(value.text) + "\" is none of " + base::Join(words, ", "));
  }

  void CheckInt(const ResourceField& field, const Value& value) {
    Expect(field, value, Value::Kind::kInt);
    if (value.kind == Value::Kind::kInt && ((field.least && value.integer < *field.least) ||
                                            (field.most && value.integer > *field.most)))
      Problem(field, "is " + value.text + ", less than " + std::to_string(field.least.value_or(0)) +
                         (field.most ? " or more than " + std::to_string(*field.most) : ""));
  }

  void Check(const ResourceField& field, const Value& value) {
    switch (field.type) {
      case kMap:
      case kOpenMap:
      case kResources: return Expect(field, value, Value::Kind::kMap);
      case kBool: return Expect(field, value, Value::Kind::kBool);
      case kText: return CheckText(field, value);
      case kInt: return CheckInt(field, value);
      case kTexts: return ExpectItems(field, value, Value::Kind::kString);
      case kTextMap: return ExpectValues(field, value, Value::Kind::kString);
      case kBoolMap: return ExpectValues(field, value, Value::Kind::kBool);
      case kEnvironment: return CheckEnvironment(field, value);
      case kTolerations:
      case kRelabelings:
      case kMaps: return ExpectItems(field, value, Value::Kind::kMap);
      case kDuration:
        CheckText(field, value);
        if (!value.text.empty() && !api::internal::IsPrometheusDuration(value.text))
          Problem(field, "\"" + ShownText(value.text) + "\" is not a duration such as \"15s\"");
        return;
      case kNumberOrPercent:
        if ((value.kind != Value::Kind::kInt && value.kind != Value::Kind::kString) ||
            (!value.text.empty() && !api::internal::IsNumberOrPercent(value.text)))
          Problem(field, "\"" + ShownText(value.text) +
                             "\" is neither a number nor a percentage such as \"25%\"");
        return;
    }
  }

  std::span<const ResourceField> fields_;
  std::span<const FieldAlias> aliases_;
  Problems& problems_;
  std::map<std::string_view, const ResourceField*> known_;
  std::size_t unknown_ = 0;
  ResourceReading reading_;
};

Value DefaultValue(FieldType type, std::string_view text) {
  Value value;
  value.text = text;
  if (type == kBool) {
    value.kind = Value::Kind::kBool;
    value.boolean = text == "true";
  } else if (type == kInt) {
    value.kind = Value::Kind::kInt;
    value.integer = base::ParseInt(text).value_or(0);
  } else {
    value.kind = Value::Kind::kString;
  }
  return value;
}

bool IsUsual(const ResourceField& field, std::string_view text) {
  return std::ranges::find(field.usual, text) != field.usual.end();
}

/// Whether the value asks for nothing: what the definition or the vendor's chart sets anyway.
bool IsQuiet(const ResourceField& field, const Value& value) {
  if (value.kind == Value::Kind::kList) return value.list->empty();
  if (value.kind == Value::Kind::kMap)
    return field.type == kMap || value.map->empty() ||
           (!field.usual.empty() &&
            IsUsual(field, base::JsonText(base::JsonOf<nlohmann::json>(value))));
  if (IsUsual(field, value.text)) return true;
  const std::string_view otherwise = field.unset.empty() ? field.schema_default : field.unset;
  if (value.kind == Value::Kind::kBool)
    return value.text == (otherwise.empty() ? "false" : otherwise);
  return value.text.empty() || value.text == otherwise;
}

const ResourceField* FindField(std::span<const ResourceField> fields, std::string_view path) {
  const auto found = std::ranges::find(fields, path, &ResourceField::path);
  return found == fields.end() ? nullptr : &*found;
}

std::string NameOfObject(const Value& object, std::string_view kind) {
  const Value* metadata = object.Find("metadata");
  const Value* name = metadata != nullptr ? metadata->Find("name") : nullptr;
  return std::string(kind) + (name != nullptr ? " " + ShownText(name->text) : "");
}

void CheckKind(const Value& object, std::string_view version, std::string_view kind,
               Problems& problems) {
  if (object.kind != Value::Kind::kMap) return problems.Add({}, "is not an object");
  for (const auto& [key, wanted] : {std::pair("apiVersion", version), std::pair("kind", kind)}) {
    const Value* found = object.Find(key);
    if (found == nullptr || found->text != wanted)
      problems.Add({}, std::string(key) + ": is " +
                           (found == nullptr ? "missing" : "\"" + ShownText(found->text) + "\"") +
                           "; this is read as \"" + std::string(wanted) + "\" only");
  }
  const Value* spec = object.Find("spec");
  if (spec != nullptr && spec->kind != Value::Kind::kMap && spec->kind != Value::Kind::kNull)
    problems.Add({}, "spec: is " + std::string(Describe(spec->kind)) + " where a map is expected");
}

}  // namespace

const Value* ResourceReading::Find(std::string_view path) const {
  const auto found = given.find(path);
  return found == given.end() ? nullptr : found->second;
}

base::Result<ResourceObject> ReadResourceObject(std::string_view text, std::string_view version,
                                                std::string_view kind,
                                                std::span<const ResourceField> fields,
                                                std::span<const FieldAlias> aliases) {
  ASSIGN(Value document, base::ParseJson(text, kind));
  ResourceObject object{std::move(document), Problems(""), {}};
  object.problems = Problems(NameOfObject(object.document, kind));
  CheckKind(object.document, version, kind, object.problems);
  FieldReader reader(fields, aliases, object.problems);
  const Value* spec = object.document.Find("spec");
  if (spec != nullptr && spec->map) reader.Read(*spec, "");
  object.reading = reader.Finish();
  return object;
}

std::optional<Value> DefaultOf(const ResourceField& field) {
  const std::string_view text = field.unset.empty() ? field.schema_default : field.unset;
  return text.empty() ? std::nullopt : std::optional(DefaultValue(field.type, text));
}

bool IsFieldOn(const ResourceReading& reading, std::span<const ResourceField> fields,
               std::string_view path) {
  if (const Value* value = reading.Find(path)) return value->boolean;
  const ResourceField* field = FindField(fields, path);
  const auto otherwise = field != nullptr ? DefaultOf(*field) : std::nullopt;
  return otherwise && otherwise->boolean;
}

bool IsFieldSet(const ResourceReading& reading, const ResourceField& field) {
  const Value* value = reading.Find(field.path);
  return value != nullptr && !IsQuiet(field, *value);
}

std::vector<FieldAnswer> AnswersFor(const ResourceReading& reading,
                                    std::span<const ResourceField> fields) {
  std::vector<FieldAnswer> answers;
  std::map<const FieldTopic*, std::size_t> together;       // → the answer
  std::map<std::size_t, std::vector<std::string>> others;  // the answer's other fields
  for (const ResourceField& field : fields) {
    const FieldTopic* topic = field.topic;
    if (const Value* value = reading.Find(field.path);
        value != nullptr && std::ranges::find(field.unserved, value->text) != field.unserved.end())
      answers.push_back(
          {SpecPath(field.path), FieldFate::kNotServed, std::string(field.unserved_text)});
    if (topic == nullptr || topic->by_effect) continue;
    const bool gate = !topic->gate.empty() && field.path == topic->gate;
    if (!topic->gate.empty() && !IsFieldOn(reading, fields, topic->gate)) continue;
    if (!gate && !IsFieldSet(reading, field)) continue;
    if (topic->field.empty()) {
      answers.push_back({SpecPath(field.path), topic->fate, std::string(field.text)});
      continue;
    }
    const auto [at, first] = together.emplace(topic, answers.size());
    if (first)
      answers.push_back({std::string(topic->field), topic->fate, std::string(topic->text)});
    if (!gate) others[at->second].push_back(field.path);
  }
  for (const auto& [at, paths] : others)
    answers[at].text += " Set here: " + base::Join(paths, ", ") + ".";
  return answers;
}

void SortAnswers(std::vector<FieldAnswer>& answers, std::span<const ResourceField> fields) {
  const auto place = [fields](const FieldAnswer& answer) {
    const auto found = std::ranges::find_if(fields, [&](const ResourceField& field) {
      const std::string path = SpecPath(field.path);
      return answer.field.starts_with(path) &&
             (answer.field.size() == path.size() || answer.field[path.size()] == '[') &&
             field.type != kMap;
    });
    return found - fields.begin();
  };
  std::ranges::stable_sort(answers, {}, place);
}

std::string ShownText(std::string_view text) {
  return base::Printable(text.substr(0, kLongestShown)) + (text.size() > kLongestShown ? "…" : "");
}

std::string_view ToString(FieldFate fate) {
  switch (fate) {
    case FieldFate::kHonoured: return "honoured";
    case FieldFate::kElsewhere: return "done in another way";
    case FieldFate::kOwnImage: return "one image";
    case FieldFate::kNotServed: return "not served yet";
    case FieldFate::kDeprecated: return "deprecated";
    case FieldFate::kUnknown: return "unknown";
  }
  return "";
}

}  // namespace penstock::api::compat::internal
