// Computes the commands of a plan, in order. Each can be run as printed.
#include <algorithm>
#include <set>

#include "analysis/migrate/amd/rocm.h"
#include "analysis/migrate/nvidia/migrate_changes.h"
#include "analysis/migrate/nvidia/migrate_offer.h"

namespace penstock::analysis {

namespace {

/// Escapes dots within a key for kubectl's JSONPath.
std::string EscapedDots(const std::string& key) {
  std::string escaped;
  for (const char letter : key)
    escaped += letter == '.' ? std::string("\\.") : std::string(1, letter);
  return escaped;
}

void AddCheckSteps(const Found& found, Migration& plan) {
  std::set<std::string> reported;
  std::vector<ConfigFile> files = found.configs;
  files.insert(files.end(), found.layouts.begin(), found.layouts.end());
  for (const ConfigFile& one : files)
    if (!one.config_map.empty() &&
        reported.insert(one.namespace_name + "/" + one.config_map).second)
      plan.steps.push_back({"kubectl " + InNamespace(one.namespace_name) + "get configmap " +
                                ForShell(one.config_map) +
                                " -o yaml | penstock config check --lenient -",
                            "shows what in its files is wrong, ignored or not supported yet"});
}

std::string ReleaseNamespace(const Workload& one) {
  return one.release_namespace.empty() ? one.namespace_name : one.release_namespace;
}

std::string FromConfigMap(const std::string& name, const std::string& default_key) {
  return " --set config.name=" + ForShell(name) +
         (default_key.empty() ? "" : " --set config.default=" + ForShell(default_key));
}

/// Reuses the exporter's counters file for the metrics page: by reference in the same namespace,
/// else by a copy.
void AddCounters(const Found& found, const std::string& space, std::string& values,
                 Migration& plan) {
  for (const ConfigFile& one : found.counters) {
    const auto exporters = WorkloadsOf(found, {Part::kExporter});
    const bool used = std::ranges::any_of(exporters, [&one](const Workload* exporter) {
      return exporter->counters_map == one.config_map;
    });
    if (one.config_map.empty() || !used) continue;
    if (one.namespace_name == space) {
      values += " --set penstock.telemetry.countersConfigMap=" + ForShell(one.config_map) +
                ",penstock.telemetry.countersKey=" + ForShell(one.key);
    } else {
      plan.steps.push_back({"kubectl " + InNamespace(one.namespace_name) + "get configmap " +
                                ForShell(one.config_map) + " -o jsonpath='{.data." +
                                EscapedDots(one.key) + "}' > counters.csv",
                            "the metrics that the exporter exposes"});
      values += " --set-file penstock.telemetry.counters=counters.csv";
    }
    return;
  }
}

void AddJobDirectory(const Found& found, std::string& values) {
  for (const Workload* one : WorkloadsOf(found, {Part::kExporter})) {
    if (one->job_directory.empty()) continue;
    values += " --set penstock.telemetry.jobDirectory=" + ForShell(one->job_directory);
    return;
  }
}

/// Reuses the MIG manager's layouts: by reference in the same namespace, else by a copy. `space` is
/// the release's namespace.
void AddMig(const Found& found, const std::string& space, std::string& values, Migration& plan) {
  static constexpr char kKey[] = "config.yaml";
  const MigLayouts mig = MigLayoutsOf(found);
  const bool by_values = values.find(" -f ") != std::string::npos;
  if (!mig.strategy.empty() && !by_values) values += " --set migStrategy=" + ForShell(mig.strategy);
  if (!mig.default_layout.empty())
    values += " --set migManager.config.default=" + ForShell(mig.default_layout);
  if (mig.config_map.empty()) return;
  std::string name = mig.config_map;
  for (const ConfigFile& one : found.layouts) {
    if (one.config_map != mig.config_map) continue;
    if (one.key == kKey && (one.namespace_name.empty() || one.namespace_name == space)) break;
    name = "penstock-layouts";
    plan.steps.push_back({"kubectl " + InNamespace(one.namespace_name) + "get configmap " +
                              ForShell(one.config_map) + " -o jsonpath='{.data." +
                              EscapedDots(one.key) + "}' > layouts.yaml",
                          "the layouts of the MIG manager"});
    plan.steps.push_back({"kubectl " + InNamespace(space) + "create configmap " + name +
                              " --from-file=config.yaml=layouts.yaml",
                          "the agents read them from the release's own namespace, which has to "
                          "exist (kubectl create namespace " +
                              space + ")"});
    break;
  }
  values += " --set migManager.config.name=" + ForShell(name);
}

/// Installs Penstock in the namespace of its ConfigMaps, because it reads them only from the
/// release's own namespace. Values of NVIDIA's chart for its container are not carried over: with
/// another image, runtime class or security context the pod of Penstock would not work.
void AddInstallStep(const Found& found, Migration& plan) {
  static constexpr char kNotCarried[] =
      " --set image.repository=localhost/penstock,image.tag=null --set runtimeClassName=null --set "
      "securityContext=null";
  std::string space = "penstock", values, why;
  for (const Workload* one : WorkloadsOf(found, {Part::kDevicePlugin})) {
    if (one->kind == "values") {
      values = " -f " + ForShell(one->name) + kNotCarried;
    } else if (!one->release.empty()) {
      plan.steps.push_back({"helm " + InNamespace(ReleaseNamespace(*one)) + "get values " +
                                ForShell(one->release) + " -o yaml > values.yaml",
                            "Penstock's chart has the same values under the same names"});
      values = std::string(" -f values.yaml") + kNotCarried;
    } else if (!one->config_map.empty()) {
      values = FromConfigMap(one->config_map, one->default_key);
    } else {
      continue;
    }
    if (!one->namespace_name.empty()) space = one->namespace_name;
    break;
  }
  for (const Policy& one : found.policies) {  // of one node
    if (one.config_map.empty() || !values.empty()) continue;
    values = FromConfigMap(one.config_map, one.default_key);
    for (const ConfigFile& file : found.configs)
      if (file.config_map == one.config_map && !file.namespace_name.empty())
        space = file.namespace_name;
  }
  if (const MigLayouts mig = MigLayoutsOf(found); values.empty() && !mig.namespace_name.empty())
    space = mig.namespace_name;
  else if (const std::string rocms = RocmNamespace(found); values.empty() && !rocms.empty())
    space = rocms;
  AddCounters(found, space, values, plan);
  AddJobDirectory(found, values);
  AddMig(found, space, values, plan);
  AddRocmValues(found, space, Replaced::kPlugins, values, plan);
  if (!plan.host_label.empty()) values += " --set penstock.telemetry.hostLabel=" + plan.host_label;
  if (!plan.job.empty())
    values +=
        " --set-json " +
        ForShell(
            R"(penstock.metrics.serviceMonitor.relabelings=[{"targetLabel":"job","replacement":")" +
            plan.job + R"("}])");
  if (plan.as_nvidia) values += " --set penstock.config.devicePlugin.configFiles=as-nvidia";
  why =
      std::string("its agents wait beside ") +
      (WorkloadsOf(found, {Part::kDevicePlugin}).empty() && HasRocm(found) ? "AMD's" : "NVIDIA's") +
      " plugin (`kubectl penstock nodes` shows stepped-back) and take over when it is removed";
  if (values.find("image.repository") != std::string::npos)
    why += "; replace localhost/penstock with the image that your nodes can pull";
  if (plan.as_nvidia)
    why +=
        "; the last setting keeps NVIDIA's interpretation of the configuration: omit it to get the "
        "other names";
  plan.steps.push_back({"helm " + InNamespace(space) + "install penstock deploy/helm/penstock" +
                            (space == "penstock" ? " --create-namespace" : "") + values,
                        why});
}

/// The value by which a Node's label keeps a pod of NVIDIA's operator from it, which runs on nodes
/// with "true", and leaves the agent's service on, which "false" would switch off.
constexpr char kNotTheirs[] = "=penstock";

/// Adds the removal of the exporter as the last step: it can run beside the agent's page.
void AddExporterRemoval(const Found& found, const std::string& node, Migration& plan) {
  static constexpr char kWhy[] =
      "once the dashboards and alerts work with Penstock's pages; until then both can run";
  for (const Workload* one : WorkloadsOf(found, {Part::kExporter})) {
    if (one->kind == "values") continue;
    if (!one->policy.empty() && node.empty()) continue;  // it goes with its operator
    if (!one->policy.empty()) {
      plan.steps.push_back({"kubectl label node " + ForShell(node) +
                                " nvidia.com/gpu.deploy.dcgm-exporter" + kNotTheirs +
                                " --overwrite",
                            kWhy});
    } else if (!one->release.empty()) {
      plan.steps.push_back(
          {"helm " + InNamespace(ReleaseNamespace(*one)) + "uninstall " + ForShell(one->release),
           kWhy});
    } else {
      plan.steps.push_back({"kubectl " + InNamespace(one->namespace_name) + "delete daemonset " +
                                ForShell(one->name),
                            kWhy});
    }
  }
}

void AddRemovalSteps(const Found& found, const std::string& node, Migration& plan) {
  const std::string why =
      "Penstock's agent takes over at once; running pods keep their GPUs. Preferably drain a node "
      "with shared GPUs first";
  std::set<std::string> done;
  for (const Workload* one : WorkloadsOf(
           found, {Part::kDevicePlugin, Part::kFeatureDiscovery, Part::kMps, Part::kMigManager})) {
    if (one->kind == "values" || !one->policy.empty()) continue;
    if (!one->release.empty()) {
      if (done.insert("helm " + one->release).second)
        plan.steps.push_back(
            {"helm " + InNamespace(ReleaseNamespace(*one)) + "uninstall " + ForShell(one->release),
             why});
    } else {
      plan.steps.push_back({"kubectl " + InNamespace(one->namespace_name) + "delete daemonset " +
                                ForShell(one->name),
                            why});
    }
  }
  if (!found.policies.empty() && !node.empty()) {
    std::string command = "kubectl label node " + ForShell(node);
    for (const char* part : {"device-plugin", "gpu-feature-discovery", "mig-manager"})
      command += std::string(" nvidia.com/gpu.deploy.") + part + kNotTheirs;
    plan.steps.push_back(
        {command + " --overwrite", "NVIDIA's operator removes the three from this node only"});
  }
  AddExporterRemoval(found, node, plan);
  AddRocmRemoval(found, plan);
  if (!found.node_features.empty())
    plan.steps.push_back({"kubectl get nodefeatures -A | grep nvidia-features-for-",
                          "they are removed with GPU Feature Discovery; delete any that remain, or "
                          "NFD keeps labelling from them"});
}

}  // namespace

std::string ForShell(const std::string& word) {
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char letter : word)
    quoted += letter == '\'' ? std::string(R"('\'')") : std::string(1, letter);
  return quoted + "'";
}

std::string InNamespace(const std::string& name) {
  return name.empty() ? "" : "-n " + ForShell(name) + " ";
}

void AddSteps(const Found& found, const std::string& node, Migration& plan) {
  const bool replaces_operator = ReplacesOperator(found, node);
  AddCheckSteps(found, plan);
  if (replaces_operator) AddOperatorRemoval(found, plan);
  if (node.empty()) AddPausedLabels(found, plan);
  replaces_operator ? AddOperatorInstall(found, plan) : AddInstallStep(found, plan);
  AddRemovalSteps(found, node, plan);
  plan.steps.push_back(
      {node.empty() ? "kubectl penstock nodes" : "kubectl penstock explain " + ForShell(node),
       "shows for each node which plugin serves it, and its problems"});
}

void AddStepsBack(const Found& found, Migration& plan) {
  std::string release = "penstock", space = "penstock";
  for (const Workload* one : WorkloadsOf(found, {Part::kPenstock}))
    if (!one->release.empty()) release = one->release, space = one->namespace_name;
  plan.steps.push_back(
      {"helm " + InNamespace(space) + "get values " + ForShell(release) + " -o yaml > values.yaml",
       "values of NVIDIA's chart have the same names; those below `penstock` are Penstock's only: "
       "remove them"});
  plan.steps.push_back({"helm " + InNamespace(space) + "uninstall " + ForShell(release),
                        "the kubelet no longer sees the devices; running pods keep theirs"});
  plan.steps.push_back(
      {"kubectl penstock cleanup",
       "Penstock's labels and objects; the chart's own uninstall removes them already"});
  plan.steps.push_back(
      {"helm " + InNamespace(space) +
           "install nvdp nvdp/nvidia-device-plugin -f values.yaml --set gfd.enabled=true",
       "NVIDIA's plugin registers nvidia.com/gpu again"});
}

}  // namespace penstock::analysis
