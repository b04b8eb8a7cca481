// Splits manifests into documents. Each text is copied from the file's own lines, after as many
// empty lines as precede it there, so that positions stay right.
#include "app/penstock/config/config_documents.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "api/compat/nvidia/counters.h"
#include "base/core/document.h"
#include "base/core/strings.h"
#include "base/yaml.h"

namespace penstock::app {

namespace {

std::string TextAt(const base::Value& value, std::string_view key) {
  const base::Value* found = value.Find(key);
  return found == nullptr ? "" : found->text;
}

std::string EmptyLines(std::size_t count) { return std::string(count, '\n'); }

bool IsSeparator(std::string_view line) {
  return line == "---" || line.starts_with("--- ") || line.starts_with("---\t") || line == "---\r";
}

/// Splits a stream into its documents, each at its position.
std::vector<std::string> SplitDocuments(std::string_view text) {
  std::vector<std::string> documents(1);
  std::size_t number = 0;
  for (const std::string& line : base::Split(text, '\n')) {
    ++number;
    if (IsSeparator(line)) {
      documents.push_back(EmptyLines(number));
    } else {
      documents.back() += line + "\n";
    }
  }
  std::erase_if(documents,
                [](const std::string& document) { return base::Trim(document).empty(); });
  return documents;
}

/// Returns the lines of a literal block ("any: |") as they are in the file; nothing where the value
/// has another style.
std::optional<std::string> LiteralBlock(const std::vector<std::string>& lines, int key_line,
                                        const std::string& value) {
  std::vector<std::string> content = base::Split(value, '\n');
  while (!content.empty() && content.back().empty()) content.pop_back();
  const auto begin = static_cast<std::size_t>(key_line);
  if (content.empty() || begin + content.size() > lines.size()) return std::nullopt;
  std::optional<std::size_t> indent;
  std::string cut = EmptyLines(begin);
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string& line = lines[begin + i];
    if (!content[i].empty() && !indent)
      indent = line.size() >= content[i].size() ? line.size() - content[i].size() : 0;
    const bool same = content[i].empty() ? base::Trim(line).empty()
                                         : line.size() == *indent + content[i].size() &&
                                               line.ends_with(content[i]) &&
                                               line.find_first_not_of(' ') >= *indent;
    if (!same) return std::nullopt;
    cut += line + "\n";
  }
  return cut;
}

/// A text in a file: `title` describes its place for users, `key` is its key in the file.
ConfigDocument TextIn(const base::Value::Entry& entry, const std::vector<std::string>& lines,
                      const std::string& file, const std::string& title, const std::string& key) {
  // Counters files must not be indented: their lines are counted from the key's text.
  const auto block = api::compat::LooksLikeCounters(entry.value.text)
                         ? std::nullopt
                         : LiteralBlock(lines, entry.mark.line, entry.value.text);
  return {.title = title,
          .name = block ? file : file + ", " + key,
          .text = block ? *block : entry.value.text};
}

const base::Value* MapAt(const base::Value& value, std::initializer_list<std::string_view> path) {
  const base::Value* found = &value;
  for (const std::string_view key : path)
    if (found != nullptr) found = found->Find(key);
  return found != nullptr && found->kind == base::Value::Kind::kMap ? found : nullptr;
}

/// Where charts contain configurations of nodes: a map of texts, or the text of one key.
struct Place {
  std::initializer_list<std::string_view> map;
  std::string_view key;  // empty: all keys
};

/// Returns the values file, and the configurations and counters files in it.
std::vector<ConfigDocument> InValues(const base::Value& values, analysis::Chart chart,
                                     const std::string& file, std::string_view text) {
  static const Place kPlaces[] = {{{"config", "map"}, ""},
                                  {{"devicePlugin", "config", "data"}, ""},
                                  {{"config"}, "data"},
                                  {{"penstock", "telemetry"}, "counters"},
                                  {{"dcgmExporter", "config"}, "data"},
                                  {{}, "customMetrics"}};
  std::vector<ConfigDocument> documents = {
      {.title = file, .name = file, .text = "", .chart = chart}};
  const std::vector<std::string> lines = base::Split(text, '\n');
  for (const Place& place : kPlaces) {
    const base::Value* map = MapAt(values, place.map);
    if (map == nullptr) continue;
    std::string path;
    for (const std::string_view key : place.map) path += std::string(key) + ".";
    for (const base::Value::Entry& entry : *map->map)
      if ((place.key.empty() || entry.key == place.key) &&
          entry.value.kind == base::Value::Kind::kString && !base::Trim(entry.value.text).empty())
        documents.push_back(
            TextIn(entry, lines, file, file + ": " + path + entry.key, path + entry.key));
  }
  return documents;
}

/// Adds the keys below `data`, or returns what is wrong with it.
base::Status AddKeys(const base::Value& manifest, const std::vector<std::string>& lines,
                     const std::string& file, std::vector<ConfigDocument>& documents) {
  base::Problems problems(file);
  const base::Value* metadata = manifest.Find("metadata");
  const std::string space = metadata != nullptr ? TextAt(*metadata, "namespace") : "";
  const std::string map = "ConfigMap " + (space.empty() ? "" : space + "/") +
                          (metadata != nullptr ? TextAt(*metadata, "name") : "");
  if (const base::Value* binary = manifest.Find("binaryData");
      binary != nullptr && binary->map && !binary->map->empty())
    problems.Add(binary->mark,
                 "binaryData: is not read; a configuration is text and belongs below \"data\"");
  const base::Value* data = manifest.Find("data");
  if (data == nullptr || !data->map || data->map->empty())
    problems.Add(data != nullptr ? data->mark : manifest.mark, map + " has no keys below \"data\"");
  for (const auto& entry : data != nullptr && data->map ? *data->map : base::Value::Map()) {
    if (entry.value.kind != base::Value::Kind::kString &&
        entry.value.kind != base::Value::Kind::kNull) {
      problems.Add(entry.value.mark,
                   "data." + entry.key + ": is " + std::string(base::Describe(entry.value.kind)) +
                       " where text is expected; put it after \"" + entry.key + ": |\"");
      continue;
    }
    documents.push_back(
        TextIn(entry, lines, file, file + ": " + map + ", key " + entry.key, "key " + entry.key));
  }
  if (!problems.empty()) return problems.ToError();
  return {};
}

std::string DocumentKind(std::string_view document) {
  const auto value = base::ParseYaml(document, "");
  return value.ok() ? TextAt(*value, "kind") : "";
}

}  // namespace

base::Result<std::vector<ConfigDocument>> FindConfigurations(std::string_view text,
                                                             const std::string& file) {
  const std::vector<std::string> parts = SplitDocuments(text);
  const bool manifest = std::any_of(parts.begin(), parts.end(), [](const std::string& part) {
    return DocumentKind(part) == "ConfigMap";
  });
  std::vector<ConfigDocument> documents;
  if (!manifest) {
    base::Problems unread{file, base::ReadingMode::kLenient};  // values files contain YAML anchors
    const auto value = api::compat::LooksLikeCounters(text)
                           ? base::Result<base::Value>(base::Value{})
                           : base::ParseYaml(text, unread);
    if (const analysis::Chart chart =
            value.ok() ? analysis::ChartOf(*value) : analysis::Chart::kNone;
        chart != analysis::Chart::kNone)
      return InValues(*value, chart, file, text);
    documents.push_back({file, file, std::string(text)});
    return documents;
  }
  const std::vector<std::string> lines = base::Split(text, '\n');
  for (const std::string& part : parts) {
    ASSIGN(const base::Value value, base::ParseYaml(part, file));
    if (const std::string kind = TextAt(value, "kind"); kind == "ConfigMap") {
      TRY(AddKeys(value, lines, file, documents));
    } else if (kind == "NodeConfig") {
      documents.push_back({file + ": NodeConfig", file, part});
    }
  }
  return documents;
}

}  // namespace penstock::app
