#include "protocol/engine/text/edit.h"

#include <algorithm>

#include "base/toml.h"

namespace penstock::protocol::engine {
namespace {

using base::Value;

Error Refused(std::string_view file, const std::string& why) {
  return Error(Code::kFailedPrecondition, std::string(file) + ": " + why);
}

/// Elements in the path of a key must be maps; the key's own value must not be one.
Status CheckPath(const Value& document, const Path& path, std::string_view file) {
  const Value* value = &document;
  for (std::size_t depth = 0; depth < path.size(); ++depth) {
    value = value->Find(path[depth]);
    if (value == nullptr) return {};
    const bool last = depth + 1 == path.size();
    if (last == (value->kind != Value::Kind::kMap)) continue;
    const Path here(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(depth) + 1);
    return Refused(file, std::to_string(value->mark.line) + ":" +
                             std::to_string(value->mark.column) + ": " + Dotted(here) + " is " +
                             std::string(base::Describe(value->kind)) + " where " +
                             (last ? "a value" : "a map") + " is expected");
  }
  return {};
}

/// Parses the result and compares it with the expected values.
Status Prove(FileFormat format, std::string_view made, std::string_view file, const Tree& wanted) {
  auto read = Read(format, made, file);
  if (!read.ok())
    return Refused(file, "cannot be edited safely: the result would not be well-formed (" +
                             read.error().message() + ")");
  const auto differences = Compare(wanted, ToTree(*read));
  if (differences.empty()) return {};
  return Refused(
      file, "cannot be edited safely: " + Dotted(differences.front().path) + " would also change");
}

base::Result<std::string> Step(FileFormat format, std::string_view text, const Setting& setting) {
  return format == FileFormat::kToml ? internal::ApplyToml(text, setting)
                                     : internal::ApplyJson(text, setting);
}

base::Result<std::string> StepBack(FileFormat format, std::string_view text, const Path& key) {
  return format == FileFormat::kToml ? internal::WithdrawToml(text, key)
                                     : internal::WithdrawJson(text, key);
}

/// Removes the empty tables, the deepest first.
base::Result<std::string> WithdrawTables(FileFormat format, std::string text, std::string_view file,
                                         std::vector<Path> tables, Tree& wanted) {
  std::ranges::sort(tables, [](const Path& a, const Path& b) { return a.size() > b.size(); });
  for (const Path& table : tables) {
    ASSIGN(const Value document, Read(format, text, file));
    const Value* value = FindAt(document, table);
    if (value != nullptr && (!value->map || !value->map->empty())) continue;
    Take(wanted, table);
    // A table that a dotted key or a deeper header implied is already gone.
    if (value == nullptr) continue;
    ASSIGN(text, format == FileFormat::kToml ? internal::WithdrawHeader(text, table)
                                             : internal::WithdrawJson(text, table));
  }
  return text;
}

}  // namespace

base::Result<Value> Read(FileFormat format, std::string_view text, std::string_view file) {
  if (format == FileFormat::kToml) return base::ParseToml(text, file);
  if (format == FileFormat::kText) return Refused(file, "is not supported");
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) text = "{}";
  ASSIGN(Value value, base::ParseJson(text, file));
  if (value.kind != Value::Kind::kMap)
    return Error(Code::kInvalidArgument, std::string(file) + ":1:1: is not a JSON object");
  return value;
}

base::Result<std::string> Apply(FileFormat format, std::string_view text, std::string_view file,
                                const std::vector<Setting>& settings) {
  ASSIGN(Value document, Read(format, text, file));
  Tree wanted = ToTree(document);
  std::string made(text);
  for (const Setting& setting : settings) {
    TRY(CheckPath(document, setting.path, file));
    const Value* present = FindAt(document, setting.path);
    if (present != nullptr && Spell(*present) == Spell(setting.value)) continue;
    Put(wanted, setting);
    auto stepped = Step(format, made, setting);
    if (!stepped.ok()) return Refused(file, stepped.error().message());
    made = *std::move(stepped);
    auto read = Read(format, made, file);
    if (!read.ok())
      return Refused(file,
                     Dotted(setting.path) + " cannot be set safely: " + read.error().message());
    document = *std::move(read);
  }
  TRY(Prove(format, made, file, wanted));
  return made;
}

base::Result<std::string> Withdraw(FileFormat format, std::string_view text, std::string_view file,
                                   const std::vector<Path>& keys, const std::vector<Path>& tables) {
  ASSIGN(const Value document, Read(format, text, file));
  Tree wanted = ToTree(document);
  std::string made(text);
  for (const Path& key : keys) {
    if (FindAt(document, key) == nullptr) continue;
    Take(wanted, key);
    auto stepped = StepBack(format, made, key);
    if (!stepped.ok()) return Refused(file, stepped.error().message());
    made = *std::move(stepped);
  }
  ASSIGN(made, WithdrawTables(format, std::move(made), file, tables, wanted));
  TRY(Prove(format, made, file, wanted));
  return made;
}

}  // namespace penstock::protocol::engine
