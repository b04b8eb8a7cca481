// Every call sets an environment variable of its own, so that no engine runs it with the image's
// environment, LD_PRELOAD included (CVE-2025-23266).
#include "node/cdi/generate_hooks.h"

#include <algorithm>
#include <set>

namespace penstock::node::cdi {
namespace {

/// Timeout of a call, after which the engine aborts the container. Penstock's hooks take
/// milliseconds; a machine that starts hundreds of containers at once may take seconds before it
/// runs one.
constexpr int kMaxSeconds = 60;

bool Contains(const std::vector<std::string>& list, const std::string& word) {
  return std::ranges::find(list, word) != list.end();
}

std::vector<std::string> Repeated(const std::string& flag, const std::vector<std::string>& values) {
  std::vector<std::string> arguments;
  for (const std::string& value : values) arguments.insert(arguments.end(), {flag, value});
  return arguments;
}

}  // namespace

std::optional<api::cdi::Hook> HookCalls::Call(const std::string& name,
                                              const std::vector<std::string>& arguments) const {
  if (!IsOn(name)) return std::nullopt;
  const std::string program(NameOf(options_.hook));
  api::cdi::Hook hook{.name = "createContainer",
                      .path = options_.hook,
                      .args = {program},
                      .env = driver_.hook_environment,
                      .timeout = kMaxSeconds};
  if (program == driver_.subcommand_program) hook.args.push_back("hook");
  hook.args.push_back(name);
  hook.args.insert(hook.args.end(), arguments.begin(), arguments.end());
  return hook;
}

std::optional<api::cdi::Hook> HookCalls::CreateLinks(const std::vector<FoundLink>& links) const {
  if (links.empty()) return std::nullopt;
  std::vector<std::string> values;
  for (const FoundLink& link : links) values.push_back(link.target + "::" + link.path);
  return Call(kCreateLinks, Repeated("--link", values));
}

std::optional<api::cdi::Hook> HookCalls::UpdateCache(
    const std::vector<std::string>& folders) const {
  if (folders.empty()) return std::nullopt;
  auto arguments = Repeated("--folder", folders);
  if (!options_.ldconfig.empty())
    arguments.insert(arguments.begin(), {"--ldconfig-path", options_.ldconfig});
  return Call(kUpdateCache, arguments);
}

std::optional<api::cdi::Hook> HookCalls::OpenFolders(
    const std::vector<api::cdi::DeviceNode>& nodes) const {
  std::set<std::string> folders;
  for (const api::cdi::DeviceNode& node : nodes)
    if (FolderOf(node.path) != "/dev") folders.insert(FolderOf(node.path));
  if (folders.empty()) return std::nullopt;
  return Call(kOpenFolders, [&] {
    std::vector<std::string> arguments;
    for (const device::ContainerHook& hook : driver_.hooks)
      if (hook.name == kOpenFolders) arguments = hook.arguments;
    const auto paths = Repeated("--path", {folders.begin(), folders.end()});
    arguments.insert(arguments.end(), paths.begin(), paths.end());
    return arguments;
  }());
}

/// As in NVIDIA's program: a hook that is enabled by name is on, even where it is disabled by name
/// or by "all".
bool HookCalls::IsOn(const std::string& name) const {
  if (options_.hook.empty()) return false;
  if (Contains(options_.enable_hooks, name)) return true;
  if (Contains(options_.disable_hooks, name) || Contains(options_.disable_hooks, "all"))
    return false;
  const auto same = [&](const device::ContainerHook& hook) { return hook.name == name; };
  const auto hook = std::ranges::find_if(driver_.hooks, same);
  return hook != driver_.hooks.end() && hook->by_default;
}

}  // namespace penstock::node::cdi
