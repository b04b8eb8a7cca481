// Finds the metrics that are in use now: dcgm-exporter's settings and counters, what scrapes it,
// and the cluster's queries.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "analysis/migrate/nvidia/migrate.h"
#include "analysis/migrate/nvidia/migrate_containers.h"
#include "api/compat/nvidia/counters.h"
#include "api/compat/nvidia/exporter_options.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"

namespace penstock::analysis {

using api::compat::ExporterOption;

namespace {

constexpr int kDeepest = 64;  // a dashboard has a dozen levels
constexpr char kCollectors[] = "--collectors", kConfigMapData[] = "--configmap-data";
constexpr char kJobDirectory[] = "--hpc-job-mapping-dir";

void AddGiven(const ExporterOption& option, const std::string& value, const std::string& where,
              Workload& workload) {
  workload.given.push_back({std::string(option.flags.front()), value, where});
}

const ExporterOption* FindOption(const std::string& flag) {
  const auto& options = api::compat::ExporterOptions();
  const auto option = std::ranges::find_if(
      options, [&flag](const ExporterOption& one) { return one.flags.front() == flag; });
  return option == options.end() ? nullptr : &*option;
}

void AddFlags(std::vector<std::string> words, Workload& workload) {
  words = api::compat::FromGoFlags(words);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("-")) continue;
    const auto equals = words[i].find('=');
    const std::string flag = words[i].substr(0, equals);
    const ExporterOption* option = FindOption(flag);
    if (option == nullptr) {
      workload.unknown.push_back(words[i]);
    } else if (equals != std::string::npos) {
      AddGiven(*option, words[i].substr(equals + 1), flag, workload);
    } else if (option->on_off) {
      AddGiven(*option, "true", flag, workload);
    } else if (i + 1 < words.size()) {
      AddGiven(*option, words[++i], flag, workload);
    }
  }
}

std::string GivenTo(const Workload& workload, const std::string& flag) {
  std::string value;
  for (const auto& one : workload.given)
    if (one.flag == flag) value = one.value;
  return value;
}

/// The ConfigMap of the volume that contains a file.
std::string ConfigMapOf(const Json& pod, const Json& container, const std::string& file) {
  for (const Json& mount : Items(container, {"volumeMounts"})) {
    const std::string path = TextAt(mount, {"mountPath"});
    if (path.empty() ||
        !(file == path || file.starts_with(path.ends_with("/") ? path : path + "/")))
      continue;
    for (const Json& volume : Items(pod, {"volumes"}))
      if (TextAt(volume, {"name"}) == TextAt(mount, {"name"}))
        return TextAt(volume, {"configMap", "name"});
  }
  return "";
}

void TakeCounters(const Json& object, Found& found) {
  const std::string name = TextAt(object, {"metadata", "name"}),
                    space = TextAt(object, {"metadata", "namespace"});
  for (const auto& [key, text] : TextsAt(object, {"data"}))
    if (api::compat::LooksLikeCounters(text) && text.find("DCGM_") != std::string::npos)
      found.counters.push_back(
          {"ConfigMap " + (space.empty() ? "" : space + "/") + name + ", key " + key, name, space,
           key, text});
}

/// Collects the values of keys that hold queries, at any depth up to kDeepest.
void CollectQueries(const Json& value, int depth, std::string& text) {
  if (depth > kDeepest) return;
  if (value.is_array())
    for (const Json& item : value) CollectQueries(item, depth + 1, text);
  if (!value.is_object()) return;
  for (const auto& [key, item] : value.items()) {
    if (item.is_string() && (key == "expr" || key == "query" || key == "definition"))
      text += item.get<std::string>() + "\n";
    CollectQueries(item, depth + 1, text);
  }
}

void AddQuery(const std::string& name, const std::string& text, Found& found) {
  if (!text.empty()) found.queries.push_back({name, text});
}

void TakeDashboards(const Json& object, const std::string& name, Found& found) {
  for (const auto& [key, text] : TextsAt(object, {"data"})) {
    if (!key.ends_with(".json") || text.find("DCGM_") == std::string::npos) continue;
    std::string queries;
    CollectQueries(base::ParseJson<Json>(text), 0, queries);
    AddQuery(name + ", dashboard " + key, queries, found);
  }
}

/// Collects the metric names that an autoscaler uses.
void TakeAutoscaler(const Json& object, const std::string& name, Found& found) {
  std::string text;
  for (const Json& one : Items(object, {"spec", "metrics"}))
    for (const char* kind : {"pods", "object", "external"})
      if (const std::string metric = TextAt(one, {kind, "metric", "name"}); !metric.empty())
        text += metric + "\n";
  AddQuery(name, text, found);
}

void TakeEndpoint(const Json& object, const std::string& kind, Found& found) {
  const Json& selects = kind == "Service" ? At(object, {"spec"}) : At(object, {"spec", "selector"});
  found.endpoints.push_back({kind, TextAt(object, {"metadata", "name"}),
                             TextAt(object, {"metadata", "namespace"}),
                             TextsAt(object, {"metadata", "labels"}),
                             TextsAt(selects, {kind == "Service" ? "selector" : "matchLabels"}),
                             TextAt(object, {"spec", "jobLabel"})});
}

/// The folder of the host that a container sees at this path; the path itself where it sees none
/// there.
std::string OnHost(const Json& pod, const Json& container, const std::string& path) {
  for (const Json& mount : Items(container, {"volumeMounts"})) {
    const std::string inside = TextAt(mount, {"mountPath"});
    if (inside.empty() || (path != inside && !path.starts_with(inside + "/"))) continue;
    for (const Json& volume : Items(pod, {"volumes"}))
      if (TextAt(volume, {"name"}) == TextAt(mount, {"name"}))
        if (const std::string host = TextAt(volume, {"hostPath", "path"}); !host.empty())
          return host + path.substr(inside.size());
  }
  return path;
}

/// `settings`: of the container, or of a ClusterPolicy or a chart, which have a block for this.
std::string JobDirectoryOf(const Json& pod, const Json& settings, const Workload& workload) {
  const Json& enabled = At(settings, {"hpcJobMapping", "enabled"});
  if (enabled != true && enabled != "true")
    return OnHost(pod, settings, GivenTo(workload, kJobDirectory));
  const std::string directory = TextAt(settings, {"hpcJobMapping", "directory"});
  return directory.empty() ? "/var/lib/dcgm-exporter/job-mapping" : directory;
}

}  // namespace

void TakeExporter(const Json& pod, const Json& container, Workload& workload) {
  AddFlags(Words(container), workload);
  for (const ExporterOption& option : api::compat::ExporterOptions()) {
    const std::string value =
        option.environment.empty() ? "" : EnvironmentOf(container, option.environment);
    const std::string flag(option.flags.front());
    if (!value.empty() && GivenTo(workload, flag).empty())
      AddGiven(option, value, "environment " + std::string(option.environment), workload);
  }
  workload.counters = GivenTo(workload, kCollectors);
  const auto named = base::Split(GivenTo(workload, kConfigMapData), ':');
  workload.counters_map = named.size() == 2 && named[0] != "none"
                              ? named[1]
                              : ConfigMapOf(pod, container, workload.counters);
  workload.job_directory = JobDirectoryOf(pod, container, workload);
  // Paths within the exporter's container have no meaning outside it. The files' content is read
  // from their ConfigMap.
  std::erase_if(workload.given, [](const auto& one) {
    return one.flag == kCollectors || one.flag == kConfigMapData || one.flag == kJobDirectory;
  });
}

bool TakeMonitoring(const Json& object, Found& found) {
  const std::string kind = TextAt(object, {"kind"}),
                    space = TextAt(object, {"metadata", "namespace"});
  const std::string name =
      kind + " " + (space.empty() ? "" : space + "/") + TextAt(object, {"metadata", "name"});
  if (kind == "ConfigMap") {
    TakeCounters(object, found);
    TakeDashboards(object, name, found);
    return false;  // it may also be a ConfigMap of the plugin
  }
  if (kind == "Service" || kind == "ServiceMonitor" || kind == "PodMonitor") {
    TakeEndpoint(object, kind, found);
  } else if (kind == "RuntimeClass") {
    found.runtime_classes.push_back(
        {TextAt(object, {"metadata", "name"}), TextAt(object, {"handler"})});
  } else if (kind == "HorizontalPodAutoscaler") {
    TakeAutoscaler(object, name, found);
  } else if (kind == "PrometheusRule" || kind == "ScaledObject" || kind == "GrafanaDashboard") {
    std::string text;
    CollectQueries(At(object, {"spec"}), 0, text);
    CollectQueries(base::ParseJson<Json>(TextAt(object, {"spec", "json"})), 0, text);
    AddQuery(name, text, found);
  } else {
    return false;
  }
  return true;
}

}  // namespace penstock::analysis
