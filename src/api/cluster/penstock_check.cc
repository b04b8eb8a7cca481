// Rules of Kubernetes for names, labels and paths in a Penstock object.
#include "api/cluster/penstock_check.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "api/cluster/kube_json.h"
#include "api/config/value_forms.h"
#include "api/labels.h"
#include "base/core/strings.h"

namespace penstock::api::internal {

namespace {

using LabelMap = std::map<std::string, std::string>;

void CheckKey(std::string_view path, const std::string& key, const ReportProblem& report) {
  if (!key.empty() && !IsLabelKey(key)) report(path, "\"" + key + "\" is not a label key");
}

void CheckPath(std::string_view path, const std::string& value, bool may_be_empty,
               const ReportProblem& report) {
  if (const std::string problem = AbsolutePath(may_be_empty).Problem(value); !problem.empty())
    report(path, problem);
}

bool IsVariableName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isgraph(c) != 0 && c != '=';
  });
}

void CheckAgent(const AgentPods& agent, const ReportProblem& report) {
  if (std::ranges::any_of(agent.image, [](unsigned char c) { return std::isgraph(c) == 0; }))
    report("agent.image", "\"" + agent.image + "\" is not the name of an image");
  for (const std::string& secret : agent.pull_secrets)
    CheckObject("agent.imagePullSecrets", secret, "Secret", report);
  CheckLabelMap("agent.labels", agent.labels, report);
  CheckAnnotations("agent.annotations", agent.annotations, report);
  CheckLabelMap("agent.nodeSelector", agent.node_selector, report);
  CheckVariables("agent.env", agent.environment, report);
  CheckObject("agent.priorityClassName", agent.priority_class, "PriorityClass", report);
}

void CheckService(const std::string& path, const MetricsService& service,
                  const ReportProblem& report) {
  if (!IsObjectName(service.name, false))
    report(path + ".name", "\"" + service.name + "\" is not the name of a Service");
  CheckLabelMap(path + ".labels", service.labels, report);
  CheckAnnotations(path + ".annotations", service.annotations, report);
  CheckLabelMap(path + ".monitorLabels", service.monitor_labels, report);
  for (const auto& [key, text] : {std::pair(".interval", &service.interval),
                                  std::pair(".scrapeTimeout", &service.scrape_timeout)})
    if (!text->empty() && !IsPrometheusDuration(*text))
      report(path + key, "\"" + *text + "\" is not a duration of Prometheus, such as \"15s\"");
}

template <typename Named>
void CheckTwice(std::string_view path, const std::vector<Named>& all, const ReportProblem& report) {
  std::set<std::string> names;
  for (const Named& one : all)
    if (!one.name.empty() && !names.insert(one.name).second)
      report(path, "\"" + one.name + "\" is named twice");
}

}  // namespace

void CheckObject(std::string_view path, const std::string& name, std::string_view what,
                 const ReportProblem& report) {
  if (!name.empty() && !IsObjectName(name, true))
    report(path, "\"" + name + "\" is not the name of a " + std::string(what) +
                     ": at most 253 lower-case letters, digits, '-' and '.'");
}

void CheckAnnotations(std::string_view path, const LabelMap& annotations,
                      const ReportProblem& report) {
  for (const auto& [key, value] : annotations)
    if (!IsLabelKey(key)) report(path, "\"" + key + "\" is not the key of an annotation");
}

void CheckVariables(std::string_view path,
                    const std::vector<std::pair<std::string, std::string>>& variables,
                    const ReportProblem& report) {
  for (const auto& [name, value] : variables)
    if (!IsVariableName(name))
      report(path, "\"" + name + "\" is not the name of an environment variable");
}

void CheckLabelMap(std::string_view path, const LabelMap& labels, const ReportProblem& report) {
  for (const auto& [key, value] : labels) {
    CheckKey(path, key, report);
    if (key.empty()) report(path, "a label without a key");
    if (!IsLabelValue(value))
      report(path, "\"" + value + "\" cannot be the value of the label " + key +
                       ": at most 63 letters, digits, '-', '_' and '.'");
  }
}

void CheckPenstock(const PenstockSpec& spec, const ReportProblem& report) {
  CheckAgent(spec.agent, report);
  for (const std::string& key : spec.startup_taints)
    if (!IsLabelKey(key)) report("startupTaints", "\"" + key + "\" is not the key of a taint");
  CheckPath("hostPaths.driverRoot", spec.host.driver_root, false, report);
  CheckPath("hostPaths.kubeletDir", spec.host.kubelet_dir, false, report);
  CheckPath("hostPaths.devicePluginsDir", spec.host.device_plugins_dir, false, report);
  CheckPath("hostPaths.installDir", spec.host.install_dir, true, report);
  CheckObject("configMaps.configurations", spec.config_maps.configurations, "ConfigMap", report);
  CheckObject("configMaps.layouts", spec.config_maps.layouts, "ConfigMap", report);
  CheckObject("configMaps.counters", spec.config_maps.counters, "ConfigMap", report);
  CheckObject("configMaps.exporter", spec.config_maps.exporter, "ConfigMap", report);
  CheckObject("configMaps.modeProfiles", spec.config_maps.mode_profiles, "ConfigMap", report);
  CheckObject("configMaps.clientServices", spec.config_maps.client_services, "ConfigMap", report);
  for (std::size_t i = 0; i < spec.runtime_classes.size(); ++i) {
    const std::string path = base::Item("runtimeClasses", i);
    CheckObject(path + ".name", spec.runtime_classes[i].name, "RuntimeClass", report);
    if (const std::string& handler = spec.runtime_classes[i].handler;
        !handler.empty() && !IsObjectName(handler, false))
      report(path + ".handler", "\"" + handler + "\" is not the name of an engine's handler");
  }
  CheckTwice("runtimeClasses", spec.runtime_classes, report);
  for (std::size_t i = 0; i < spec.services.size(); ++i)
    CheckService(base::Item("services", i), spec.services[i], report);
  CheckTwice("services", spec.services, report);
  for (std::size_t i = 0; i < spec.drivers.size(); ++i)
    CheckDriver(base::Item("drivers", i), spec.drivers[i], report);
  CheckTwice("drivers", spec.drivers, report);
  CheckLabelMap("nodeLabels.labels", spec.marks.labels, report);
  CheckAnnotations("nodeLabels.annotations", spec.marks.annotations, report);
  CheckKey("nodeLabels.present", spec.marks.present_label, report);
  CheckKey("nodeLabels.optOut", spec.marks.opt_out_label, report);
}

}  // namespace penstock::api::internal
