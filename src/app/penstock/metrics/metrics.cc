// `penstock metrics`: lists the names and meanings of the metrics page's families, without an
// agent.
#include <algorithm>
#include <memory>

#include "analysis/metric_names.h"
#include "app/penstock/common/table.h"
#include "app/penstock/common/verbs.h"
#include "app/penstock/metrics/metrics_show.h"
#include "backend/all.h"
#include "base/core/strings.h"

namespace penstock::app {

namespace {

using base::Code;
using base::Error;
using base::Result;

constexpr char kListExamples[] =
    R"(penstock metrics list                                   # the families that a page has by default
penstock metrics list --all                             # all that a page can have, and what is not supported, with the reason
penstock metrics list 'accelerator_holder_*'
penstock metrics list --names dcgm --names dcgm-4.7     # what dcgm-exporter calls them, before and since 4.9
penstock metrics list -o wide                           # with units and labels
penstock metrics list -o json | jq -r '.families[] | select(.type == "counter") | .name')";

constexpr char kDescribeExamples[] =
    R"(penstock metrics describe accelerator_utilization_ratio
penstock metrics describe DCGM_FI_DEV_GPU_UTIL          # and the other names of its value
penstock metrics describe DCGM_FI_PROF_SM_ACTIVE -o json)";

struct Wanted {
  std::string pattern;
  std::vector<std::string> names;
  bool all = false;
};

Error Unknown(const std::string& name, const std::vector<analysis::MetricName>& all) {
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const analysis::MetricName& metric : all) names.push_back(metric.name);
  const auto near = base::Nearest(name, names);
  return {Code::kNotFound, "there is no family \"" + Printable(name) + "\"; " +
                               (near ? "did you mean \"" + *near + "\"?"
                                     : "penstock metrics list --all shows all of them")};
}

/// Without a pattern or a set of names, those that a page has by default: a list of all is as long
/// as it is useless.
Result<Shown> List(const Common& common, const Wanted& wanted) {
  const auto all = analysis::AllMetricNames(backend::Dialects());
  std::vector<analysis::MetricName> found;
  for (const analysis::MetricName& metric : all) {
    const bool named = wanted.names.empty() || std::find(wanted.names.begin(), wanted.names.end(),
                                                         metric.names) != wanted.names.end();
    if (named && base::GlobMatch(wanted.pattern.empty() ? "*" : wanted.pattern, metric.name))
      found.push_back(metric);
  }
  if (found.empty()) return Unknown(wanted.pattern, all);
  if (!wanted.all)
    std::erase_if(found,
                  [](const analysis::MetricName& metric) { return !metric.unavailable.empty(); });
  if (found.empty())
    return Error(
        Code::kNotFound,
        "the families of this name are not supported here; --all shows them, with the reason");
  if (common.json()) return Shown(MetricNamesJson(found));
  std::size_t hidden = 0;
  if (!wanted.all && wanted.pattern.empty() && wanted.names.empty())
    hidden =
        std::erase_if(found, [](const analysis::MetricName& metric) { return !metric.by_default; });
  return Shown(ShowMetricNames(found, common.wide(), common.style()) +
               (hidden == 0 ? ""
                            : "\n" + std::to_string(hidden) +
                                  " more if configured (telemetry.names, telemetry.counters): "
                                  "--all, or a pattern, shows them\n"));
}

Result<Shown> Describe(const Common& common, const std::string& name) {
  const auto all = analysis::AllMetricNames(backend::Dialects());
  const analysis::MetricName* metric = analysis::FindMetricName(all, name);
  if (metric == nullptr) return Unknown(name, all);
  return Shown(common.json() ? MetricNameJson(*metric) : ShowMetricName(*metric, common.style()));
}

}  // namespace

Verb MetricsVerb(const Common& common) {
  const auto wanted = std::make_shared<Wanted>();
  Verb list{
      .name = "list",
      .summary = "List the families of the metrics page, or those that match a pattern",
      .examples = kListExamples,
      .details =
          "SHOWN says whether a page has a family by default: yes, if asked (telemetry.names, "
          "telemetry.counters), or never.",
      .exit_status = "0 shown, 1 there is no such family",
      .options =
          {Argument("GLOB", &wanted->pattern,
                    "pattern of names, with * and ?; of all that a page can have"),
           Value("--names", &wanted->names, "SET",
                 "only names of this set: accelerator, dcgm, dcgm-4.7 or penstock (repeatable)")
               .OneOf({"accelerator", "dcgm", "dcgm-4.7", "penstock"}),
           Flag("--all", &wanted->all,
                "also those that a page has only if configured, and those that are not supported, "
                "with the reason")},
      .formats = command::WideFormats(),
      .names = {"", ".families[*].name"},
      .show = [&common, wanted] { return List(common, *wanted); }};
  const auto name = std::make_shared<std::string>();
  Verb describe{.name = "describe",
                .summary = "Show the meaning, source and other names of a family",
                .examples = kDescribeExamples,
                .exit_status = "0 shown, 1 there is no such family",
                .options = {Argument("NAME", name.get(), "name of a family").Required()},
                .formats = command::PlainFormats(),
                .show = [&common, name] { return Describe(common, *name); }};
  return {.name = "metrics",
          .summary = "Show the names and meanings of metric families",
          .examples =
              "penstock metrics list\npenstock metrics list 'DCGM_FI_PROF_*'\n"
              "penstock metrics describe accelerator_power_watts",
          .exit_status = "0 shown, 1 there is no such family, 2 usage error",
          .verbs = {std::move(list), std::move(describe)}};
}

}  // namespace penstock::app
