// Reads, prints and checks the sections `containers` and `cdi`: how containers receive devices.
#include <algorithm>
#include <cctype>

#include "api/config/node_config_check.h"
#include "api/config/node_config_sections.h"
#include "api/labels.h"
#include "api/listen.h"
#include "base/core/strings.h"

namespace penstock::api {

namespace {

using base::MapReader;
using base::Problems;
using base::Value;
using internal::MapAt;
using internal::Quoted;
using internal::ReportProblem;
using internal::Text;

constexpr DeviceList kStrategies[] = {DeviceList::kEnvvar, DeviceList::kVolumeMounts,
                                      DeviceList::kCdiAnnotations, DeviceList::kCdiCri};

/// Length of the part after the prefix in an annotation's key: "nvidia-device-plugin_" and a UUID.
constexpr std::size_t kAnnotationName = 57;

std::vector<DeviceList> ReadDeviceList(MapReader& reader, Problems& problems) {
  static const std::vector<std::string> kNames = {"envvar", "volume-mounts", "cdi-annotations",
                                                  "cdi-cri"};
  std::vector<DeviceList> list;
  const Value* items = reader.List("deviceList");
  if (items == nullptr) return list;
  for (const Value& item : *items->list) {
    const auto* known =
        std::find_if(std::begin(kStrategies), std::end(kStrategies), [&item](DeviceList one) {
          return item.kind == Value::Kind::kString && item.text == ToString(one);
        });
    const std::string path = reader.Path("deviceList") + ": ";
    if (known == std::end(kStrategies)) {
      const auto near = base::Nearest(item.text, kNames);
      problems.Add(item.mark, path + "an item is none of " + base::Join(kNames, ", ") +
                                  (near ? "; did you mean \"" + *near + "\"?" : ""));
    } else if (std::find(list.begin(), list.end(), *known) != list.end()) {
      problems.Add(item.mark, path + "\"" + item.text + "\" is named twice");
    } else {
      list.push_back(*known);
    }
  }
  return list;
}

void ReadString(MapReader& reader, std::string_view key, std::string& target) {
  if (auto text = reader.String(key)) target = *std::move(text);
}

void ReadStrings(MapReader& reader, std::string_view key, std::vector<std::string>& target) {
  if (auto texts = reader.Strings(key)) target = *std::move(texts);
}

std::string QuotedList(const std::vector<std::string>& items) {
  std::vector<std::string> quoted;
  for (const std::string& item : items) quoted.push_back(Quoted(item));
  return "[" + base::Join(quoted, ", ") + "]";
}

/// Whether this names a device class: "gds", "imex=0".
bool IsClass(std::string_view text) {
  const auto is_name = [](std::string_view name, std::string_view others) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [others](unsigned char c) {
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
    if (std::find(containers.device_classes.begin(), containers.device_classes.end(), one) ==
        containers.device_classes.end())
      report(
          "containers.requiredClasses",
          "\"" + one + "\" is not in containers.deviceClasses, so that no container would get it");
}

void CheckHooks(std::string_view key, const std::vector<std::string>& names, bool all,
                const ReportProblem& report) {
  for (const std::string& name : names) {
    if ((all && name == "all") ||
        std::find(HookNames().begin(), HookNames().end(), name) != HookNames().end())
      continue;
    const auto near = base::Nearest(name, HookNames());
    report(key, "\"" + name + "\" is none of " + base::Join(HookNames(), ", ") +
                    (all ? ", all" : "") + (near ? "; did you mean \"" + *near + "\"?" : ""));
  }
}

void CheckCdi(const CdiConfig& cdi, const ReportProblem& report) {
  internal::CheckOptionalPath("cdi.hook", cdi.hook, report);
  internal::CheckOptionalPath("cdi.install", cdi.install, report);
  internal::CheckOptionalPath("cdi.hostInstall", cdi.host_install, report);
  if (cdi.install.empty() && !cdi.host_install.empty())
    report("cdi.hostInstall",
           "has no effect without cdi.install, the same folder as seen by this program");
  CheckHooks("cdi.disableHooks", cdi.disable_hooks, true, report);
  CheckHooks("cdi.enableHooks", cdi.enable_hooks, false, report);
  for (const std::string& name : cdi.enable_hooks)
    if (std::find(cdi.disable_hooks.begin(), cdi.disable_hooks.end(), name) !=
        cdi.disable_hooks.end())
      report("cdi.enableHooks",
             "\"" + name + "\" is in cdi.disableHooks too; remove it from one of the two");
}

bool IsCdi(DeviceList one) {
  return one == DeviceList::kCdiAnnotations || one == DeviceList::kCdiCri;
}

}  // namespace

std::string_view ToString(DeviceList strategy) {
  switch (strategy) {
    case DeviceList::kVolumeMounts: return "volume-mounts";
    case DeviceList::kCdiAnnotations: return "cdi-annotations";
    case DeviceList::kCdiCri: return "cdi-cri";
    default: return "envvar";
  }
}

std::string_view ToString(EngineSetup setup) {
  return setup == EngineSetup::kCdi ? "cdi" : setup == EngineSetup::kRuntime ? "runtime" : "off";
}

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

void ReadContainers(MapReader& top, Problems& problems, ContainersConfig& containers) {
  MapReader reader(MapAt(top, "containers"), "containers", problems);
  containers.device_list = ReadDeviceList(reader, problems);
  ReadSwitch(reader, "deviceFiles", containers.device_files);
  ReadString(reader, "cdiAnnotationPrefix", containers.cdi_annotation_prefix);
  if (const auto setup = reader.OneOf("configureEngine", {"off", "cdi", "runtime"}))
    containers.configure_engine = *setup == "cdi"       ? EngineSetup::kCdi
                                  : *setup == "runtime" ? EngineSetup::kRuntime
                                                        : EngineSetup::kOff;
  ReadString(reader, "engineSocket", containers.engine_socket);
  ReadStrings(reader, "deviceClasses", containers.device_classes);
  ReadStrings(reader, "requiredClasses", containers.required_classes);
  reader.Finish();
}

void ReadCdi(MapReader& top, Problems& problems, CdiConfig& cdi) {
  MapReader reader(MapAt(top, "cdi"), "cdi", problems);
  ReadSwitch(reader, "enabled", cdi.enabled);
  ReadString(reader, "hook", cdi.hook);
  ReadString(reader, "install", cdi.install);
  ReadString(reader, "hostInstall", cdi.host_install);
  ReadStrings(reader, "disableHooks", cdi.disable_hooks);
  ReadStrings(reader, "enableHooks", cdi.enable_hooks);
  cdi.additional_gids = reader.Bool("additionalGids").value_or(cdi.additional_gids);
  reader.Finish();
}

std::string ContainersText(const ContainersConfig& containers) {
  std::vector<std::string> list;
  for (const DeviceList one : containers.device_list) list.emplace_back(ToString(one));
  return "containers:\n  deviceList: [" + base::Join(list, ", ") +
         "]\n  deviceFiles: " + std::string(Text(containers.device_files)) +
         "\n  cdiAnnotationPrefix: " + Quoted(containers.cdi_annotation_prefix) +
         "\n  configureEngine: " + std::string(ToString(containers.configure_engine)) +
         "\n  engineSocket: " + Quoted(containers.engine_socket) +
         "\n  deviceClasses: " + QuotedList(containers.device_classes) +
         "\n  requiredClasses: " + QuotedList(containers.required_classes) + "\n";
}

std::string CdiText(const CdiConfig& cdi) {
  return "cdi:\n  enabled: " + std::string(Text(cdi.enabled)) + "\n  hook: " + Quoted(cdi.hook) +
         "\n  install: " + Quoted(cdi.install) + "\n  hostInstall: " + Quoted(cdi.host_install) +
         "\n  disableHooks: " + QuotedList(cdi.disable_hooks) +
         "\n  enableHooks: " + QuotedList(cdi.enable_hooks) +
         "\n  additionalGids: " + (cdi.additional_gids ? "true" : "false") + "\n";
}

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
  } else {
    CheckOptionalPath("containers.engineSocket", socket, report);
  }
  if (socket.size() > kLongestSocketPath)
    report("containers.engineSocket", "is too long: a unix socket's path has at most 107 bytes");
  CheckClasses(containers, report);
  const auto cdi =
      std::find_if(containers.device_list.begin(), containers.device_list.end(), IsCdi);
  if (cdi != containers.device_list.end() && config.cdi.enabled == Switch::kOff)
    report("containers.deviceList",
           "\"" + std::string(ToString(*cdi)) +
               "\" needs CDI specifications, which cdi.enabled: off forbids");
  CheckCdi(config.cdi, report);
}

}  // namespace penstock::api::internal
