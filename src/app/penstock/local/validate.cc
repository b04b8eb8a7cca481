// `penstock validate`.
#include <chrono>
#include <memory>

#include "app/penstock/common/verbs.h"
#include "app/penstock/local/query_agent.h"
#include "app/penstock/local/validate_show.h"

namespace penstock::app {
namespace {

constexpr char kValidateExamples[] =
    R"(penstock validate
penstock validate --explain                 # with what to do
penstock validate -w                        # again whenever it changes
until penstock validate; do sleep 1; done   # wait for this node
penstock validate -o json | jq -r '.validation[] | select(.state == "failed") | .reason')";

constexpr char kValidateDetails[] =
    R"(The agent validates its node continuously; this verb shows the result and starts nothing. A step that
depends on another one waits for it, so that one cause fails once. A step is skipped where this node
has nothing to check. `penstock runtime doctor --prove` starts a container with devices besides.)";

base::Result<Shown> ShowValidation(const Common& common, bool explain) {
  ASSIGN(const api::NodeConfig config, Resolve(common.settings));
  ASSIGN(const api::Report report, QueryReport(config.paths.run_dir));
  if (report.validation.empty())
    return base::Error(base::Code::kUnavailable,
                       "the agent (" + report.version + ") has not validated this node");
  const int status = api::AllPassed(report.validation) ? command::kDone : command::kFailed;
  if (common.json()) return Shown(api::ValidationToJson(report), status);
  const auto now = std::chrono::system_clock::now();
  return Shown(explain ? ExplainSteps(report.validation, common.style(), now)
                       : ShowSteps(report.validation, common.style(), now),
               status);
}

}  // namespace

Verb ValidateVerb(const Common& common) {
  const auto explain = std::make_shared<bool>(false);
  return {.name = "validate",
          .summary = "Show whether containers on this node can use its devices, step by step",
          .examples = kValidateExamples,
          .details = kValidateDetails,
          .exit_status = "0 all steps passed or were skipped, 1 otherwise, or no agent responds",
          .options = {Flag("--explain", explain.get(),
                           "each step with what it checks, what was found and what to do")},
          .shares = AgentOptionNames(),
          .formats = command::TableFormats(),
          .names = {"step", ".validation[*].name"},
          .watch = true,
          .show = [&common, explain] { return ShowValidation(common, *explain); }};
}

}  // namespace penstock::app
