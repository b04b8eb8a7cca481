// `penstock usage`: prints how much users used, and which devices are held but unused. The agent
// has the records.
#include "api/usage.h"

#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "app/penstock/common/verbs.h"
#include "app/penstock/local/usage_show.h"
#include "app/penstock/local/usage_time.h"
#include "protocol/broker/client.h"
#include "protocol/broker/protocol.h"

namespace penstock::app {
namespace {

using base::Code;
using base::Error;

constexpr base::Duration kUsagePatience =
    std::chrono::minutes(5);  // one response may require reading months of records

constexpr char kUsageExamples[] =
    R"(penstock usage                                        # the last 30 days by namespace and user
penstock usage --by day --since 7d
penstock usage --by namespace,pod --since 2026-11-01 --until 2026-12-01 -o csv
penstock usage --by label:experiment                  # of runs: penstock run --label experiment=lr01 -- ...
penstock usage -o json | jq '.usage.rows[] | [.by.namespace, .energyJoules / 3.6e6] | @tsv'
penstock usage --idle                                 # the holders that do not use their GPU, and since when)";

constexpr char kUsageDetails[] =
    R"(Current holders are included up to now. A share of a GPU that is divided into four counts as a
quarter of its hours; UTIL is how busy the holders kept their GPUs. Days are in UTC. Labels are
recorded if telemetry.holderLabels names them. docs/reference/usage-records.md describes what is
recorded, where, and how sums are computed.)";

struct UsageOptions {
  std::vector<std::string> by = {"namespace", "user"};
  std::string since = "30d", until;
  bool idle = false;
};

base::Result<protocol::broker::Request> ToRequest(const UsageOptions& options, base::WallTime now) {
  protocol::broker::Request request;
  request.operation = protocol::broker::Operation::kUsage;
  if (options.idle) {
    request.usage.idle = true;
    return request;
  }
  TRY(api::CheckUsageKeys(options.by));
  request.usage.by = options.by;
  ASSIGN(request.usage.since, ParseWhen(options.since, now));
  if (!options.until.empty()) { ASSIGN(request.usage.until, ParseWhen(options.until, now)); }
  if (request.usage.until.value_or(now) <= *request.usage.since)
    return Error(Code::kInvalidArgument, "--since must be before --until, and before now");
  return request;
}

base::Result<std::string> Query(const Common& common, const protocol::broker::Request& request) {
  ASSIGN(const auto config, Resolve(common.settings));
  ASSIGN(auto client, protocol::broker::Client::Connect(config.paths.run_dir));
  return client.Query(EncodeRequest(request), kUsagePatience);
}

/// Prints on standard error what the sums do not include.
void Remark(const api::UsageReport& report) {
  if (report.damaged > 0)
    std::cerr << "penstock usage: " << report.damaged << " damaged lines of records were skipped\n";
  if (!report.problem.empty())
    std::cerr << "penstock usage: records are not written at the moment: " << report.problem
              << "\n";
}

base::Result<Shown> Show(const Common& common, const UsageOptions& options) {
  const base::WallTime now = std::chrono::system_clock::now();
  ASSIGN(const auto request, ToRequest(options, now));
  ASSIGN(std::string answer, Query(common, request));
  if (common.json()) return Shown(answer);
  const bool csv = common.output.format == "csv";
  if (options.idle) {
    ASSIGN(const auto idle, api::ParseIdleHolders(answer));
    return Shown(csv ? IdleCsv(idle) : ShowIdle(idle, common.style(), now));
  }
  ASSIGN(const auto report, api::ParseUsageReport(answer));
  Remark(report);
  return Shown(csv ? UsageCsv(report) : ShowUsage(report, common.style()));
}

}  // namespace

Verb UsageVerb(const Common& common) {
  const auto options = std::make_shared<UsageOptions>();
  return {
      .name = "usage",
      .summary = "Show how much each holder used, or with --idle what is held but not used",
      .examples = kUsageExamples,
      .details = kUsageDetails,
      .exit_status = "0 shown, 1 failed (the message says why), 2 usage error",
      .options = {Value("--by", &options->by, "KEY",
                        "group by these keys (comma-separated): namespace, pod, container, user, "
                        "day, device, model, node, allocator, lease, label:KEY [namespace,user]")
                      .Separated(),
                  Value("--since", &options->since, "TIME",
                        "start: 2026-11-21, 2026-11-21T03:42:00Z, or how long ago: 24h, 7d [30d]"),
                  Value("--until", &options->until, "TIME", "end [now]"),
                  Flag("--idle", &options->idle,
                       "show the holders that have not used their GPU for usage.idleAfter")
                      .Excludes({"--by", "--since", "--until"})},
      .shares = AgentOptionNames(),
      .formats = {"table", "csv", "json", "yaml", "jsonpath=TEMPLATE"},
      .check = [options]() -> base::Status {
        const auto request = ToRequest(*options, std::chrono::system_clock::now());
        return request.ok() ? base::Status() : request.error();
      },
      .show = [options, &common] { return Show(common, *options); }};
}

}  // namespace penstock::app
