// Reads, prints and checks the sections `containers` and `cdi`: how containers receive devices.
#include <algorithm>
#include <cctype>

#include "api/config/node_config_check.h"
#include "api/config/value_forms.h"
#include "api/labels.h"
#include "api/listen.h"
#include "base/core/strings.h"

namespace penstock::api {

namespace {

using internal::ReportProblem;

/// Length of the part after the prefix in an annotation's key: "nvidia-device-plugin_" and a UUID.
constexpr std::size_t kAnnotationName = 57;

/// Whether this names a device class: "gds", "imex=0".
bool IsClass(std::string_view text) {
  const auto is_name = [](std::string_view name, std::string_view others) {
    return !name.empty() && std::ranges::all_of(name, [others](unsigned char c) {
      return std::islower(c) != 0 || std::isdigit(c) != 0 ||
             others.find(static_cast<char>(c)) != std::string_view::npos;
    });
  };
  const auto equals = text.find('=');
  return is_name(text.substr(0, equals), "-") &&
         (equals == std::string_view::npos || is_name(text.substr(equals + 1), "-_.:"));
}

void CheckClasses(const ContainersConfig& containers, const ReportProblem& report) {
  for (const std::string& one : containers.device_classes)
    if (!IsClass(one))
      report("containers.deviceClasses", "\"" + one +
                                             "\" is not a class of devices; write its name, such "
                                             "as \"gds\", or one device, such as \"imex=0\"");
  for (const std::string& one : containers.required_classes)
    if (std::ranges::find(containers.device_classes, one) == containers.device_classes.end())
      report(
          "containers.requiredClasses",
          "\"" + one + "\" is not in containers.deviceClasses, so that no container would get it");
}

void CheckHooks(std::string_view key, const std::vector<std::string>& names, bool all,
                const ReportProblem& report) {
  for (const std::string& name : names) {
    if ((all && name == "all") || std::ranges::find(HookNames(), name) != HookNames().end())
      continue;
    const auto near = base::Nearest(name, HookNames());
    report(key, "\"" + name + "\" is none of " + base::Join(HookNames(), ", ") +
                    (all ? ", all" : "") + (near ? "; did you mean \"" + *near + "\"?" : ""));
  }
}

void CheckCdi(const CdiConfig& cdi, const ReportProblem& report) {
  if (cdi.install.empty() && !cdi.host_install.empty())
    report("cdi.hostInstall",
           "has no effect without cdi.install, the same folder as seen by this program");
  CheckHooks("cdi.disableHooks", cdi.disable_hooks, true, report);
  CheckHooks("cdi.enableHooks", cdi.enable_hooks, false, report);
  for (const std::string& name : cdi.enable_hooks)
    if (std::ranges::find(cdi.disable_hooks, name) != cdi.disable_hooks.end())
      report("cdi.enableHooks",
             "\"" + name + "\" is in cdi.disableHooks too; remove it from one of the two");
}

bool IsCdi(DeviceList one) {
  return one == DeviceList::kCdiAnnotations || one == DeviceList::kCdiCri;
}

}  // namespace

const std::vector<std::string>& HookNames() {
  static const std::vector<std::string> names = {"create-symlinks",
                                                 "enable-cuda-compat",
                                                 "update-ldcache",
                                                 "create-soname-symlinks",
                                                 "disable-device-node-modification",
                                                 "update-application-profile",
                                                 "chmod"};
  return names;
}

}  // namespace penstock::api

namespace penstock::api::internal {

void CheckContainers(const NodeConfig& config, const ReportProblem& report) {
  const ContainersConfig& containers = config.containers;
  const std::string& prefix = containers.cdi_annotation_prefix;
  if (prefix.find('/') == std::string::npos ||
      !IsLabelKey(prefix + std::string(kAnnotationName, 'a')))
    report("containers.cdiAnnotationPrefix", "\"" + prefix +
                                                 "\" is not a prefix of an annotation key: write a "
                                                 "domain and a slash, such as \"cdi.k8s.io/\"");
  const std::string& socket = containers.engine_socket;
  if (socket.starts_with("unix://")) {
    report("containers.engineSocket",
           "is a path: write \"" + socket.substr(std::string_view("unix://").size()) + "\"");
  } else if (const std::string problem = AbsolutePath().Problem(socket); !problem.empty()) {
    report("containers.engineSocket", problem);
  }
  if (socket.size() > kLongestSocketPath)
    report("containers.engineSocket", "is too long: a unix socket's path has at most 107 bytes");
  CheckClasses(containers, report);
  const auto cdi = std::ranges::find_if(containers.device_list, IsCdi);
  if (cdi != containers.device_list.end() && config.cdi.enabled == Switch::kOff)
    report("containers.deviceList",
           "\"" + std::string(ToString(*cdi)) +
               "\" needs CDI specifications, which cdi.enabled: off forbids");
  CheckCdi(config.cdi, report);
}

}  // namespace penstock::api::internal
