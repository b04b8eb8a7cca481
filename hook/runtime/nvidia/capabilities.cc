// libnvidia-container selected what it mounted; this file filters a specification by its file
// names.
#include "hook/runtime/nvidia/capabilities.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/nvidia/dialect/containers.h"
#include "base/core/strings.h"
#include "hook/runtime/nvidia/request.h"

namespace penstock::hook::runtime {
namespace {

using api::cdi::CdiEdits;

constexpr std::string_view kVariable = "NVIDIA_DRIVER_CAPABILITIES";
constexpr std::string_view kNarrow = "compat32";

bool IsSupported(const Config& config, std::string_view name) {
  return std::ranges::find(config.capabilities, name) != config.capabilities.end();
}

bool Has(const Capabilities& capabilities, std::string_view path) {
  const std::string_view capability = backend::nvidia::CapabilityOf(path);
  return capability.empty() || capabilities.names.contains(capability);
}

/// Parses "target::link", an argument of create-symlinks.
bool HasLink(const Capabilities& capabilities, std::string_view link) {
  const auto colons = link.find("::");
  if (colons == std::string_view::npos) return true;
  return Has(capabilities, link.substr(0, colons)) && Has(capabilities, link.substr(colons + 2));
}

/// Keeps the links whose files are kept; false if the hook has none left.
bool RestrictLinks(std::vector<std::string>& arguments, const Capabilities& capabilities) {
  std::vector<std::string> kept;
  bool links = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool pair = arguments[i] == "--link" && i + 1 < arguments.size();
    const std::string_view value = pair ? std::string_view(arguments[i + 1])
                                   : arguments[i].starts_with("--link=")
                                       ? std::string_view(arguments[i]).substr(7)
                                       : std::string_view();
    const bool is_link = !value.empty();
    if (!is_link || HasLink(capabilities, value)) {
      kept.push_back(arguments[i]);
      if (pair) kept.push_back(arguments[i + 1]);
      links = links || is_link;
    }
    if (pair) ++i;
  }
  arguments = std::move(kept);
  return links;
}

bool IsHook(const api::cdi::Hook& hook, std::string_view name) {
  return std::ranges::find(hook.args, name) != hook.args.end();
}

}  // namespace

Result<Capabilities> ReadCapabilities(const RuntimeFacts& facts, const Config& config,
                                      bool by_annotation) {
  Capabilities capabilities;
  std::vector<std::string> requested;
  for (const std::string& name : base::Split(facts.Get(kVariable), ','))
    if (!base::Trim(name).empty()) requested.emplace_back(base::Trim(name));
  if (requested.empty()) {
    capabilities.everything = by_annotation;
    const bool legacy =
        !facts.Get("CUDA_VERSION").empty() && facts.Get("NVIDIA_REQUIRE_CUDA").empty();
    if (legacy) capabilities.names = {config.capabilities.begin(), config.capabilities.end()};
    for (const std::string_view name : {"utility", "compute"})
      if (IsSupported(config, name)) capabilities.names.emplace(name);
    return capabilities;
  }
  for (const std::string& name : requested) {
    if (name == "all") {
      capabilities.names.insert(config.capabilities.begin(), config.capabilities.end());
    } else if (IsSupported(config, name)) {
      capabilities.narrow = capabilities.narrow || name == kNarrow;
      capabilities.names.insert(name);
    } else {
      return Error(Code::kInvalidArgument, std::string(kVariable) + " requests " + Shown(name) +
                                               "; supported are all, " +
                                               base::Join(config.capabilities, ", ") +
                                               " (supported-driver-capabilities of config.toml)");
    }
  }
  return capabilities;
}

void Restrict(CdiEdits& edits, const Capabilities& capabilities) {
  if (capabilities.everything) return;
  std::erase_if(edits.mounts, [&](const api::cdi::Mount& mount) {
    return !Has(capabilities, mount.container_path);
  });
  std::erase_if(edits.nodes,
                [&](const api::cdi::DeviceNode& node) { return !Has(capabilities, node.path); });
  std::erase_if(edits.hooks, [&](api::cdi::Hook& hook) {
    return IsHook(hook, "create-symlinks") && !RestrictLinks(hook.args, capabilities);
  });
}

void RemoveHooks(CdiEdits& edits, std::string_view name) {
  std::erase_if(edits.hooks, [name](const api::cdi::Hook& hook) { return IsHook(hook, name); });
}

}  // namespace penstock::hook::runtime
