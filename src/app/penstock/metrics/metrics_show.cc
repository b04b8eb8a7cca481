// Formats metric families as tables and JSON.
#include "app/penstock/metrics/metrics_show.h"

#include <nlohmann/json.hpp>

#include "base/core/json_text.h"
#include "base/core/strings.h"

namespace penstock::app {

namespace {

using Json = nlohmann::ordered_json;

Json ToTree(const analysis::MetricName& metric) {
  Json sources = Json::array();
  for (const analysis::MetricSource& one : metric.sources)
    sources.push_back({{"vendor", one.vendor},
                       {"quantity", one.key},
                       {"labels", one.labels},
                       {"source", one.source},
                       {"has", one.has}});
  return {{"name", metric.name},
          {"names", metric.names},
          {"group", metric.group},
          {"type", metric.type},
          {"unit", metric.unit},
          {"labels", metric.labels},
          {"meaning", metric.meaning},
          {"note", metric.note},
          {"byDefault", metric.by_default},
          {"notToBeHad", metric.unavailable},
          {"sources", sources},
          {"also", metric.also}};
}

std::string Dump(const Json& tree) { return base::JsonText(tree, 2) + "\n"; }

/// Whether the page has the metric by default.
Cell ByDefault(const analysis::MetricName& metric) {
  if (!metric.unavailable.empty()) return {"never", Color::kDim};
  return metric.by_default ? Cell("yes") : Cell("if asked", Color::kDim);
}

std::string Line(const std::string& what, const std::string& text, const Style& style) {
  if (text.empty()) return "";
  std::string head = what.empty() ? "" : what + ":";
  head.resize(13, ' ');
  return Paint(head, Color::kBold, style) + text + "\n";
}

std::string Sentence(const analysis::MetricSource& source) {
  std::string text = source.vendor + ": " + source.source;
  if (source.source.empty()) text += source.key;
  if (!source.labels.empty()) text += " {" + source.labels + "}";
  if (!source.has.empty()) text += " (" + source.has + ")";
  return text;
}

/// Removes Markdown's backquotes.
std::string Plain(std::string text) {
  std::erase(text, '`');
  return text;
}

}  // namespace

std::string ShowMetricNames(const std::vector<analysis::MetricName>& metrics, bool wide,
                            const Style& style) {
  Table table(
      wide ? std::vector<std::string>{"NAME", "TYPE", "SHOWN", "NAMES", "UNIT", "LABELS", "MEANING"}
           : std::vector<std::string>{"NAME", "TYPE", "SHOWN", "MEANING"});
  for (const analysis::MetricName& metric : metrics) {
    std::vector<Cell> row{metric.name, metric.type, ByDefault(metric)};
    if (wide) row.insert(row.end(), {metric.names, metric.unit, base::Join(metric.labels, ",")});
    row.emplace_back(metric.unavailable.empty() ? metric.meaning : metric.unavailable);
    table.Add(std::move(row));
  }
  return table.Render(style);
}

std::string ShowMetricName(const analysis::MetricName& metric, const Style& style) {
  std::string text = Paint(metric.name, Color::kBold, style) + "\n\n" + metric.meaning + "\n";
  if (!metric.note.empty()) text += Plain(metric.note) + "\n";
  text += "\n" + Line("type", metric.type, style) + Line("unit", metric.unit, style) +
          Line("labels", base::Join(metric.labels, " "), style);
  const std::string always =
      metric.names == "penstock" ? "always" : "telemetry.names has " + metric.names;
  const std::string if_asked =
      always + (metric.group == "exporter" ? ", and the configured counters include it"
                                           : " and telemetry.include matches it");
  if (metric.unavailable.empty())
    text += Line("shown", metric.by_default ? always : if_asked, style);
  text += Line("unavailable", metric.unavailable, style);
  for (std::size_t i = 0; i < metric.sources.size(); ++i)
    text += Line(i == 0 ? "source" : "", Sentence(metric.sources[i]), style);
  text += Line("also called", base::Join(metric.also, ", "), style);
  return text;
}

std::string MetricNamesJson(const std::vector<analysis::MetricName>& metrics) {
  Json list = Json::array();
  for (const analysis::MetricName& metric : metrics) list.push_back(ToTree(metric));
  return Dump({{"families", list}});
}

std::string MetricNameJson(const analysis::MetricName& metric) { return Dump(ToTree(metric)); }

}  // namespace penstock::app
