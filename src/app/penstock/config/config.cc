#include "app/penstock/config/config.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/compat/nvidia/counters.h"
#include "api/compat/nvidia/mig_parted.h"
#include "app/penstock/common/table.h"
#include "app/penstock/common/verbs.h"
#include "app/penstock/config/check_against.h"
#include "app/penstock/config/check_layouts.h"
#include "app/penstock/config/config_documents.h"
#include "app/penstock/local/show.h"
#include "backend/all.h"
#include "backend/counter_fields.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"
#include "base/yaml.h"
#include "os/core/file.h"
#include "view/unavailable_metrics.h"

namespace penstock::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr char kOwn[] = "NodeConfig", kPlugin[] = "device plugin v1",
               kCounters[] = "dcgm-exporter counters";

constexpr char kLayouts[] = "mig-parted";

/// A configuration and the result of its check.
struct Checked {
  ConfigDocument document;
  std::string kind;  ///< "NodeConfig", "device plugin v1", "dcgm-exporter", "dcgm-exporter
                     ///< counters", "values of ..."
  base::Result<Resolved> resolved = Resolved{};
  std::optional<view::Preview> preview;
  std::vector<api::UnavailableMetric> unavailable;  ///< on the machine that it is checked against
  api::Layouts layouts;                             ///< of a file of mig-parted
  std::vector<CheckedLayout> checked_layouts;       ///< on that machine
};

base::Result<std::string> ReadText(const std::string& file) {
  return file == "-" ? os::ReadAll(STDIN_FILENO, "standard input", 4u << 20) : ReadConfigText(file);
}

std::string KindOf(const std::string& text) {
  switch (api::compat::Recognise(text)) {
    case api::compat::Document::kNodeConfig: return kOwn;
    case api::compat::Document::kDevicePlugin: return kPlugin;
    case api::compat::Document::kExporter: return "dcgm-exporter";
  }
  return "";
}

base::Result<Resolved> ResolveCounters(const ConfigDocument& document) {
  ASSIGN(auto counters,
         api::compat::ParseCounters(document.text, document.name, backend::CounterFields()));
  Resolved resolved{.remarks = std::move(counters.remarks)};
  resolved.config.telemetry.counters = std::move(counters.rows);
  return resolved;
}

Checked CheckValues(ConfigDocument document) {
  Checked checked{.document = std::move(document)};
  checked.kind = analysis::Describe(checked.document.chart);
  const analysis::Chart chart = checked.document.chart;
  const bool migrates =
      chart == analysis::Chart::kDevicePlugin || chart == analysis::Chart::kOperator ||
      chart == analysis::Chart::kRocmPlugin || chart == analysis::Chart::kRocmExporter ||
      chart == analysis::Chart::kRocmConfigManager || chart == analysis::Chart::kRocmOperator;
  checked.resolved->remarks.push_back(
      "is not a configuration of a node: only the configurations and lists of counters in it are "
      "checked" +
      (migrates ? "; penstock migrate --manifests " + checked.document.name +
                      " shows what the other values become"
                : ""));
  return checked;
}

/// Returns whether a text has only blank lines, comments and document marks.
bool HasNoSettings(const std::string& text) {
  const auto lines = base::Split(text, '\n');
  return std::all_of(lines.begin(), lines.end(), [](const std::string& line) {
    const std::string_view trimmed = base::Trim(line);
    return trimmed.empty() || trimmed == "---" || trimmed.front() == '#';
  });
}

Checked CheckMigParted(ConfigDocument document) {
  Checked checked{.document = std::move(document), .kind = kLayouts};
  auto layouts = ReadLayouts(checked.document.text, checked.document.name);
  if (layouts.ok())
    checked.layouts = *std::move(layouts);
  else
    checked.resolved = layouts.error();
  return checked;
}

Checked Check(ConfigDocument document, base::ReadingMode reading) {
  if (document.chart != analysis::Chart::kNone) return CheckValues(std::move(document));
  if (api::compat::LooksLikeMigParted(document.text)) return CheckMigParted(std::move(document));
  const bool counters = api::compat::LooksLikeCounters(document.text);
  Checked checked{.document = std::move(document)};
  checked.kind = counters ? kCounters : KindOf(checked.document.text);
  const Settings settings{.plugin_reading = reading};
  checked.resolved = counters ? ResolveCounters(checked.document)
                              : ResolveText(settings, checked.document.text, checked.document.name);
  if (!counters && checked.resolved.ok() && HasNoSettings(checked.document.text))
    checked.resolved->remarks.push_back("contains no settings: the defaults are used");
  return checked;
}

/// Returns "GPU-...", "GPU-... in 4 shares (time-slicing)", and why a device cannot be used. Omits
/// that no server runs, because the machine is only simulated.
std::string DescribeSlots(const node::share::Offer& offer) {
  std::vector<std::string> devices;
  std::string last;
  for (const auto& offered : offer.slots) {
    const device::Shape& shape = offered.slot.shape;
    if (std::exchange(last, offered.slot.device) == offered.slot.device) continue;
    std::string text = offered.slot.device;
    if (shape.shares > 1)
      text += " in " + std::to_string(shape.shares) + " shares (" +
              std::string(ToString(shape.sharing)) + ")";
    if (!offered.usable && shape.sharing != device::Sharing::kServer)
      text += " (" + offered.reason + ")";
    devices.push_back(std::move(text));
  }
  return base::Join(devices, ", ");
}

void Show(const Checked& checked) {
  if (!checked.resolved.ok()) {
    std::cerr << checked.resolved.error().message() << "\n";
    return;
  }
  std::cout << checked.document.title << ": OK"
            << (checked.kind == kOwn ? "" : " (" + checked.kind + ")") << "\n";
  for (const std::string& one : checked.resolved->not_yet)
    std::cout << "  not supported yet: " << one << "\n";
  for (const std::string& one : checked.resolved->remarks) std::cout << "  remark: " << one << "\n";
  if (checked.kind == kCounters)
    std::cout << "  shows " << checked.resolved->config.telemetry.counters.size() << " fields\n";
  if (checked.kind == kLayouts)
    std::cout << "  layouts: " << base::Join(checked.layouts.names(), ", ") << "\n";
  std::cout << ShowLayouts(checked.checked_layouts);
  std::cout << ShowUnavailable(checked.unavailable, "  ");
  if (checked.preview) std::cout << ShowPreview(*checked.preview);
}

Json PreviewJson(const view::Preview& preview) {
  Json resources = Json::array();
  for (const auto& offer : preview.offers) {
    Json slots = Json::array();
    for (const auto& offered : offer.slots)
      slots.push_back({{"slot", offered.slot.id},
                       {"device", offered.slot.device},
                       {"sharing", ToString(offered.slot.shape.sharing)},
                       {"usable", offered.usable},
                       {"reason", offered.reason}});
    resources.push_back({{"allocator", offer.allocator},
                         {"door", offer.allocator},
                         {"resource", offer.resource},
                         {"slots", std::move(slots)}});
  }
  Json labels = Json::object();
  for (const auto& [key, value] : preview.labels) labels[key] = value;
  return {{"resources", std::move(resources)}, {"labels", std::move(labels)}};
}

Json ToJson(const Checked& checked) {
  Json document = {
      {"name", checked.document.title}, {"kind", checked.kind}, {"ok", checked.resolved.ok()}};
  document["problems"] = checked.resolved.ok()
                             ? std::vector<std::string>{}
                             : base::Split(checked.resolved.error().message(), '\n');
  document["notYet"] =
      checked.resolved.ok() ? checked.resolved->not_yet : std::vector<std::string>{};
  document["remarks"] =
      checked.resolved.ok() ? checked.resolved->remarks : std::vector<std::string>{};
  for (const api::UnavailableMetric& one : checked.unavailable)
    document["unavailableMetrics"].push_back(
        {{"name", one.name}, {"models", one.models}, {"reason", one.reason}});
  for (const std::string& name : checked.layouts.names())
    document["layouts"].push_back({{"name", name}});
  if (!checked.checked_layouts.empty()) document["layouts"] = JsonOf(checked.checked_layouts);
  if (checked.preview) document.update(PreviewJson(*checked.preview));
  return document;
}

void AddPreview(const view::PreviewNode& node, Checked& checked) {
  checked.preview = view::MakePreview(checked.resolved->config, node);
  auto& remarks = checked.resolved->remarks;
  remarks.insert(remarks.end(), checked.preview->remarks.begin(), checked.preview->remarks.end());
}

/// Finds the metrics that the configuration requests and the machine lacks. A plugin's file
/// requests none, and the counters of a file or ConfigMap that the configuration names are not
/// available here.
void AddUnavailable(const view::PreviewNode& node, const node::sample::Snapshot& samples,
                    Checked& checked) {
  const api::TelemetryConfig& telemetry = checked.resolved->config.telemetry;
  const bool elsewhere = telemetry.counters.empty() &&
                         (!telemetry.counters_file.empty() || !telemetry.counters_map.empty());
  if (checked.kind == kPlugin || elsewhere) return;
  checked.unavailable =
      view::UnavailableMetrics(telemetry, backend::Dialects(), node.inventory, samples);
  // Metrics that no machine has are among the remarks, with their line.
  std::erase_if(checked.unavailable,
                [](const api::UnavailableMetric& one) { return one.models.empty(); });
}

/// Computes what each configuration would offer and show. Skips configurations with problems.
base::Status AddPreviews(const std::string& machine, std::vector<Checked>& all) {
  return Simulate(
      machine, [&all](const view::PreviewNode& node, const node::sample::Snapshot& samples) {
        for (Checked& checked : all) {
          if (!checked.resolved.ok() || checked.document.chart != analysis::Chart::kNone) continue;
          if (checked.kind == kLayouts) {
            checked.checked_layouts = CheckLayouts(checked.layouts, node.inventory);
            continue;
          }
          if (checked.kind != kCounters) AddPreview(node, checked);
          AddUnavailable(node, samples, checked);
        }
      });
}

base::Result<std::vector<Checked>> CheckAll(const std::string& file, const std::string& against,
                                            base::ReadingMode reading) {
  ASSIGN(const std::string text, ReadText(file));
  ASSIGN(auto documents, FindConfigurations(text, file == "-" ? "standard input" : file));
  std::vector<Checked> all;
  for (ConfigDocument& document : documents) all.push_back(Check(std::move(document), reading));
  if (!against.empty()) TRY(AddPreviews(against, all));
  return all;
}

}  // namespace

std::string ShowPreview(const view::Preview& preview) {
  std::string text = preview.offers.empty() ? "  offers nothing\n" : "";
  for (const auto& offer : preview.offers)
    text += "  allocator " + offer.allocator + " offers " + std::to_string(offer.slots.size()) +
            " " + offer.resource + ": " + DescribeSlots(offer) + "\n";
  for (const auto& [key, value] : preview.labels) text += "  label " + key + "=" + value + "\n";
  return text;
}

namespace {

constexpr char kCheckExamples[] =
    R"(penstock config check node.yaml
penstock config check time-slicing-config.yaml --against dgx-a100    # a ConfigMap's manifest; what each key would offer
penstock config check counters.csv --against dgx-a100                # dcgm-exporter's list; what an A100 does not have
penstock config check layouts.yaml --against dgx-a100                # mig-parted's file; what an A100 cannot be divided into
penstock config check node.yaml -o json | jq -r '.[].problems[]')";

struct CheckOptions {
  std::string file, against;
  bool lenient = false;
};

/// Reads files of the device plugin strictly or, with `lenient`, as the agent reads them.
base::Result<Shown> CheckConfig(const Common& common, const CheckOptions& options) {
  ASSIGN(const auto all,
         CheckAll(options.file, options.against,
                  options.lenient ? base::ReadingMode::kLenient : base::ReadingMode::kStrict));
  bool ok = true;
  Json documents = Json::array();
  for (const Checked& checked : all) {
    ok = ok && checked.resolved.ok();
    if (common.json()) {
      documents.push_back(ToJson(checked));
    } else {
      Show(checked);
    }
  }
  return Shown(common.json() ? base::JsonText(documents) : "",
               ok ? command::kDone : command::kFailed);
}

base::Result<Shown> ShowConfig(const Common& common) {
  Settings settings = common.settings;
  TakeEnvironment(settings, ::getenv);
  ASSIGN(const auto config, Resolve(settings));
  if (!common.json()) return Shown(ToYaml(config));
  ASSIGN(const base::Value document, base::ParseYaml(ToYaml(config), "configuration"));
  return Shown(base::JsonText(base::JsonOf<Json>(document)));
}

}  // namespace

Verb ConfigVerb(const Common& common) {
  const auto options = std::make_shared<CheckOptions>();
  Verb check{
      .name = "check",
      .summary = "Show all problems of a file",
      .examples = kCheckExamples,
      .exit_status = "0 valid, 1 there are problems, all of them shown with line and column",
      .options = {Argument("FILE", &options->file,
                           "a NodeConfig, a file of NVIDIA's device plugin, dcgm-exporter or "
                           "mig-parted, or a ConfigMap or a chart's values that contain them; - "
                           "for standard input")
                      .Required(),
                  Value("--against", &options->against, "MACHINE",
                        "also show what it would offer on this simulated machine, which metrics "
                        "its devices do not have, and how each layout divides them (see "
                        "penstock-sim list)"),
                  Flag("--lenient", &options->lenient,
                       "read a file of NVIDIA's device plugin as the agent does: what the plugin "
                       "ignores is a remark")},
      .formats = {"text", "json", "yaml", "jsonpath=TEMPLATE"},
      .show = [options, &common] { return CheckConfig(common, *options); }};
  Verb show{
      .name = "show",
      .summary = "Print the effective configuration from the file and the flags, with every key",
      .examples =
          "penstock config show --config node.yaml --run-dir /tmp/run    # what would be in force",
      .exit_status = "0 shown, 1 there are problems, all of them shown",
      .shares = NodeOptionNames(),
      .formats = {"yaml", "json", "jsonpath=TEMPLATE"},
      .show = [&common] { return ShowConfig(common); }};
  return {.name = "config",
          .summary = "Check a configuration, or show the one in force",
          .examples = "penstock config check node.yaml\npenstock config show",
          .exit_status = "0 done, 1 there are problems, all of them shown",
          .verbs = {std::move(check), std::move(show)}};
}

}  // namespace penstock::app
