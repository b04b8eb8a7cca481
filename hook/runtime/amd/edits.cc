#include "hook/runtime/amd/edits.h"

#include <string>

#include "api/cdi/registry.h"
#include "hook/runtime/amd/request.h"
#include "hook/runtime/host_devices.h"
#include "hook/runtime/specs.h"

namespace penstock::hook::runtime {
namespace {

using api::cdi::CdiEdits;

constexpr std::string_view kSpecification = "amd.yaml";

Result<CdiEdits> Resolve(const AmdRequest& request, const Config& config, RunLog& log) {
  const std::string any = "amd.com/gpu=all";
  const api::cdi::Registry registry(ReadSpecFiles(config.spec_dirs, {&any, 1}));
  for (const std::string& problem : registry.problems()) log.Write(RuntimeLogLevel::kInfo, problem);
  const auto names = ResolveAmd(request, registry.devices());
  if (!names.ok()) return Unresolved(names.error(), registry, kSpecification);
  auto edits = registry.Inject(*names);
  if (!edits.ok()) return Unresolved(edits.error(), registry, kSpecification);
  if (!config.additional_gids) edits->additional_gids.clear();
  TRY(Complete(edits->nodes));
  return edits;
}

}  // namespace

Result<std::optional<CdiEdits>> AmdEdits(const RuntimeFacts& facts, const DeviceRequest& other,
                                         const Config& config, RunLog& log) {
  if (RequestsNothing(facts) || other.by_annotation) return std::optional<CdiEdits>();
  if (!EnvironmentMayRequest(facts, config)) {
    const Remark ignored = IgnoredEnvironment(kAmdVisibleDevices, config);
    log.Write(ignored.level, ignored.text);
    return std::optional<CdiEdits>();
  }
  ASSIGN(const AmdRequest request, ReadAmdRequest(facts));
  if (request.Empty()) return std::optional<CdiEdits>();
  log.Write(RuntimeLogLevel::kInfo,
            std::string(kAmdVisibleDevices) + " requests " + Shown(facts.Get(kAmdVisibleDevices)));
  ASSIGN(CdiEdits edits, Resolve(request, config, log));
  return std::optional(std::move(edits));
}

}  // namespace penstock::hook::runtime
