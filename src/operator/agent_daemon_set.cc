// Edits the DaemonSet of the manifest, so that both ways to install the agents give the same pods.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "api/compat/nvidia/node_status.h"
#include "api/config/config_revision.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"
#include "operator/agent_config.h"
#include "operator/embedded_files.h"
#include "operator/json_values.h"
#include "operator/manifests.h"
#include "operator/names.h"

namespace penstock::cluster {
namespace {

Json* Named(Json& list, std::string_view name) {
  const auto found =
      std::ranges::find_if(list, [name](const Json& one) { return TextAt(one, "/name") == name; });
  return found == list.end() ? nullptr : &*found;
}

/// Reads the parts that are passed on as they are, and collects what is wrong with them.
class Parts {
 public:
  Json Read(const api::KubeJson& part, const char* what, Json::value_t type) {
    if (part.empty()) return nullptr;
    Json json = base::ParseJson<Json>(part.text);
    if (json.type() == type) return json;
    problems_.push_back(std::string(what) + " must be " +
                        (type == Json::value_t::array ? "a list" : "a map") + ", not " +
                        (json.is_discarded() ? "malformed JSON" : json.type_name()));
    return nullptr;
  }
  base::Status status() const {
    if (problems_.empty()) return {};
    return base::Error(base::Code::kInvalidArgument, base::Join(problems_, "; "));
  }

 private:
  std::vector<std::string> problems_;
};

constexpr char kTerms[] =
    "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";

/// The terms of a required node affinity are alternatives, so each gets the manifest's condition.
Json WithRequired(Json affinity, const Json& manifest) {
  const Json* required = Find(manifest, kTerms);
  if (affinity.is_null() || required == nullptr || required->empty()) return manifest;
  const Json& condition = (*required)[0]["matchExpressions"][0];
  const Json* theirs = Find(affinity, kTerms);
  if (theirs == nullptr || !theirs->is_array() || theirs->empty()) {
    affinity[Json::json_pointer(kTerms)] = *required;
    return affinity;
  }
  for (Json& term : affinity[Json::json_pointer(kTerms)])
    if (term.is_object()) term["matchExpressions"].push_back(condition);
  return affinity;
}

/// A pod of the host's network has the node's port: no second one can start beside it.
Json UpdateStrategy(const api::AgentPods& agent) {
  if (agent.update.on_delete) return {{"type", "OnDelete"}};
  Json rolling = {{"maxSurge", 1}, {"maxUnavailable", 0}};
  const std::string& most = agent.update.max_unavailable;
  if (!most.empty() || agent.host_network) {
    const auto number = base::ParseInt(most.empty() ? "1" : most);
    rolling = {{"maxSurge", 0}, {"maxUnavailable", number ? Json(*number) : Json(most)}};
  }
  return {{"type", "RollingUpdate"}, {"rollingUpdate", rolling}};
}

void SetHostPath(Json& volumes, const char* name, const std::string& path) {
  if (Json* volume = Named(volumes, name)) (*volume)["hostPath"]["path"] = path;
}

void Mount(Json& container, Json& volumes, const std::string& name, const std::string& path,
           Json source, bool read_only) {
  Json mount = {{"name", name}, {"mountPath", path}};
  if (read_only) mount["readOnly"] = true;
  container["volumeMounts"].push_back(std::move(mount));
  source["name"] = name;
  volumes.push_back(std::move(source));
}

void SetDriver(const api::PenstockSpec& spec, Json& container, Json& volumes) {
  const HostDriver driver = DriverOf(spec);
  if (Json* volume = Named(volumes, "driver-root"))
    (*volume)["hostPath"] = {{"path", driver.root},
                             {"type", driver.root == "/" ? "Directory" : "DirectoryOrCreate"}};
  // Files of divided devices are created below it, unless device files are elsewhere.
  if (Json* mount = Named(container["volumeMounts"], "driver-root"))
    (*mount)["readOnly"] = driver.root == "/" || driver.separate_dev();
  if (!driver.separate_dev()) return;
  Mount(container, volumes, "dev-root", std::string(kDevRootInPod),
        {{"hostPath", {{"path", driver.dev}, {"type", "DirectoryOrCreate"}}}}, false);
  container["volumeMounts"].back()["mountPropagation"] = "HostToContainer";
}

/// A folder of the agent that is the same in the pod and on the host.
void SetFolder(Json& container, Json& volumes, const char* name, const std::string& path) {
  SetHostPath(volumes, name, path);
  if (Json* mount = Named(container["volumeMounts"], name)) (*mount)["mountPath"] = path;
}

void SetFolders(const api::PenstockSpec& spec, Json& container, Json& volumes) {
  const api::PathsConfig& paths = spec.node.paths;
  SetHostPath(volumes, "device-plugins", spec.host.device_plugins_dir);
  SetHostPath(volumes, "pod-resources", spec.host.kubelet_dir + "/pod-resources");
  SetFolder(container, volumes, "run", paths.run_dir);
  SetFolder(container, volumes, "state", paths.state_dir);
  SetFolder(container, volumes, "cdi", paths.cdi_root);
  if (const std::string servers = api::OfVendor(spec.node.sharing.server_roots, "nvidia");
      !servers.empty())
    SetFolder(container, volumes, "mps", servers);
  const std::string& install = spec.host.install_dir;
  if (!install.empty() && install != paths.state_dir)
    Mount(container, volumes, "programs", install,
          {{"hostPath", {{"path", install}, {"type", "DirectoryOrCreate"}}}}, false);
  if (const std::string& validations = spec.node.validation.directory; !validations.empty())
    Mount(container, volumes, "validations", validations,
          {{"hostPath", {{"path", validations}, {"type", "DirectoryOrCreate"}}}}, false);
  if (spec.host.health_sockets)
    Mount(container, volumes, "amd-health", std::string(kAmdHealthFolder),
          {{"hostPath", {{"path", kAmdHealthFolder}, {"type", "DirectoryOrCreate"}}}}, false);
  if (const std::string& jobs = spec.node.telemetry.job_directory; !jobs.empty())
    Mount(container, volumes, "jobs", jobs,
          {{"hostPath", {{"path", jobs}, {"type", "DirectoryOrCreate"}}}}, true);
  // Optional: the agent serves without it, and reports what is missing.
  const auto mount_map = [&](const char* name, std::string_view path, const std::string& map) {
    if (!map.empty())
      Mount(container, volumes, name, std::string(path),
            {{"configMap", {{"name", map}, {"optional", true}}}}, true);
  };
  mount_map("layouts", kLayoutsInPod, spec.config_maps.layouts);
  mount_map("counters", kCountersInPod, spec.config_maps.counters);
  mount_map("exporter", kExporterInPod, spec.config_maps.exporter);
  mount_map("modes", kModesInPod, spec.config_maps.mode_profiles);
  mount_map("clients", kClientsInPod, spec.config_maps.client_services);
}

void SetVariable(Json& container, std::string_view name, const std::string& value) {
  Json one = {{"name", name}, {"value", value}};
  if (Json* known = Named(container["env"], name)) {
    *known = std::move(one);
  } else {
    container["env"].push_back(std::move(one));
  }
}

void SetContainer(const api::AgentPods& agent, const Installation& installation,
                  const std::string& configuration, Parts& parts, Json& container) {
  container["image"] = agent.image.empty() ? installation.image : agent.image;
  container["imagePullPolicy"] =
      agent.pull_policy.empty() ? installation.pull_policy : agent.pull_policy;
  for (const auto& [name, value] : agent.environment) SetVariable(container, name, value);
  // The kubelet writes a changed ConfigMap on every node within a minute, and agents apply changes
  // of their file at once. An agent leaves what is not of its revision to the one that replaces it,
  // so that a change reaches a node at its turn in the roll-out.
  SetVariable(container, api::kConfigRevisionVariable, api::ConfigRevision(configuration));
  if (Json own = parts.Read(agent.resources, "the agents' resources", Json::value_t::object);
      !own.is_null())
    container["resources"] = std::move(own);
}

void SetPlacement(const api::AgentPods& agent, Parts& parts, Json& pod) {
  for (const auto& [key, value] : agent.node_selector) pod["nodeSelector"][key] = value;
  const Json affinity = parts.Read(agent.affinity, "the agents' affinity", Json::value_t::object);
  pod["affinity"] = WithRequired(affinity, pod["affinity"]);
  const Json own = parts.Read(agent.tolerations, "the agents' tolerations", Json::value_t::array);
  if (own.is_array())
    for (const Json& one : own)
      if (std::ranges::find(pod["tolerations"], one) == pod["tolerations"].end())
        pod["tolerations"].push_back(one);
  if (!agent.priority_class.empty()) pod["priorityClassName"] = agent.priority_class;
}

void SetPod(const api::AgentPods& agent, const Installation& installation, Parts& parts,
            Json& pod) {
  pod["serviceAccountName"] = installation.service_account;
  Json secrets = Json::array();
  for (const auto* names : {&installation.pull_secrets, &agent.pull_secrets})
    for (const std::string& name : *names)
      if (Named(secrets, name) == nullptr) secrets.push_back({{"name", name}});
  if (!secrets.empty()) pod["imagePullSecrets"] = std::move(secrets);
  if (agent.host_network) pod["hostNetwork"] = true;
  if (Json own = parts.Read(agent.pod_security_context, "the agents' podSecurityContext",
                            Json::value_t::object);
      !own.is_null())
    pod["securityContext"] = std::move(own);
  SetPlacement(agent, parts, pod);
}

void Append(Json& list, Json more) {
  if (more.is_array())
    for (Json& one : more) list.push_back(std::move(one));
}

/// The manifest's own labels name its way to install.
void SetMetadata(const api::AgentPods& agent, Json& set) {
  set["metadata"] = {{"name", kAgentName}};
  Json& template_metadata = set["spec"]["template"]["metadata"];
  template_metadata["labels"] = agent.labels;
  template_metadata["annotations"] = agent.annotations;
  for (const auto& [key, value] : AgentLabels()) {
    template_metadata["labels"][key] = value;
    set["spec"]["selector"]["matchLabels"][key] = value;
  }
}

/// Of the spec what the pods have that take back what agents left: what else pods refer to may have
/// been deleted with the policy.
api::PenstockSpec OfRelease(api::PenstockSpec spec) {
  api::AgentPods& pods = spec.agent;
  // The operator's own image knows the command; one that the policy names may be older.
  if (!std::exchange(pods.image, "").empty()) pods.pull_policy.clear();
  pods.node_selector.clear();
  pods.affinity = pods.resources = pods.pod_security_context = {};
  pods.priority_class.clear();
  // Each node knows which one its agent had (its kept configuration).
  if (std::string& folder = spec.node.validation.directory; folder.empty())
    folder = api::compat::kValidationFolder;
  return spec;
}

/// More names would make the DaemonSet larger than a tenth of what an API server takes.
constexpr std::size_t kMostNodesByName = 1000;

/// The nodes that the last spec selects, and those that have had an agent of an earlier one. Where
/// `had_agents` does not say which, or are too many, the pod runs on all.
void SelectNodes(const api::AgentPods& agent, const std::set<std::string>& had_agents, Json& pod) {
  if (agent.node_selector.empty() && agent.affinity.empty()) return;
  if (had_agents.empty() || had_agents.size() > kMostNodesByName) return;
  const Json affinity =
      WithRequired(agent.affinity.empty() ? Json() : base::ParseJson<Json>(agent.affinity.text),
                   pod["affinity"]);
  Json terms = Json::array();
  for (Json term : ListAt(affinity, kTerms)) {
    if (!term.is_object()) continue;
    for (const auto& [key, value] : agent.node_selector)
      term["matchExpressions"].push_back(
          {{"key", key}, {"operator", "In"}, {"values", Json::array({value})}});
    terms.push_back(std::move(term));
  }
  for (const std::string& node : had_agents) {
    const Json name = {
        {"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({node})}};
    terms.push_back({{"matchFields", Json::array({name})}});
  }
  pod["affinity"] = Json::object();
  pod["affinity"][Json::json_pointer(kTerms)] = std::move(terms);
}

/// Keeps of the agents' mounts those in which something is taken back, also users' own: others may
/// be gone with the policy, or may never have been on a node that had no agent.
void KeepMounts(const api::NodeConfig& config, Json& pod) {
  const auto is_needed = [&config](const std::string& folder) {
    const auto paths = {config.paths.run_dir, config.paths.state_dir, config.paths.cdi_root,
                        config.validation.directory, config.labels.features_file};
    return std::ranges::any_of(paths, [&folder](const std::string& path) {
      return (path + "/").starts_with(folder + "/");
    });
  };
  Json volumes = Json::array(), mounts = Json::array();
  for (const Json& mount : pod["containers"][0]["volumeMounts"]) {
    const std::string name = TextAt(mount, "/name");
    const Json* volume = Named(pod["volumes"], name);
    if (volume == nullptr) continue;
    const bool is_folder = volume->contains("hostPath");
    const std::string path = TextAt(mount, "/mountPath");
    if (name != "config" && !(is_folder && is_needed(path))) continue;
    const bool is_there = std::ranges::any_of(
        mounts, [&path](const Json& one) { return TextAt(one, "/mountPath") == path; });
    if (is_there) continue;  // the user has mounted what is mounted for all, too
    mounts.push_back(mount);
    if (Named(volumes, name) == nullptr) volumes.push_back(*volume);
  }
  pod["volumes"] = std::move(volumes);
  pod["containers"][0]["volumeMounts"] = std::move(mounts);
}

Json CleanupOfHost(const char* what) {
  return {"/usr/bin/penstock", "cleanup", "--host",
          "--keep-state",      what,      "--config=/etc/penstock/node.yaml"};
}

}  // namespace

base::Result<Json> AgentDaemonSet(const api::PenstockSpec& spec, const Installation& installation,
                                  const std::string& configuration) {
  static const auto manifest = EmbeddedObjects("DaemonSet");
  if (!manifest.ok()) return manifest.error();
  if (manifest->size() != 1)
    return base::Error(base::Code::kInternal, "the embedded manifest has no DaemonSet");
  Parts parts;
  Json set = manifest->front();
  Json& pod = set["spec"]["template"]["spec"];
  Json& container = pod["containers"][0];
  Json& volumes = pod["volumes"];
  SetMetadata(spec.agent, set);
  set["spec"]["updateStrategy"] = UpdateStrategy(spec.agent);
  SetPod(spec.agent, installation, parts, pod);
  for (const std::string& key : spec.startup_taints)
    pod["tolerations"].push_back({{"key", key}, {"operator", "Exists"}});
  SetContainer(spec.agent, installation, configuration, parts, container);
  SetDriver(spec, container, volumes);
  SetFolders(spec, container, volumes);
  Append(volumes, parts.Read(spec.agent.volumes, "the agents' volumes", Json::value_t::array));
  Append(container["volumeMounts"],
         parts.Read(spec.agent.volume_mounts, "the agents' volume mounts", Json::value_t::array));
  TRY(parts.status());
  return set;
}

base::Result<Json> HostReleaseSet(const api::PenstockSpec& spec, const Installation& installation,
                                  const std::string& configuration,
                                  const std::map<std::string, std::string>& labels,
                                  const std::set<std::string>& had_agents) {
  const api::PenstockSpec own = OfRelease(spec);
  ASSIGN(Json set, AgentDaemonSet(own, installation, configuration));
  set["metadata"] = {{"name", kHostReleaseName}};
  set["spec"].erase("updateStrategy");
  set["spec"]["selector"]["matchLabels"] = labels;
  Json& pods = set["spec"]["template"];
  for (const auto& [key, value] : labels) pods["metadata"]["labels"][key] = value;
  Json& pod = pods["spec"];
  pod["automountServiceAccountToken"] = false;
  // Also where a taint came after the agent, as that of a node that is not ready.
  pod["tolerations"] = {{{"operator", "Exists"}}};
  pod["terminationGracePeriodSeconds"] = 1;
  pod.erase("hostNetwork");
  SelectNodes(spec.agent, had_agents, pod);
  KeepMounts(own.node, pod);
  if (Json* config = Named(pod["volumes"], "config"))
    (*config)["configMap"]["name"] = kHostReleaseName;
  Json& container = pod["containers"][0];
  container["name"] = "cleanup";
  for (const char* of_agents : {"args", "ports", "startupProbe", "livenessProbe"})
    container.erase(of_agents);
  container["command"] = CleanupOfHost("--linger");
  container["readinessProbe"] = {{"exec", {{"command", CleanupOfHost("--check")}}},
                                 {"periodSeconds", 1},
                                 {"timeoutSeconds", 5}};
  return set;
}

}  // namespace penstock::cluster
