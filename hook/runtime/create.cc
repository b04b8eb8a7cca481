// Processes request, specifications, requirements and edits in this order; the file is written only
// after all of them are valid.
#include "hook/runtime/create.h"

#include <cerrno>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "api/cdi/registry.h"
#include "base/core/strings.h"
#include "hook/runtime/amd/edits.h"
#include "hook/runtime/bundle.h"
#include "hook/runtime/host_devices.h"
#include "hook/runtime/nvidia/capabilities.h"
#include "hook/runtime/nvidia/request.h"
#include "hook/runtime/nvidia/requirements.h"
#include "hook/runtime/specs.h"
#include "os/core/file.h"
#include "os/core/replace_file.h"

namespace penstock::hook::runtime {
namespace {

using api::cdi::CdiEdits;
using api::cdi::Registry;

constexpr std::string_view kSpecification = "nvidia.yaml";
constexpr std::string_view kNarrowDevice = "nvidia.com/compat32=all";

void LogRemarks(RunLog& log, const std::vector<Remark>& remarks) {
  for (const Remark& remark : remarks) log.Write(remark.level, remark.text);
}

/// Replaces a file and keeps its mode and owner. Does not sync: after a power loss no container is
/// left that needs its bundle.
Status ReplaceKept(const std::string& path, std::string_view text) {
  struct stat old {};
  if (::stat(path.c_str(), &old) != 0) return ErrnoError(errno, "read the attributes of " + path);
  const auto keep = [&](int file) -> Status {
    if ((old.st_uid != ::geteuid() || old.st_gid != ::getegid()) &&
        ::fchown(file, old.st_uid, old.st_gid) != 0)
      return ErrnoError(errno, "set the owner of " + path);
    if (::fchmod(file, old.st_mode & 07777) != 0)
      return ErrnoError(errno, "set the mode of " + path);
    return {};
  };
  return os::ReplaceFile(path, text, keep, os::Durability::kUnsynced);
}

/// Adds the optional devices that are available to the requested ones; logs the others.
void JoinOptionalDevices(DeviceRequest& request, const Registry& registry, RunLog& log) {
  for (std::string& optional : request.optional_devices) {
    if (auto edits = registry.Inject({&optional, 1}); edits.ok()) {
      request.devices.push_back(std::move(optional));
    } else {
      log.Write(RuntimeLogLevel::kWarn,
                "starting the container without " + optional + ": " + edits.error().message());
    }
  }
}

Result<CdiEdits> Resolve(DeviceRequest& request, const Config& config, RunLog& log) {
  std::vector<std::string> names = request.devices;
  names.insert(names.end(), request.optional_devices.begin(), request.optional_devices.end());
  if (request.driver) names.push_back(config.default_kind + "=all");
  auto files = ReadSpecFiles(config.spec_dirs, names);
  CdiEdits driver;
  if (request.driver) {
    auto found = EditsOfKind(files, config.default_kind);
    if (!found.ok()) return Unresolved(found.error(), Registry(std::move(files)), kSpecification);
    driver = *std::move(found);
  }
  const Registry registry(std::move(files));
  for (const std::string& problem : registry.problems()) log.Write(RuntimeLogLevel::kInfo, problem);
  JoinOptionalDevices(request, registry, log);
  auto edits = registry.Inject(request.devices);
  if (!edits.ok()) return Unresolved(edits.error(), registry, kSpecification);
  if (!request.driver) return edits;
  // "none" together with other devices: IMEX channels without GPUs.
  if (request.devices.empty()) return driver;
  for (auto& hook : driver.hooks) edits->hooks.push_back(std::move(hook));
  for (auto& mount : driver.mounts) edits->mounts.push_back(std::move(mount));
  for (auto& node : driver.nodes) edits->nodes.push_back(std::move(node));
  for (auto& variable : driver.env) edits->env.push_back(std::move(variable));
  return edits;
}

/// The edits for the container, validated and complete.
Result<CdiEdits> EditsFor(const RuntimeFacts& facts, DeviceRequest request, const Config& config,
                          RunLog& log) {
  ASSIGN(const Capabilities capabilities, ReadCapabilities(facts, config, request.by_annotation));
  if (capabilities.narrow) request.optional_devices.emplace_back(kNarrowDevice);
  ASSIGN(CdiEdits edits, Resolve(request, config, log));
  ASSIGN(const auto remarks, CheckRequirements(facts, config, ReadDriverFacts(edits)));
  LogRemarks(log, remarks);
  Restrict(edits, capabilities);
  if (!config.cuda_compat) RemoveHooks(edits, "enable-cuda-compat");
  if (!config.additional_gids) edits.additional_gids.clear();
  TRY(Complete(edits.nodes));
  return edits;
}

}  // namespace

Status PrepareBundle(const std::string& bundle, const Config& config, RunLog& log) {
  const std::string path = (bundle.empty() ? "." : bundle) + "/config.json";
  ASSIGN(const std::string text, os::ReadFile(path));
  ASSIGN(Bundle parsed, Bundle::Parse(text, path));
  const RuntimeFacts facts = parsed.facts();
  ASSIGN(DeviceRequest request, ReadRequest(facts, config));
  LogRemarks(log, request.remarks);
  ASSIGN(const auto others, AmdEdits(facts, request, config, log));
  const bool stale = parsed.RemoveStaleHooks();
  if (request.Empty() && !others && !stale) return {};
  if (!request.Empty()) {
    log.Write(RuntimeLogLevel::kInfo,
              "devices for " + path + ": " +
                  (request.devices.empty() ? "none" : base::Join(request.devices, ", ")));
    ASSIGN(const CdiEdits edits, EditsFor(facts, std::move(request), config, log));
    parsed.Apply(edits);
  }
  if (others) parsed.Apply(*others);
  return ReplaceKept(path, parsed.ToText());
}

}  // namespace penstock::hook::runtime
