// The rules of the format beyond its keys (pkg/cdi/{spec,device,container-edits}.go).
#include "api/cdi/check.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "api/cdi/version.h"
#include "base/core/strings.h"

namespace penstock::api::cdi {

namespace {

using internal::SpecProblem;

constexpr std::size_t kMaxClosId = 4095;  // the name of a file in resctrl
constexpr std::array<std::string_view, 6> kHookNames = {
    "prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"};
constexpr std::array<std::string_view, 5> kNodeTypes = {"", "b", "c", "u", "p"};

std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

/// Collects the problems of one set of edits.
class EditsInspector {
 public:
  EditsInspector(std::string where, std::vector<SpecProblem>& findings)
      : where_(std::move(where)), findings_(findings) {}

  void Inspect(const CdiEdits& edits) {
    InspectEnvironment(edits.env, where_ + ".env");
    for (std::size_t i = 0; i < edits.nodes.size(); ++i)
      InspectNode(edits.nodes[i], base::Item(where_ + ".deviceNodes", i));
    InspectNetDevices(edits.net_devices);
    for (std::size_t i = 0; i < edits.hooks.size(); ++i)
      InspectHook(edits.hooks[i], base::Item(where_ + ".hooks", i));
    for (std::size_t i = 0; i < edits.mounts.size(); ++i) {
      NotEmpty(edits.mounts[i].host_path, base::Item(where_ + ".mounts", i) + ".hostPath");
      NotEmpty(edits.mounts[i].container_path,
               base::Item(where_ + ".mounts", i) + ".containerPath");
    }
    if (edits.intel_rdt) InspectIntelRdt(*edits.intel_rdt);
  }

 private:
  void Add(std::string path, std::string message) {
    findings_.push_back({std::move(path), std::move(message)});
  }

  void NotEmpty(const std::string& text, const std::string& path) {
    if (text.empty()) Add(path, "is empty or missing");
  }

  void InspectEnvironment(const std::vector<std::string>& env, const std::string& path) {
    for (std::size_t i = 0; i < env.size(); ++i)
      if (const auto equals = env[i].find('='); equals == 0 || equals == std::string::npos)
        Add(base::Item(path, i), Quoted(env[i]) + " must be NAME=value");
  }

  void InspectNode(const DeviceNode& node, const std::string& path) {
    NotEmpty(node.path, path + ".path");
    if (std::ranges::find(kNodeTypes, node.type) == kNodeTypes.end())
      Add(path + ".type", Quoted(node.type) + " is none of b, c, u, p");
    if (node.permissions.find_first_not_of("rwm") != std::string::npos)
      Add(path + ".permissions", Quoted(node.permissions) + " may contain only r, w and m");
  }

  void InspectHook(const Hook& hook, const std::string& path) {
    if (std::ranges::find(kHookNames, hook.name) == kHookNames.end())
      Add(path + ".hookName",
          Quoted(hook.name) + " is none of " +
              base::Join(std::vector<std::string>(kHookNames.begin(), kHookNames.end()), ", "));
    NotEmpty(hook.path, path + ".path");
    InspectEnvironment(hook.env, path + ".env");
  }

  void InspectNetDevices(const std::vector<NetDevice>& devices) {
    std::set<std::string> hosts, names;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const std::string path = base::Item(where_ + ".netDevices", i);
      NotEmpty(devices[i].host_interface, path + ".hostInterfaceName");
      NotEmpty(devices[i].name, path + ".name");
      if (!hosts.insert(devices[i].host_interface).second)
        Add(path + ".hostInterfaceName", Quoted(devices[i].host_interface) + " appears twice");
      if (!names.insert(devices[i].name).second)
        Add(path + ".name", Quoted(devices[i].name) + " appears twice");
    }
  }

  void InspectIntelRdt(const IntelRdt& rdt) {
    const std::string path = where_ + ".intelRdt";
    const std::string& id = rdt.clos_id;
    if (id != "/" && (id.size() > kMaxClosId || id == "." || id == ".." ||
                      id.find_first_of("/\n") != std::string::npos))
      Add(path + ".closID", "must be a file name, or /");
    if ((rdt.enable_cmt || rdt.enable_mbm) && (rdt.enable_monitoring || !rdt.schemata.empty()))
      Add(path,
          "enableCMT and enableMBM were removed in 1.1.0, which added schemata and "
          "enableMonitoring: they cannot be combined");
  }

  std::string where_;
  std::vector<SpecProblem>& findings_;
};

bool HasOldIntelRdt(const CdiEdits& edits) {
  return edits.intel_rdt && (edits.intel_rdt->enable_cmt || edits.intel_rdt->enable_mbm);
}

void InspectVersion(const Spec& spec, std::vector<SpecProblem>& findings) {
  if (spec.version.empty()) return;
  const auto& versions = internal::Versions();
  const auto place = internal::PlaceOf(spec.version);
  if (!place) {
    findings.push_back({"cdiVersion", Quoted(spec.version) + " is not one of the known versions, " +
                                          versions.front() + " to " + versions.back() +
                                          ": no current engine reads the file"});
    return;
  }
  const std::string minimum = MinimumVersion(spec);
  if (*place < *internal::PlaceOf(minimum))
    findings.push_back({"cdiVersion", "must be at least \"" + minimum + "\", for " +
                                          WhatTakesMinimum(spec) +
                                          "; engines reject the file as it is"});
  const bool old =
      HasOldIntelRdt(spec.edits) || std::ranges::any_of(spec.devices, [](const Device& device) {
        return HasOldIntelRdt(device.edits);
      });
  if (old && versions[*place] == "1.1.0")
    findings.push_back(
        {"cdiVersion", "1.1.0 has no enableCMT and enableMBM; use enableMonitoring"});
}

void InspectDevices(const Spec& spec, std::vector<SpecProblem>& findings) {
  if (spec.devices.empty()) findings.push_back({"devices", "at least one is required"});
  std::set<std::string> names;
  for (std::size_t i = 0; i < spec.devices.size(); ++i) {
    const Device& device = spec.devices[i];
    const std::string path = base::Item("devices", i);
    if (const std::string why = WhyNoDeviceName(device.name); !why.empty())
      findings.push_back(
          {path + ".name", (device.name.empty() ? "" : Quoted(device.name) + " ") + why});
    else if (!names.insert(device.name).second)
      findings.push_back({path + ".name", Quoted(device.name) + " appears twice"});
    if (device.edits == CdiEdits())
      findings.push_back(
          {path + ".containerEdits", "is empty; a device must change something in its containers"});
    EditsInspector(path + ".containerEdits", findings).Inspect(device.edits);
  }
}

}  // namespace

std::vector<SpecProblem> internal::Inspect(const Spec& spec) {
  std::vector<SpecProblem> findings;
  InspectVersion(spec, findings);
  if (const std::string why = WhyNoKind(spec.kind); !why.empty())
    findings.push_back({"kind", Quoted(spec.kind) + ": " + why});
  InspectDevices(spec, findings);
  EditsInspector("containerEdits", findings).Inspect(spec.edits);
  return findings;
}

base::Status Check(const Spec& spec) {
  std::vector<std::string> lines;
  for (const SpecProblem& finding : internal::Inspect(spec))
    lines.push_back(finding.path + ": " + finding.message);
  if (lines.empty()) return {};
  return base::Error(base::Code::kInvalidArgument, base::Join(lines, "\n"));
}

}  // namespace penstock::api::cdi
