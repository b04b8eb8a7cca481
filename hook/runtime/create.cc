// Request, specifications, requirements, edits, file: in this order, nothing is written before all of it is known to be right.
#include "hook/runtime/create.h"

#include <cerrno>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/cdi/registry.h"
#include "base/core/strings.h"
#include "hook/runtime/bundle.h"
#include "hook/runtime/capabilities.h"
#include "hook/runtime/host_devices.h"
#include "hook/runtime/request.h"
#include "hook/runtime/requirements.h"
#include "hook/runtime/specs.h"
#include "os/core/fd.h"
#include "os/core/file.h"

namespace penstock::hook::runtime {
namespace {

using api::cdi::Edits;
using api::cdi::Registry;
using base::Code;
using base::ErrnoError;
using base::Error;
using base::Result;
using base::Status;

constexpr std::string_view kRemedy =
    "; make the specification with \"penstock cdi generate --output=/var/run/cdi/nvidia.yaml\", or start penstock-agent, which keeps it "
    "current";
constexpr std::string_view kNarrowDevice = "nvidia.com/compat32=all";

void Say(RunLog& log, const std::vector<Remark>& remarks) {
  for (const Remark& remark : remarks) log.Write(remark.level, remark.text);
}

/// Fills a new file and puts it in the place of another, with that one's mode and owner. Nothing is synced: after a loss of power there is
/// no container that would need its bundle.
Status FillAndReplace(os::UniqueFd file, const std::string& temporary, const std::string& path, std::string_view text) {
  struct stat old {};
  if (::stat(path.c_str(), &old) != 0) return ErrnoError(errno, "look at " + path);
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoError(errno, "write " + temporary);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if ((old.st_uid != ::geteuid() || old.st_gid != ::getegid()) && ::fchown(file.get(), old.st_uid, old.st_gid) != 0)
    return ErrnoError(errno, "give " + temporary + " its owner");
  if (::fchmod(file.get(), old.st_mode & 07777) != 0) return ErrnoError(errno, "set the mode of " + temporary);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return ErrnoError(errno, "replace " + path);
  return {};
}

Status ReplaceFile(const std::string& path, std::string_view text) {
  std::string temporary = path + ".XXXXXX";
  os::UniqueFd file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file) return ErrnoError(errno, "create a file beside " + path);
  auto replaced = FillAndReplace(std::move(file), temporary, path, text);
  if (!replaced.ok()) ::unlink(temporary.c_str());
  return replaced;
}

/// Wishes that can be had join the devices; the others are said.
void JoinWishes(Request& request, const Registry& registry, RunLog& log) {
  for (std::string& wish : request.wishes) {
    if (auto edits = registry.Inject({&wish, 1}); edits.ok()) {
      request.devices.push_back(std::move(wish));
    } else {
      log.Write(LogLevel::kWarn, "the container is started without " + wish + ": " + edits.error().message());
    }
  }
}

/// Why a device cannot be had, with what is wrong with specifications, which may be the reason.
Error Unresolved(const Error& error, const Registry& registry) {
  std::string text = error.message();
  for (const std::string& problem : registry.problems()) text += "; " + problem;
  return {error.code(), text + std::string(kRemedy)};
}

Result<Edits> Resolve(Request& request, const Config& config, RunLog& log) {
  std::vector<std::string> names = request.devices;
  names.insert(names.end(), request.wishes.begin(), request.wishes.end());
  if (request.driver) names.push_back(config.default_kind + "=all");
  auto files = ReadSpecFiles(config.spec_dirs, names);
  Edits driver;
  if (request.driver) {
    auto found = EditsOfKind(files, config.default_kind);
    if (!found.ok()) return Unresolved(found.error(), Registry(std::move(files)));
    driver = *std::move(found);
  }
  const Registry registry(std::move(files));
  for (const std::string& problem : registry.problems()) log.Write(LogLevel::kInfo, problem);
  JoinWishes(request, registry, log);
  auto edits = registry.Inject(request.devices);
  if (!edits.ok()) return Unresolved(edits.error(), registry);
  if (!request.driver) return edits;
  // "none" beside others: IMEX channels without GPUs.
  if (request.devices.empty()) return driver;
  for (auto& hook : driver.hooks) edits->hooks.push_back(std::move(hook));
  for (auto& mount : driver.mounts) edits->mounts.push_back(std::move(mount));
  for (auto& node : driver.nodes) edits->nodes.push_back(std::move(node));
  for (auto& variable : driver.env) edits->env.push_back(std::move(variable));
  return edits;
}

/// What the container gets, checked and complete.
Result<Edits> EditsFor(const Facts& facts, Request request, const Config& config, RunLog& log) {
  ASSIGN(const Capabilities capabilities, ReadCapabilities(facts, config, request.by_annotation));
  if (capabilities.narrow) request.wishes.emplace_back(kNarrowDevice);
  ASSIGN(Edits edits, Resolve(request, config, log));
  ASSIGN(const auto remarks, CheckRequirements(facts, config, ReadDriverFacts(edits)));
  Say(log, remarks);
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
  const Facts facts = parsed.facts();
  ASSIGN(Request request, ReadRequest(facts, config));
  Say(log, request.remarks);
  const bool stale = parsed.RemoveStaleHooks();
  if (request.Empty() && !stale) return {};
  if (!request.Empty()) {
    log.Write(LogLevel::kInfo, "devices for " + path + ": " + (request.devices.empty() ? "none" : base::Join(request.devices, ", ")));
    ASSIGN(const Edits edits, EditsFor(facts, std::move(request), config, log));
    parsed.Apply(edits);
  }
  return ReplaceFile(path, parsed.ToText());
}

}  // namespace penstock::hook::runtime
