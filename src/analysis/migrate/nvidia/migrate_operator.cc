// Computes the commands by which Penstock's operator takes the place of NVIDIA's, as
// docs/install-gpu-operator.md describes it.
#include <algorithm>
#include <map>

#include "analysis/migrate/amd/rocm.h"
#include "analysis/migrate/nvidia/migrate_changes.h"
#include "api/compat/nvidia/deploy_labels.h"
#include "base/core/strings.h"

namespace penstock::analysis {

namespace {

constexpr char kUsual[] = "gpu-operator";  // release and namespace of NVIDIA's instructions

/// The first, also where only DaemonSets of it were given; without a name: there is none.
Policy PolicyIn(const Found& found) {
  if (!found.policies.empty()) return found.policies.front();
  for (const Workload& one : found.workloads)
    if (!one.policy.empty()) return {.name = one.policy};
  return {};
}

bool IsOfPolicy(const Workload& one, const Policy& policy) {
  return one.kind == "DaemonSet" && one.policy == policy.name;
}

/// Whether Penstock's operator has this policy already.
bool IsServed(const Found& found, const Policy& policy) {
  return std::ranges::any_of(found.workloads, [&policy](const Workload& one) {
    return one.part == Part::kPenstock && IsOfPolicy(one, policy);
  });
}

std::string NameOfRelease(const Policy& policy) {
  return policy.release.empty() ? kUsual : policy.release;
}

/// That of the operator, in which it also looks for the ConfigMaps that the policy names.
std::string NamespaceOfOperator(const Found& found, const Policy& policy) {
  if (!policy.release_namespace.empty()) return policy.release_namespace;
  for (const Workload& one : found.workloads)
    if (IsOfPolicy(one, policy) && !one.namespace_name.empty()) return one.namespace_name;
  for (const ConfigMap& one : found.config_maps)
    if ((one.name == policy.config_map || one.name == policy.layouts_map) &&
        !one.namespace_name.empty())
      return one.namespace_name;
  return kUsual;
}

std::string FileOfValues(const Policy& policy) {
  return policy.values_file.empty() ? "values.yaml" : policy.values_file;
}

/// What NVIDIA's operator has left beside ours.
void AddLeft(const Found& found, const Policy& policy, Migration& plan) {
  for (const Workload& one : found.workloads)
    if (IsOfPolicy(one, policy) && one.part != Part::kPenstock)
      plan.steps.push_back(
          {"kubectl " + InNamespace(one.namespace_name) + "delete daemonset " + ForShell(one.name),
           "Penstock's operator has this ClusterPolicy; NVIDIA's has left this "
           "DaemonSet, whose work the agents do"});
}

/// A cluster has one of the two charts.
void AddOtherChartRemoval(const Found& found, Migration& plan) {
  for (const Workload* one : WorkloadsOf(found, {Part::kPenstock}))
    if (one->policy.empty() && !one->release.empty())
      plan.steps.push_back({"helm " + InNamespace(one->namespace_name) + "uninstall " +
                                ForShell(one->release) + " --wait",
                            "the operator runs the agents; a cluster has one of the two charts"});
}

/// Programs that the policy does not have are configured by values of the chart `penstock` alone.
void AddNotCarried(const Found& found, Migration& plan) {
  for (const Workload* one : WorkloadsOf(found, {Part::kDevicePlugin, Part::kExporter}))
    if (one->policy.empty())
      plan.remarks.push_back(one->from +
                             ": not the ClusterPolicy's, so its settings are not among the values "
                             "of the commands below; what agents are to have of them goes below "
                             "penstock.spec (docs/operator.md)");
}

/// What keeps names that values of NVIDIA's chart do not say.
std::string ValuesForNames(const Migration& plan) {
  std::string values;
  if (!plan.host_label.empty())
    values += " --set penstock.spec.node.telemetry.hostLabel=" + plan.host_label;
  if (!plan.job.empty())
    values +=
        " --set-json " +
        ForShell(
            R"(dcgmExporter.serviceMonitor.relabelings=[{"targetLabel":"job","replacement":")" +
            plan.job + R"("}])");
  if (plan.as_nvidia) values += " --set penstock.spec.node.devicePlugin.configFiles=as-nvidia";
  return values;
}

}  // namespace

bool ReplacesOperator(const Found& found, const std::string& node) {
  return node.empty() && !PolicyIn(found).name.empty();
}

void AddOperatorRemoval(const Found& found, Migration& plan) {
  const Policy policy = PolicyIn(found);
  if (IsServed(found, policy)) return AddLeft(found, policy, plan);
  const std::string at = "helm " + InNamespace(NamespaceOfOperator(found, policy));
  if (policy.values_file.empty())
    plan.steps.push_back(
        {at + "get values " + ForShell(NameOfRelease(policy)) + " -o yaml > values.yaml",
         "Penstock's chart gpu-operator has the same values under the same names"});
  plan.steps.push_back(
      {at + "uninstall " + ForShell(NameOfRelease(policy)) + " --wait",
       "NVIDIA's operator, its ClusterPolicy and DaemonSets go; running pods keep their GPUs. An "
       "operator that Helm did not install is removed as it was installed; a ClusterPolicy that "
       "stays then needs clusterPolicy.deployCR=false in the installation"});
  AddOtherChartRemoval(found, plan);
}

void AddPausedLabels(const Found& found, Migration& plan) {
  const bool served = IsServed(found, PolicyIn(found));
  const auto& services = api::compat::ServiceLabels();
  // Agents pause what is no service of theirs themselves, while they divide a GPU.
  const auto may_be_an_agents = [&](const std::string& key) {
    return served && std::ranges::find(services, key) == services.end();
  };
  std::map<std::string, std::vector<std::string>> nodes;  // by the words that remove the labels
  std::map<std::string, std::vector<std::string>> off;    // by the key
  for (const LabelledNode& node : found.nodes) {
    std::string words;
    for (const std::string& key : api::compat::PausedLabels(node.labels))
      if (!may_be_an_agents(key)) words += " " + ForShell(key + "-");
    if (!words.empty()) nodes[words].push_back(ForShell(node.name));
    for (const std::string& key : services)
      if (const auto label = node.labels.find(key);
          label != node.labels.end() && label->second == "false")
        off[key].push_back(node.name);
  }
  for (const auto& [words, names] : nodes)
    plan.steps.push_back(
        {"kubectl label node " + base::Join(names, " ") + words,
         "a program of NVIDIA's has paused these pods and did not come to the end; agents, too, "
         "take a service with such a label for switched off"});
  for (const auto& [key, names] : off)
    plan.remarks.push_back(key + "=false (" + Named(names) +
                           "): switches this service of the agent off, too; remove the label if "
                           "it was for NVIDIA's pods only");
}

void AddOperatorInstall(const Found& found, Migration& plan) {
  const Policy policy = PolicyIn(found);
  if (IsServed(found, policy)) return;
  AddNotCarried(found, plan);
  const std::string space = NamespaceOfOperator(found, policy);
  std::string values = " -f " + ForShell(FileOfValues(policy)) +
                       " --set penstock.image.repository=localhost/penstock" + ValuesForNames(plan);
  AddRocmValues(found, space, Replaced::kOperator, values, plan);
  plan.steps.push_back(
      {"helm " + InNamespace(space) + "install gpu-operator penstock/gpu-operator" + values,
       "one operator in place of NVIDIA's, and an agent on each node (docs/install-gpu-operator.md "
       "says how the chart is served); replace localhost/penstock with the image that your nodes "
       "can pull"});
}

}  // namespace penstock::analysis
