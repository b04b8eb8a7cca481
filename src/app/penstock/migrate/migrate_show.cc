#include <nlohmann/json.hpp>

#include "app/penstock/migrate/migrate_verb.h"
#include "base/core/json_text.h"

namespace penstock::app {

using analysis::Json;
namespace {

std::string Lines(const char* title, const std::vector<std::string>& lines, Color color,
                  const Style& style) {
  if (lines.empty()) return "";
  std::string text = "\n" + Paint(title, Color::kBold, style) + "\n";
  for (const std::string& line : lines) text += "  " + Paint(Printable(line), color, style) + "\n";
  return text;
}

std::string Changes(const char* what, const std::vector<analysis::PlannedChange>& changes,
                    const Style& style) {
  Table table({what, "NOW", "THEN", "NODES", "NOTE"});
  for (const analysis::PlannedChange& one : changes)
    table.Add({one.what,
               one.now,
               {one.then, one.now == one.then ? Color::kNone : Color::kYellow},
               one.nodes > 0 ? std::to_string(one.nodes) : "",
               one.note});
  return table.empty() ? "" : "\n" + table.Render(style);
}

Json ToJson(const std::vector<analysis::PlannedChange>& changes) {
  Json list = Json::array();
  for (const analysis::PlannedChange& one : changes)
    list.push_back({{"what", one.what},
                    {"now", one.now},
                    {"then", one.then},
                    {"nodes", one.nodes},
                    {"note", one.note}});
  return list;
}

}  // namespace

std::string ShowMigration(const analysis::Migration& migration, const Style& style) {
  const bool to_penstock = migration.direction == analysis::Direction::kToPenstock;
  std::string text =
      "From " + (to_penstock ? migration.from + " to Penstock" : "Penstock to " + migration.from) +
      ": what would change. Nothing was changed.\n";
  text += migration.found.empty() ? "\nnothing of either stack was found\n"
                                  : Lines("Found", migration.found, Color::kNone, style);
  text +=
      Changes("RESOURCE", migration.resources, style) + Changes("LABEL", migration.labels, style);
  text += Changes("METRIC", migration.metrics, style) + Changes("OBJECT", migration.objects, style);
  text += Changes("FILE", migration.files, style);
  text += Lines("Lost", migration.lost, Color::kRed, style);
  text += Lines("Fix first", migration.problems, Color::kRed, style);
  text += Lines("Not supported yet", migration.not_yet, Color::kYellow, style);
  text += Lines("Remarks", migration.remarks, Color::kNone, style);
  text += "\n" + Paint("Steps", Color::kBold, style) + "\n";
  for (std::size_t i = 0; i < migration.steps.size(); ++i)
    text += "  " + std::to_string(i + 1) + ". " + Printable(migration.steps[i].command) +
            "\n     " + Printable(migration.steps[i].why) + "\n";
  return text;
}

std::string MigrationToJson(const analysis::Migration& migration) {
  Json steps = Json::array();
  for (const analysis::Step& one : migration.steps)
    steps.push_back({{"command", one.command}, {"why", one.why}});
  return base::JsonText(
      Json{{"to", migration.direction == analysis::Direction::kToPenstock ? "penstock" : "nvidia"},
           {"found", migration.found},
           {"resources", ToJson(migration.resources)},
           {"labels", ToJson(migration.labels)},
           {"metrics", ToJson(migration.metrics)},
           {"objects", ToJson(migration.objects)},
           {"files", ToJson(migration.files)},
           {"lost", migration.lost},
           {"problems", migration.problems},
           {"notYet", migration.not_yet},
           {"remarks", migration.remarks},
           {"steps", std::move(steps)}});
}

}  // namespace penstock::app
