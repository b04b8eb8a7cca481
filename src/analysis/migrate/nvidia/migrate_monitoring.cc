// Plans the replacement of the exporter: metrics that Penstock's pages lack, the host label and job
// names of scraped targets, and the queries that use them.
#include <algorithm>
#include <set>

#include "analysis/metric_names.h"
#include "analysis/migrate/nvidia/migrate_changes.h"
#include "api/compat/nvidia/counters.h"
#include "backend/all.h"
#include "backend/counter_fields.h"
#include "base/core/strings.h"

namespace penstock::analysis {

namespace {

constexpr char kOldHost[] = "Hostname", kOurJob[] = "penstock";
constexpr char kFromHopper[] =
    "Hopper and newer";     // the vendor's table has this text for quantities of these devices
constexpr int kHopper = 9;  // compute capability of Hopper
constexpr std::array<std::int64_t, 3> kNewHost = {
    4, 8, 3};  // the exporter's first release with the label hostname

bool IsWord(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == ':';
}

/// Whether a text contains a name as a whole word.
bool Mentions(std::string_view text, std::string_view name) {
  for (auto at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const auto end = at + name.size();
    if ((at == 0 || !IsWord(text[at - 1])) && (end == text.size() || !IsWord(text[end])))
      return true;
  }
  return false;
}

/// Whether a query selects a job by this name.
bool MentionsJob(const std::string& text, const std::string& name) {
  return text.find("job") != std::string::npos && Mentions(text, name);
}

template <typename Matches>
std::vector<std::string> QueriesOf(const Found& found, Matches matches) {
  std::vector<std::string> names;
  for (const Query& one : found.queries)
    if (matches(one.text)) names.push_back(one.name);
  return names;
}

bool HasAll(const std::map<std::string, std::string>& labels,
            const std::map<std::string, std::string>& wanted) {
  return !wanted.empty() && std::ranges::all_of(wanted, [&labels](const auto& one) {
    const auto found = labels.find(one.first);
    return found != labels.end() && found->second == one.second;
  });
}

const ConfigFile* CountersOf(const Found& found, const Workload& exporter) {
  const auto of_it = [&exporter](const ConfigFile& one) {
    const bool here = exporter.namespace_name.empty() || one.namespace_name.empty() ||
                      one.namespace_name == exporter.namespace_name;
    return exporter.counters_map.empty()
               ? one.config_map.empty() && one.from.find(exporter.from) == 0
               : one.config_map == exporter.counters_map && here;
  };
  const auto counters = std::ranges::find_if(found.counters, of_it);
  return counters == found.counters.end() ? nullptr : &*counters;
}

/// Names of the metrics that exporters show now: from their counters files, or from the exporter's
/// default file.
std::set<std::string> MetricsNow(const Found& found, Migration& plan) {
  std::set<std::string> names;
  for (const Workload* one : WorkloadsOf(found, {Part::kExporter})) {
    const ConfigFile* file = CountersOf(found, *one);
    if (file == nullptr) {
      for (const device::Dialect* dialect : backend::Dialects())
        if (dialect->exporter() != nullptr)
          for (const device::CounterRow& row : dialect->exporter()->DefaultRows())
            names.insert(row.field);
      continue;
    }
    const auto counters =
        api::compat::ParseCounters(file->text, file->from, backend::CounterFields());
    if (!counters.ok()) {
      plan.problems.push_back(base::Join(base::Split(counters.error().message(), '\n'), "; "));
      continue;
    }
    for (const api::MetricRow& row : counters->rows) names.insert(row.field);
    for (const std::string& remark : counters->remarks) plan.remarks.push_back(remark);
  }
  return names;
}

int CountBeforeHopper(const Found& found, const std::string& only) {
  return static_cast<int>(std::ranges::count_if(found.nodes, [&only](const LabelledNode& node) {
    const auto major = node.labels.find("nvidia.com/gpu.compute.major");
    return (only.empty() || node.name == only) && major != node.labels.end() &&
           base::ParseInt(major->second).value_or(kHopper) < kHopper;
  }));
}

void Lose(const Found& found, const std::string& metric, const std::string& why, int nodes,
          Migration& plan) {
  plan.metrics.push_back({metric, "shown", "", nodes, why});
  const auto users = QueriesThatName(found, metric);
  plan.lost.push_back("metric " + metric + ": " + why +
                      (users.empty() ? "" : "; used by " + Named(users)));
}

void AddMetrics(const Found& found, const std::string& only, Migration& plan) {
  const int before_hopper = CountBeforeHopper(found, only);
  const auto all = AllMetricNames(backend::Dialects());
  for (const std::string& name : MetricsNow(found, plan)) {
    const MetricName* metric = FindMetricName(all, name);
    if (metric != nullptr && !metric->unavailable.empty()) {
      Lose(found, name, metric->unavailable, 0, plan);
    } else if (before_hopper > 0 && metric != nullptr && !metric->sources.empty() &&
               metric->sources.front().has == kFromHopper) {
      Lose(found, name, "for GPUs before Hopper only DCGM provides it", before_hopper, plan);
    }
  }
}

/// Whether the tag of an image like "…/dcgm-exporter:4.4.1-4.5.2-ubuntu22.04" (DCGM's version, then
/// the exporter's) names an older exporter.
bool IsOlder(const Workload& exporter) {
  const std::string image = exporter.image.substr(0, exporter.image.find('@'));
  const std::string tag = image.substr(image.rfind(':') + 1);
  const auto parts = base::Split(tag, '-');
  std::vector<std::int64_t> version;
  for (const std::string& part : base::Split(parts.size() > 1 ? parts[1] : parts[0], '.'))
    version.push_back(base::ParseInt(part).value_or(-1));
  const bool known = version.size() == kNewHost.size() &&
                     std::ranges::none_of(version, [](auto one) { return one < 0; });
  return known && std::lexicographical_compare(version.begin(), version.end(), kNewHost.begin(),
                                               kNewHost.end());
}

void AddHostLabel(const Workload& exporter, Migration& plan) {
  if (exporter.image.empty() || !IsOlder(exporter) || !plan.host_label.empty()) return;
  plan.host_label = kOldHost;
  plan.objects.push_back({"label of each series", kOldHost, kOldHost, 0,
                          "kept by telemetry.hostLabel, which the command below sets; without it "
                          "the label is hostname"});
}

/// Names of the jobs that scrape an exporter now.
std::set<std::string> JobsOf(const Found& found, const Workload& exporter) {
  std::set<std::string> jobs;
  const auto add = [&jobs](const Endpoint& monitor,
                           const std::map<std::string, std::string>& labels,
                           const std::string& otherwise) {
    const auto label = labels.find(monitor.job_label);
    jobs.insert(label == labels.end() ? otherwise : label->second);
  };
  for (const Endpoint& monitor : found.endpoints) {
    if (monitor.kind == "PodMonitor" && HasAll(exporter.labels, monitor.selects))
      add(monitor, exporter.labels, monitor.namespace_name + "/" + monitor.name);
    if (monitor.kind != "ServiceMonitor") continue;
    for (const Endpoint& service : found.endpoints)
      if (service.kind == "Service" && HasAll(exporter.labels, service.selects) &&
          HasAll(service.labels, monitor.selects))
        add(monitor, service.labels, service.name);
  }
  return jobs;
}

/// Adds RuntimeClasses whose handlers the toolkit added to the engine.
void AddRuntimeClasses(const Found& found, bool replaces_operator, Migration& plan) {
  for (const RuntimeClass& one : found.runtime_classes) {
    if (!one.handler.starts_with("nvidia")) continue;
    std::vector<std::string> users;
    for (const GpuConsumer& consumer : found.consumers)
      if (consumer.runtime_class == one.name) users.push_back(consumer.name);
    plan.objects.push_back({"RuntimeClass " + one.name, "handler " + one.handler,
                            "handler " + one.handler, 0,
                            std::string(replaces_operator ? "made again by Penstock's operator"
                                                          : "stays as long as the toolkit does") +
                                (users.empty() ? "" : "; used by " + Named(users))});
  }
}

}  // namespace

void AddScraping(const Found& found, const Workload& exporter, const std::string& now,
                 Migration& plan) {
  for (const std::string& job : JobsOf(found, exporter)) {
    const auto users =
        QueriesOf(found, [&job](const std::string& text) { return MentionsJob(text, job); });
    if (users.empty()) {
      plan.objects.push_back(
          {"job", job, kOurJob, 0,
           "no query was found that uses it; a relabeling keeps it (docs/monitoring.md)"});
    } else {
      plan.job = job;
      plan.objects.push_back(
          {"job", job, job, 0, "the command below keeps it, for " + Named(users)});
    }
  }
  for (const Endpoint& one : found.endpoints)
    if (one.kind == "Service" && HasAll(exporter.labels, one.selects))
      plan.objects.push_back(
          {"Service " + (one.namespace_name.empty() ? "" : one.namespace_name + "/") + one.name,
           now, "", 0,
           "removed with the exporter; each agent's page is on port 9400 (penstock.port), "
           "penstock.metrics.service.enabled creates a Service"});
}

std::vector<std::string> QueriesThatName(const Found& found, const std::string& series) {
  return QueriesOf(found, [&series](const std::string& text) { return Mentions(text, series); });
}

void AddMonitoring(const Found& found, const std::string& only, Migration& plan) {
  const bool replaces_operator = ReplacesOperator(found, only);
  AddMetrics(found, only, plan);
  for (const Workload* one : WorkloadsOf(found, {Part::kExporter})) {
    AddHostLabel(*one, plan);
    // Penstock's operator makes the Service and ServiceMonitor of the ClusterPolicy's.
    if (one->policy.empty() || !replaces_operator) AddScraping(found, *one, "port 9400", plan);
  }
  AddRuntimeClasses(found, replaces_operator, plan);
  const auto goes = [&](const Workload& one) { return replaces_operator && !one.policy.empty(); };
  for (const Workload* one : WorkloadsOf(found, {Part::kHostEngine}))
    plan.remarks.push_back(
        one->from +
        (goes(*one)
             ? ": goes with NVIDIA's operator; programs that read from it need one of their own"
             : ": not used by Penstock; programs that read from it keep working beside Penstock"));
  for (const Workload* one : WorkloadsOf(found, {Part::kToolkit}))
    plan.remarks.push_back(
        one->from +
        (goes(*one) ? ": goes with NVIDIA's operator; with toolkit.enabled the agents give the "
                      "engine what pods need"
                    : ": stays; before you remove it, `penstock runtime configure` gives the "
                      "engine what pods need"));
}

}  // namespace penstock::analysis
