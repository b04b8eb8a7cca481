// Reads dcgm-exporter's YAML configuration: version 1 with `collection` and its watch groups,
// version 2 with named `collections`. Settings of DCGM's own watches have no effect here, because
// each quantity has its own interval.
#include <algorithm>
#include <string>

#include "api/compat/nvidia/exporter_reader.h"
#include "base/core/strings.h"

namespace penstock::api::compat::internal {

namespace {

using base::MapReader;
using base::Problems;
using base::Value;
using namespace std::chrono_literals;

constexpr base::Duration kMinInterval = 100ms, kMaxInterval = 1h;
const Value kNoValue;

const Value& MapAt(MapReader& reader, std::string_view key) {
  const Value* map = reader.Map(key);
  return map != nullptr ? *map : kNoValue;
}

/// Reads one file of either version; adds a remark to the work for each setting without effect.
class ExporterReader {
 public:
  ExporterReader(Problems& problems, ExporterWork& work) : problems_(problems), work_(work) {}

  void Read(const Value& document) {
    MapReader top(document, "", problems_);
    top.Require("version");
    const auto version = top.Int("version", 1, 2);
    ReadMetrics(top);
    if (version != 2) ReadCollection(top);
    if (version != 1) ReadCollections(top);
    if (version != 1) ReadServer(top);
    if (version != 1) ReadSources(top, "sources");
    top.Finish();
  }

 private:
  void Remark(const MapReader& reader, std::string_view key, const std::string& why) {
    work_.remarks.push_back(reader.Path(key) + ": " + why);
  }

  void ReadMetrics(MapReader& top) {
    MapReader metrics(MapAt(top, "metrics"), "metrics", problems_);
    TelemetryConfig& telemetry = work_.config.telemetry;
    if (auto file = metrics.String("file")) {
      telemetry.counters_file = *std::move(file);
      telemetry.counters_map.clear();
      telemetry.counters.clear();
    }
    const Value* fields = metrics.List("fields");
    if (fields != nullptr && metrics.Has("file"))
      metrics.Problem("fields", "is set together with metrics.file; remove one of the two");
    if (fields != nullptr) {
      telemetry.counters_file.clear();
      telemetry.counters_map.clear();
      telemetry.counters = ReadFields(*fields);
      if (telemetry.counters.empty())
        metrics.Problem("fields", "is empty; omit it to use the exporter's default");
    }
    if (metrics.Bool("enableExporterMetrics").value_or(false))
      Remark(metrics, "enableExporterMetrics",
             "has no effect: the families penstock_* always describe the agent");
    metrics.Finish();
  }

  std::vector<MetricRow> ReadFields(const Value& list) {
    std::vector<MetricRow> rows;
    for (const Value& item : *list.list) {
      MapReader reader(item, base::Item("metrics.fields", rows.size()), problems_);
      MetricRow row;
      reader.Require("name");
      row.field = reader.String("name").value_or("?");
      reader.Require("prometheusType");
      row.type = reader.OneOf("prometheusType", {"gauge", "counter", "label"}).value_or("gauge");
      row.help = reader.String("help").value_or("");
      reader.Finish();
      rows.push_back(std::move(row));
    }
    return rows;
  }

  void ReadCollection(MapReader& top) {
    MapReader collection(MapAt(top, "collection"), "collection", problems_);
    work_.config.telemetry.interval = collection.Time("interval", kMinInterval, kMaxInterval)
                                          .value_or(work_.config.telemetry.interval);
    if (const Value* groups = collection.List("watchGroups")) {
      std::size_t number = 0;
      for (const Value& item : *groups->list) {
        MapReader group(item, base::Item("collection.watchGroups", number++), problems_);
        (void)group.String("name");
        (void)group.Time("interval", kMinInterval, 24h);
        (void)group.Strings("fields");
        group.Finish();
      }
      if (number > 0) Remark(collection, "watchGroups", kPaces);
    }
    collection.Finish();
  }

  /// The collection of all fields determines the interval.
  void ReadCollections(MapReader& top) {
    const Value* list = top.List("collections");
    if (list == nullptr) return;
    std::size_t number = 0;
    for (const Value& item : *list->list) {
      MapReader reader(item, base::Item("collections", number++), problems_);
      (void)reader.String("name");
      const auto every = reader.Time("every", kMinInterval, 24h);
      MapReader metrics(MapAt(reader, "metrics"), reader.Path("metrics"), problems_);
      const auto include = metrics.Strings("include").value_or(std::vector<std::string>{"*"});
      metrics.Finish();
      if (reader.Has("sources")) ReadSources(reader, reader.Path("sources"));
      const bool all = std::ranges::find(include, "*") != include.end();
      if (!all) Remark(reader, "every", kPaces);
      if (all && every && *every > kMaxInterval) reader.Problem("every", "is more than an hour");
      if (all && every) work_.config.telemetry.interval = std::min(*every, kMaxInterval);
      reader.Finish();
    }
  }

  void ReadServer(MapReader& top) {
    MapReader server(MapAt(top, "server"), "server", problems_);
    if (server.Int("maxConcurrentScrapes", 1, 1'000'000))
      Remark(server, "maxConcurrentScrapes",
             "has no effect: pages are rendered in advance; http.connections limits connections");
    server.Finish();
  }

  void ReadSources(MapReader& above, const std::string& where) {
    MapReader sources(MapAt(above, "sources"), where, problems_);
    MapReader dcgm(MapAt(sources, "dcgm"), where + ".dcgm", problems_);
    MapReader watch(MapAt(dcgm, "watch"), where + ".dcgm.watch", problems_);
    const bool age = watch.Time("maxKeepAge", 0s, 24h * 365).has_value();
    const bool samples = watch.Int("maxKeepSamples", 0, 1'000'000'000).has_value();
    if (age || samples)
      Remark(dcgm, "watch",
             "has no effect: the newest of each value is kept, and two minutes of history");
    watch.Finish();
    MapReader bind(MapAt(dcgm, "detectBindUnbind"), where + ".dcgm.detectBindUnbind", problems_);
    if (bind.Bool("enabled").value_or(false))
      Remark(bind, "enabled", "has no effect: added and removed GPUs are always detected");
    (void)bind.Time("pollInterval", 1ms, 24h);
    bind.Finish();
    dcgm.Finish();
    sources.Finish();
  }

  static constexpr const char* kPaces =
      "has no effect: values that change quickly are read at each collection, others about every "
      "30 seconds";

  Problems& problems_;
  ExporterWork& work_;
};

}  // namespace

void ReadExporterFile(const Value& document, Problems& problems, ExporterWork& work) {
  ExporterReader(problems, work).Read(document);
}

}  // namespace penstock::api::compat::internal
