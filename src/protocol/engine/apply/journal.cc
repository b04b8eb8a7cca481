// Reads and writes version 1 of the journal.
#include "protocol/engine/apply/journal.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "os/kept_file.h"

namespace penstock::protocol::engine {
namespace {

using base::MapReader;
using base::Problems;
using base::Value;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
const std::vector<std::string> kPhases = {"done", "writing", "restarting", "returning"};
const std::vector<std::string> kFormats = {"toml", "json", "text"};

Json ToJson(const std::optional<std::string>& text) { return text ? Json(*text) : Json(nullptr); }

Json ToJson(const Target& file) {
  Json settings = Json::array();
  for (const Setting& setting : file.settings)
    settings.push_back({{"key", setting.path}, {"value", Json::parse(Spell(setting.value))}});
  return {{"path", file.path},
          {"format", kFormats[static_cast<std::size_t>(file.format)]},
          {"before", ToJson(file.before)},
          {"after", file.after},
          {"settings", settings}};
}

Json ToJson(const SettingRecord& record) {
  Json handlers = Json::array(), files = Json::array();
  for (const RuntimeHandler& handler : record.desired.handlers)
    handlers.push_back({{"name", handler.name}, {"path", handler.path}});
  for (const Target& file : record.files) files.push_back(ToJson(file));
  return {{"cdi", record.desired.cdi},
          {"handlers", handlers},
          {"default", record.desired.default_handler},
          {"files", files}};
}

std::optional<std::string> TextOrNull(MapReader& reader, std::string_view key) {
  const Value* value = reader.Any(key);
  if (value == nullptr || value->kind == Value::Kind::kNull) return std::nullopt;
  if (value->kind == Value::Kind::kString) return value->text;
  reader.Problem(key, "is not text");
  return std::nullopt;
}

/// Reads each item of a list with its own reader.
template <typename Take>
void ForEach(MapReader& reader, std::string_view key, Problems& problems, Take take) {
  const Value* list = reader.List(key);
  if (list == nullptr) return;
  for (const Value& item : *list->list) {
    MapReader inner(item, reader.Path(key), problems);
    take(inner);
    inner.Finish();
  }
}

Target TakeTarget(MapReader& reader, Problems& problems) {
  Target file;
  file.path = reader.String("path").value_or("");
  const std::string format = reader.OneOf("format", kFormats).value_or("toml");
  file.format = format == "json"   ? FileFormat::kJson
                : format == "text" ? FileFormat::kText
                                   : FileFormat::kToml;
  file.before = TextOrNull(reader, "before");
  file.after = reader.String("after").value_or("");
  for (const char* key : {"path", "after"}) reader.Require(key);
  ForEach(reader, "settings", problems, [&file](MapReader& inner) {
    Setting setting;
    setting.path = inner.Strings("key").value_or(Path{});
    if (const Value* value = inner.Any("value")) setting.value = *value;
    if (setting.path.empty()) inner.Problem("key", "is empty");
    file.settings.push_back(std::move(setting));
  });
  return file;
}

SettingRecord TakeRecord(MapReader& outer, std::string_view key, Problems& problems) {
  SettingRecord record;
  const Value* map = outer.Map(key);
  if (map == nullptr) return record;
  MapReader reader(*map, outer.Path(key), problems);
  record.desired.cdi = reader.Bool("cdi").value_or(false);
  record.desired.default_handler = reader.String("default").value_or("");
  ForEach(reader, "handlers", problems, [&record](MapReader& inner) {
    record.desired.handlers.push_back(
        {inner.String("name").value_or(""), inner.String("path").value_or("")});
  });
  ForEach(reader, "files", problems,
          [&](MapReader& inner) { record.files.push_back(TakeTarget(inner, problems)); });
  reader.Finish();
  return record;
}

struct InstallKey {
  const char* key;
  std::string Remembered::*member;
};
constexpr InstallKey kInstallKeys[] = {
    {"name", &Remembered::name},       {"config", &Remembered::config},
    {"dropIn", &Remembered::drop_in},  {"socket", &Remembered::socket},
    {"program", &Remembered::program}, {"unit", &Remembered::unit}};

}  // namespace

std::string Encode(const Journal& journal) {
  Json json = {{"version", kVersion},
               {"phase", kPhases[static_cast<std::size_t>(journal.phase)]},
               {"record", ToJson(journal.record)}};
  for (const InstallKey& key : kInstallKeys) json["engine"][key.key] = journal.install.*key.member;
  if (journal.phase != Phase::kDone) {
    json["next"] = ToJson(journal.next);
    Json files = Json::array();
    for (const FileChange& file : journal.files)
      files.push_back({{"path", file.path}, {"from", ToJson(file.from)}, {"to", ToJson(file.to)}});
    json["files"] = std::move(files);
    json["pid"] = journal.engine.pid;
    json["start"] = journal.engine.start;
  }
  return json.dump(2) + "\n";
}

base::Result<Journal> DecodeJournal(std::string_view text, std::string_view file) {
  ASSIGN(const Value document, base::ParseJson(text, file, {.bytes = 64u << 20}));
  Problems problems{std::string(file)};
  MapReader reader(document, "", problems);
  TRY(os::CheckKeptVersion(reader, file, kVersion));
  Journal journal;
  const std::string phase = reader.OneOf("phase", kPhases).value_or("done");
  for (std::size_t i = 0; i < kPhases.size(); ++i)
    if (kPhases[i] == phase) journal.phase = static_cast<Phase>(i);
  if (const Value* install = reader.Map("engine")) {
    MapReader inner(*install, "engine", problems);
    for (const InstallKey& key : kInstallKeys)
      journal.install.*key.member = inner.String(key.key).value_or("");
    inner.Finish();
  }
  journal.record = TakeRecord(reader, "record", problems);
  journal.next = TakeRecord(reader, "next", problems);
  ForEach(reader, "files", problems, [&journal](MapReader& inner) {
    journal.files.push_back(
        {inner.String("path").value_or(""), TextOrNull(inner, "from"), TextOrNull(inner, "to")});
  });
  journal.engine.pid =
      static_cast<pid_t>(reader.Int("pid", 0, std::numeric_limits<pid_t>::max()).value_or(0));
  journal.engine.start = static_cast<std::uint64_t>(
      reader.Int("start", 0, std::numeric_limits<std::int64_t>::max()).value_or(0));
  reader.Finish();
  if (!problems.empty()) return problems.ToError();
  return journal;
}

}  // namespace penstock::protocol::engine
