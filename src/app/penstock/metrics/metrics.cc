// `penstock metrics`: lists the names and meanings of the metrics page's families, without an
// agent.
#include <algorithm>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "analysis/metric_names.h"
#include "app/penstock/common/table.h"
#include "app/penstock/common/verbs.h"
#include "app/penstock/metrics/metrics_show.h"
#include "backend/all.h"
#include "base/core/strings.h"

namespace penstock::app {

namespace {

constexpr char kFooter[] = R"(Examples:
  penstock metrics list
  penstock metrics list 'DCGM_FI_PROF_*'
  penstock metrics describe accelerator_power_watts)";

constexpr char kListFooter[] = R"(Examples:
  penstock metrics list                                   # all families that a page can have, by all of their names
  penstock metrics list 'accelerator_holder_*'
  penstock metrics list --names dcgm --names dcgm-4.7     # what dcgm-exporter calls them, before and since 4.9
  penstock metrics list 'DCGM_FI_PROF_*' --all            # also what is not supported without DCGM, with the reason
  penstock metrics list -o wide                           # with units and labels
  penstock metrics list -o json | jq -r '.families[] | select(.type == "counter") | .name'

SHOWN says whether a page has a family by default: yes, if asked (telemetry.names, telemetry.counters), or never.

Exit status: 0 shown, 1 there is no such family.)";

constexpr char kDescribeFooter[] = R"(Examples:
  penstock metrics describe accelerator_utilization_ratio
  penstock metrics describe DCGM_FI_DEV_GPU_UTIL          # and the other names of its value
  penstock metrics describe DCGM_FI_PROF_SM_ACTIVE -o json

Exit status: 0 shown, 1 there is no such family.)";

struct Wanted {
  std::string pattern = "*";
  std::vector<std::string> names;
  bool all = false;
};

/// Prints that the name is unknown, and which name was probably meant.
int Unknown(const char* verb, const std::string& name,
            const std::vector<analysis::MetricName>& all) {
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const analysis::MetricName& metric : all) names.push_back(metric.name);
  std::cerr << "penstock metrics " << verb << ": there is no family \"" << Printable(name)
            << "\"; ";
  if (const auto near = base::Nearest(name, names)) {
    std::cerr << "did you mean \"" << *near << "\"?\n";
  } else {
    std::cerr << "penstock metrics list shows all of them\n";
  }
  return 1;
}

int List(const Common& common, const Wanted& wanted) {
  const auto all = analysis::AllMetricNames(backend::Dialects());
  std::vector<analysis::MetricName> found;
  for (const analysis::MetricName& metric : all) {
    const bool named = wanted.names.empty() || std::find(wanted.names.begin(), wanted.names.end(),
                                                         metric.names) != wanted.names.end();
    if (named && base::GlobMatch(wanted.pattern, metric.name)) found.push_back(metric);
  }
  if (found.empty()) return Unknown("list", wanted.pattern, all);
  if (!wanted.all)
    std::erase_if(found,
                  [](const analysis::MetricName& metric) { return !metric.unavailable.empty(); });
  if (found.empty()) {
    std::cerr << "penstock metrics list: the families of this name are not supported here; --all "
                 "shows them, with the reason\n";
    return 1;
  }
  std::cout << (common.json ? MetricNamesJson(found)
                            : ShowMetricNames(found, common.wide, StyleOf(STDOUT_FILENO)));
  return std::cout.flush() ? 0 : 1;
}

int Describe(const Common& common, const std::string& name) {
  const auto all = analysis::AllMetricNames(backend::Dialects());
  const analysis::MetricName* metric = analysis::FindMetricName(all, name);
  if (metric == nullptr) return Unknown("describe", name, all);
  std::cout << (common.json ? MetricNameJson(*metric)
                            : ShowMetricName(*metric, StyleOf(STDOUT_FILENO)));
  return std::cout.flush() ? 0 : 1;
}

}  // namespace

void AddMetrics(CLI::App& app, const Common& common, int& exit_code) {
  CLI::App* metrics =
      app.add_subcommand("metrics", "Show the names and meanings of metric families")
          ->fallthrough();
  metrics->footer(kFooter);
  metrics->require_subcommand(1);

  CLI::App* list =
      metrics->add_subcommand("list", "List all families, or those that match a pattern")
          ->fallthrough();
  list->footer(kListFooter);
  const auto wanted = std::make_shared<Wanted>();
  list->add_option("GLOB", wanted->pattern, "pattern of names, with * and ? [all]")->type_name("");
  list->add_option("--names", wanted->names, "only names of this set (repeatable)")
      ->type_name("SET")
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"accelerator", "dcgm", "dcgm-4.7", "penstock"}));
  list->add_flag("--all", wanted->all, "also those that are not supported, with the reason");
  list->callback([&common, &exit_code, wanted] { exit_code = List(common, *wanted); });

  CLI::App* describe =
      metrics->add_subcommand("describe", "Show the meaning, source and other names of a family")
          ->fallthrough();
  describe->footer(kDescribeFooter);
  const auto name = std::make_shared<std::string>();
  describe->add_option("NAME", *name, "name of a family")->required()->type_name("");
  describe->callback([&common, &exit_code, name] { exit_code = Describe(common, *name); });
}

}  // namespace penstock::app
