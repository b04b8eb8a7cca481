// Reads and writes version 1 of the journal.
#include "protocol/engine/apply/journal.h"

#include <nlohmann/json.hpp>

#include "base/core/json_text.h"
#include "os/kept_file.h"

namespace penstock::protocol::engine {
namespace {

constexpr int kVersion = 1;
constexpr base::Names<Phase, 4> kPhases{{{Phase::kDone, "done"},
                                         {Phase::kWriting, "writing"},
                                         {Phase::kRestarting, "restarting"},
                                         {Phase::kReturning, "returning"}}};
constexpr base::Names<FileFormat, 3> kFormats{
    {{FileFormat::kToml, "toml"}, {FileFormat::kJson, "json"}, {FileFormat::kText, "text"}}};

}  // namespace

template <typename Visit, base::Of<Setting> T>
static void VisitFields(Visit& visit, T& setting) {
  visit("key", setting.path, {.filled = true});
  if constexpr (Visit::kReads) {
    if (const base::Value* value = visit.map().Any("value")) setting.value = *value;
  } else {
    visit.json()["value"] = base::ParseJson<nlohmann::ordered_json>(Spell(setting.value));
  }
}

template <typename Visit, base::Of<Target> T>
static void VisitFields(Visit& visit, T& file) {
  visit("path", file.path, {.required = true});
  visit.Named("format", file.format, kFormats);
  visit("before", file.before, {.or_null = true});
  visit("after", file.after, {.required = true});
  visit("settings", file.settings);
}

template <typename Visit, base::Of<RuntimeHandler> T>
static void VisitFields(Visit& visit, T& handler) {
  visit("name", handler.name);
  visit("path", handler.path);
}

template <typename Visit, base::Of<SettingRecord> T>
static void VisitFields(Visit& visit, T& record) {
  visit("cdi", record.desired.cdi);
  visit("handlers", record.desired.handlers);
  visit("default", record.desired.default_handler);
  visit("files", record.files);
}

template <typename Visit, base::Of<FileChange> T>
static void VisitFields(Visit& visit, T& file) {
  visit("path", file.path);
  visit("from", file.from, {.or_null = true});
  visit("to", file.to, {.or_null = true});
}

template <typename Visit, base::Of<Remembered> T>
static void VisitFields(Visit& visit, T& install) {
  visit("name", install.name);
  visit("config", install.config);
  visit("dropIn", install.drop_in);
  visit("socket", install.socket);
  visit("program", install.program);
  visit("unit", install.unit);
}

template <typename Visit, base::Of<Journal> T>
static void VisitFields(Visit& visit, T& journal) {
  visit.Named("phase", journal.phase, kPhases);
  visit("record", journal.record);
  visit("engine", journal.install);
  if (!Visit::kReads && journal.phase == Phase::kDone) return;
  visit("next", journal.next);
  visit("files", journal.files);
  visit("pid", journal.engine.pid);
  visit("start", journal.engine.start);
}

std::string Encode(const Journal& journal) {
  return os::EncodeKept<nlohmann::ordered_json>(
      kVersion, [&journal](auto& write) { VisitFields(write, journal); });
}

base::Result<Journal> DecodeJournal(std::string_view text, std::string_view file) {
  Journal journal;
  TRY(os::DecodeKept(kVersion, text, file,
                     [&journal](base::StructReader& read) { VisitFields(read, journal); },
                     {.bytes = 64u << 20}));
  return journal;
}

}  // namespace penstock::protocol::engine
