// Reads, prints and checks the sections `telemetry`, `usage` and `http`.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <set>

#include "api/config/node_config_check.h"
#include "api/config/node_config_sections.h"
#include "api/listen.h"
#include "base/core/strings.h"

namespace penstock::api::internal {

namespace {

using base::MapReader;
using base::Problems;
using base::Value;
using namespace std::chrono_literals;

/// The limits of a duration that can be configured.
struct Limits {
  std::string_view key;
  base::Duration least, most;
};
/// NVML's profiling metrics are averages over 100 ms at least (DCGM issue 310).
constexpr Limits kInterval{"interval", 100ms, 1h};
constexpr Limits kXidWindow{"xidWindow", 1s, 24h};
constexpr Limits kClockEventsWindow{"clockEventsWindow", 1s, 24h};
constexpr Limits kKeepEnded{"keepEnded", 0s, 24h};
constexpr Limits kCheckpoint{"checkpoint", 1s, 24h};
constexpr Limits kIdleAfter{"idleAfter", 1s, 30 * 24h};
constexpr Limits kDeadline{"deadline", 100ms, 10min};
constexpr std::int64_t kMaxFiles = 10'000, kMaxConnections = 4096;
constexpr base::Bytes kMinFile{64u << 10}, kMaxFile = base::Mebibytes(4096);

constexpr std::array<std::pair<std::string_view, MetricNames>, 3> kNames = {
    {{"accelerator", MetricNames::kAccelerator},
     {"dcgm", MetricNames::kExporter},
     {"dcgm-4.7", MetricNames::kExporterNew}}};
constexpr std::array<std::pair<std::string_view, HostLabel>, 4> kHostLabels = {
    {{"none", HostLabel::kNone},
     {"Hostname", HostLabel::kOld},
     {"hostname", HostLabel::kNew},
     {"both", HostLabel::kBoth}}};
const std::vector<std::string> kTypes = {"gauge", "counter", "label"};

template <typename Table>
std::vector<std::string> WordsOf(const Table& table) {
  std::vector<std::string> words;
  for (const auto& [word, value] : table) words.emplace_back(word);
  return words;
}

template <typename Table, typename Member>
std::string_view WordFor(const Table& table, Member wanted) {
  return std::find_if(table.begin(), table.end(),
                      [&](const auto& entry) { return entry.second == wanted; })
      ->first;
}

template <typename Table>
auto MeaningOf(const Table& table, std::string_view word) {
  return std::find_if(table.begin(), table.end(),
                      [&](const auto& entry) { return entry.first == word; })
      ->second;
}

void ReadTime(MapReader& reader, const Limits& limits, base::Duration& target) {
  target = reader.Time(limits.key, limits.least, limits.most).value_or(target);
}

void ReadNames(MapReader& reader, Problems& problems, TelemetryConfig& telemetry) {
  const Value* list = reader.List("names");
  if (list == nullptr) return;
  auto& names = telemetry.names;
  names.clear();
  telemetry.names_set = true;
  const std::vector<std::string> words = WordsOf(kNames);
  for (const Value& item : *list->list) {
    if (std::find(words.begin(), words.end(), item.text) != words.end()) {
      names.push_back(MeaningOf(kNames, item.text));
    } else {
      const auto near = base::Nearest(item.text, words);
      problems.Add(item.mark, reader.Path("names") + ": \"" + item.text + "\" is none of " +
                                  base::Join(words, ", ") +
                                  (near ? "; did you mean \"" + *near + "\"?" : ""));
    }
  }
}

std::vector<MetricRow> ReadCounters(MapReader& telemetry, Problems& problems) {
  std::vector<MetricRow> rows;
  const Value* list = telemetry.List("counters");
  if (list == nullptr) return rows;
  for (const Value& item : *list->list) {
    MapReader reader(item, "telemetry.counters[" + std::to_string(rows.size()) + "]", problems);
    MetricRow row;
    reader.Require("field");
    row.field = reader.String("field").value_or("?");
    reader.Require("type");
    row.type = reader.OneOf("type", kTypes).value_or("gauge");
    row.help = reader.String("help").value_or("");
    reader.Finish();
    rows.push_back(std::move(row));
  }
  return rows;
}

void ReadStrings(MapReader& reader, std::string_view key, std::vector<std::string>& target) {
  if (auto strings = reader.Strings(key)) target = *std::move(strings);
}

void ReadString(MapReader& reader, std::string_view key, std::string& target) {
  if (auto text = reader.String(key)) target = *std::move(text);
}

void ReadBool(MapReader& reader, std::string_view key, bool& target) {
  target = reader.Bool(key).value_or(target);
}

// Printing.

std::string Line(std::string_view key, std::string_view value) {
  return "  " + std::string(key) + ": " + std::string(value) + "\n";
}
std::string Line(std::string_view key, bool value) {
  return Line(key, std::string_view(value ? "true" : "false"));
}

std::string List(const std::vector<std::string>& items) {
  std::vector<std::string> quoted;
  for (const std::string& item : items) quoted.push_back(Quoted(item));
  return "[" + base::Join(quoted, ", ") + "]";
}

std::string CountersText(const std::vector<MetricRow>& rows) {
  if (rows.empty()) return "  counters: []\n";
  std::string text = "  counters:\n";
  for (const MetricRow& row : rows)
    text += "    - {field: " + Quoted(row.field) + ", type: " + row.type +
            ", help: " + Quoted(row.help) + "}\n";
  return text;
}

std::string Text(base::Bytes bytes) {
  const std::uint64_t count = bytes.count;
  if (count % (1u << 20) == 0) return std::to_string(count >> 20) + "Mi";
  if (count % (1u << 10) == 0) return std::to_string(count >> 10) + "Ki";
  return std::to_string(count);
}

std::string Text(double number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), end};
}

// Checks.

/// Checks a value that a flag may have set: the reader has already checked values from a document.
void CheckTime(const char* section, const Limits& limits, base::Duration value,
               const ReportProblem& report) {
  if (value >= limits.least && value <= limits.most) return;
  report(std::string(section) + "." + std::string(limits.key),
         "is " + base::FormatDuration(value) + ", outside of " +
             base::FormatDuration(limits.least) + " to " + base::FormatDuration(limits.most));
}

/// Reports globs that cannot match, because no name contains such a character.
void CheckGlobs(std::string_view key, const std::vector<std::string>& globs,
                std::string_view others, const char* what, const ReportProblem& report) {
  for (std::size_t i = 0; i < globs.size(); ++i) {
    const bool can = !globs[i].empty() &&
                     std::all_of(globs[i].begin(), globs[i].end(), [others](unsigned char c) {
                       return (c < 0x80 && std::isalnum(c) != 0) ||
                              others.find(static_cast<char>(c)) != std::string_view::npos;
                     });
    if (!can)
      report(std::string(key) + "[" + std::to_string(i) + "]",
             "\"" + globs[i] + "\" cannot match any " + what + "; write a glob with * and ?");
  }
}

void CheckCounters(const TelemetryConfig& telemetry, const ReportProblem& report) {
  if (!telemetry.counters.empty() &&
      (!telemetry.counters_file.empty() || !telemetry.counters_map.empty()))
    report("telemetry.counters",
           "says what telemetry.countersFile and telemetry.countersConfigMap say, too; leave one "
           "of them out");
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < telemetry.counters.size(); ++i) {
    const MetricRow& row = telemetry.counters[i];
    const std::string key = "telemetry.counters[" + std::to_string(i) + "]";
    if (row.field.empty()) report(key + ".field", "must not be empty");
    if (!seen.insert(row.field).second)
      report(key + ".field",
             "\"" + row.field + "\" appears twice; a family has one type and one help");
  }
  CheckOptionalPath("telemetry.countersFile", telemetry.counters_file, report);
  const auto parts = base::Split(telemetry.counters_map, ':');
  if (!telemetry.counters_map.empty() &&
      (parts.size() != 2 || !IsObjectName(parts[0], false) || !IsObjectName(parts[1], true)))
    report("telemetry.countersConfigMap",
           "\"" + telemetry.counters_map + "\" is not a ConfigMap: write NAMESPACE:NAME");
}

void CheckNames(const std::vector<MetricNames>& names, const ReportProblem& report) {
  if (names.empty())
    report("telemetry.names",
           "is empty; name at least one of " + base::Join(WordsOf(kNames), ", "));
  for (std::size_t i = 0; i < names.size(); ++i)
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
        names.begin() + static_cast<std::ptrdiff_t>(i))
      report("telemetry.names[" + std::to_string(i) + "]",
             "\"" + std::string(WordFor(kNames, names[i])) + "\" is named twice");
}

}  // namespace

void ReadTelemetry(MapReader& top, Problems& problems, TelemetryConfig& telemetry) {
  MapReader reader(MapAt(top, "telemetry"), "telemetry", problems);
  ReadTime(reader, kInterval, telemetry.interval);
  ReadNames(reader, problems, telemetry);
  ReadBool(reader, "processes", telemetry.processes);
  ReadStrings(reader, "exclude", telemetry.exclude);
  ReadStrings(reader, "include", telemetry.include);
  telemetry.counters = ReadCounters(reader, problems);
  ReadString(reader, "countersFile", telemetry.counters_file);
  ReadString(reader, "countersConfigMap", telemetry.counters_map);
  if (const auto label = reader.OneOf("hostLabel", WordsOf(kHostLabels)))
    telemetry.host_label = MeaningOf(kHostLabels, *label);
  ReadBool(reader, "oldNames", telemetry.old_names);
  ReadBool(reader, "blanksReplaced", telemetry.blanks_replaced);
  ReadBool(reader, "holders", telemetry.holders);
  ReadSwitch(reader, "virtualGpus", telemetry.virtual_gpus);
  ReadBool(reader, "podUid", telemetry.pod_uid);
  ReadTime(reader, kXidWindow, telemetry.xid_window);
  ReadTime(reader, kClockEventsWindow, telemetry.clock_events_window);
  ReadStrings(reader, "holderLabels", telemetry.holder_labels);
  ReadTime(reader, kKeepEnded, telemetry.keep_ended);
  reader.Finish();
}

void ReadUsage(MapReader& top, Problems& problems, UsageConfig& usage) {
  MapReader reader(MapAt(top, "usage"), "usage", problems);
  ReadBool(reader, "records", usage.records);
  ReadString(reader, "dir", usage.dir);
  usage.file_size = reader.Size("fileSize").value_or(usage.file_size);
  usage.files = static_cast<int>(reader.Int("files", 1, kMaxFiles).value_or(usage.files));
  ReadTime(reader, kCheckpoint, usage.checkpoint);
  ReadTime(reader, kIdleAfter, usage.idle_after);
  usage.idle_below = reader.Number("idleBelow", 0, 1).value_or(usage.idle_below);
  reader.Finish();
}

void ReadHttp(MapReader& top, Problems& problems, HttpConfig& http) {
  MapReader reader(MapAt(top, "http"), "http", problems);
  ReadString(reader, "listen", http.listen);
  ReadString(reader, "webConfigFile", http.web_config_file);
  http.connections =
      static_cast<int>(reader.Int("connections", 1, kMaxConnections).value_or(http.connections));
  ReadTime(reader, kDeadline, http.deadline);
  reader.Finish();
}

std::string TelemetryText(const TelemetryConfig& telemetry) {
  std::vector<std::string> names;
  for (const MetricNames one : telemetry.names) names.emplace_back(WordFor(kNames, one));
  return "telemetry:\n" + Line("interval", Text(telemetry.interval)) +
         Line("names", "[" + base::Join(names, ", ") + "]") +
         Line("processes", telemetry.processes) + Line("exclude", List(telemetry.exclude)) +
         Line("include", List(telemetry.include)) + CountersText(telemetry.counters) +
         Line("countersFile", Quoted(telemetry.counters_file)) +
         Line("countersConfigMap", Quoted(telemetry.counters_map)) +
         Line("hostLabel", WordFor(kHostLabels, telemetry.host_label)) +
         Line("oldNames", telemetry.old_names) + Line("blanksReplaced", telemetry.blanks_replaced) +
         Line("holders", telemetry.holders) + Line("virtualGpus", Text(telemetry.virtual_gpus)) +
         Line("podUid", telemetry.pod_uid) + Line("xidWindow", Text(telemetry.xid_window)) +
         Line("clockEventsWindow", Text(telemetry.clock_events_window)) +
         Line("holderLabels", List(telemetry.holder_labels)) +
         Line("keepEnded", Text(telemetry.keep_ended));
}

std::string UsageText(const UsageConfig& usage) {
  return "usage:\n" + Line("records", usage.records) + Line("dir", Quoted(usage.dir)) +
         Line("fileSize", Text(usage.file_size)) + Line("files", std::to_string(usage.files)) +
         Line("checkpoint", Text(usage.checkpoint)) + Line("idleAfter", Text(usage.idle_after)) +
         Line("idleBelow", Text(usage.idle_below));
}

std::string HttpText(const HttpConfig& http) {
  return "http:\n" + Line("listen", Quoted(http.listen)) +
         Line("webConfigFile", Quoted(http.web_config_file)) +
         Line("connections", std::to_string(http.connections)) +
         Line("deadline", Text(http.deadline));
}

void CheckTelemetry(const NodeConfig& config, const ReportProblem& report) {
  const TelemetryConfig& telemetry = config.telemetry;
  CheckTime("telemetry", kInterval, telemetry.interval, report);
  CheckTime("telemetry", kXidWindow, telemetry.xid_window, report);
  CheckTime("telemetry", kClockEventsWindow, telemetry.clock_events_window, report);
  CheckNames(telemetry.names, report);
  CheckGlobs("telemetry.exclude", telemetry.exclude, "_:*?", "family of metrics", report);
  CheckGlobs("telemetry.include", telemetry.include, "_:*?", "family of metrics", report);
  CheckGlobs("telemetry.holderLabels", telemetry.holder_labels, "-_./*?", "key of a label", report);
  CheckCounters(telemetry, report);
  CheckOptionalPath("usage.dir", config.usage.dir, report);
  if (config.usage.file_size < kMinFile || config.usage.file_size > kMaxFile)
    report("usage.fileSize", "is " + base::FormatBytes(config.usage.file_size) + ", outside of " +
                                 base::FormatBytes(kMinFile) + " to " +
                                 base::FormatBytes(kMaxFile));
  CheckTime("http", kDeadline, config.http.deadline, report);
  if (auto listen = ParseListen(config.http.listen); !listen.ok())
    report("http.listen", listen.error().message());
  CheckOptionalPath("http.webConfigFile", config.http.web_config_file, report);
}

}  // namespace penstock::api::internal
