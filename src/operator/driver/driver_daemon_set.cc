#include "operator/driver/driver_daemon_set.h"

#include <algorithm>
#include <utility>

#include "api/compat/nvidia/driver_names.h"
#include "base/core/hash.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"
#include "operator/driver/driver_volumes.h"
#include "operator/driver/upgrade_state.h"
#include "operator/json_values.h"
#include "operator/names.h"

namespace penstock::cluster {
namespace {

using api::DriverSpec;
using api::KubeJson;

constexpr char kDriverComponent[] = "nvidia-driver";

/// Says that the driver works, with what the module for RDMA and others need to know, as NVIDIA's
/// probe does.
constexpr char kStartupScript[] =
    "test -f /sys/module/nvidia/refcnt && nvidia-smi && mkdir -p /run/nvidia/validations && "
    "printf 'GDRCOPY_ENABLED: %s\\nGDS_ENABLED: %s\\nGPU_DIRECT_RDMA_ENABLED: %s\\n' "
    "\"${GDRCOPY_ENABLED:-false}\" \"${GDS_ENABLED:-false}\" \"${GPU_DIRECT_RDMA_ENABLED:-false}\" "
    "> /run/nvidia/validations/.driver-ctr-ready.tmp && "
    "mv /run/nvidia/validations/.driver-ctr-ready.tmp /run/nvidia/validations/.driver-ctr-ready";

std::string HashText(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::uint64_t hash = base::Hash(text);
  std::string digits;
  for (int i = 0; i < 16; ++i, hash >>= 4u) digits += kDigits[hash & 15u];
  return digits;
}

Json ShellOf(const std::string& script) {
  return {{"exec", {{"command", Json::array({"sh", "-c", script})}}}};
}

Json Variable(std::string_view name, std::string_view value) {
  return {{"name", name}, {"value", value}};
}

Json FieldVariable(const char* name, const char* path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}

/// Makes the template of one pool's pods.
class DriverPodTemplate {
 public:
  DriverPodTemplate(const DriverSpec& driver, const DriverPool& pool,
                    const DriverInstallation& installation)
      : driver_(driver), pool_(pool), installation_(installation) {}

  Result<Json> Make() {
    if (driver_.type == "vgpu-host-manager")
      problems_.push_back("the driver type vgpu-host-manager is not served yet");
    const auto image = DriverImage(driver_, pool_);
    if (image.ok()) {
      image_ = *image;
    } else {
      problems_.push_back(image.error().message());
    }
    std::vector<std::string> missing;
    volumes_ = VolumesOf(driver_, pool_, installation_, missing);
    digest_ = Digest();
    Json made = {{"metadata", Metadata()}, {"spec", PodSpec()}};
    if (!problems_.empty()) return Error(Code::kInvalidArgument, base::Join(problems_, "; "));
    if (!missing.empty()) return Error(Code::kFailedPrecondition, base::Join(missing, "; "));
    made["metadata"]["annotations"][std::string(kTemplateAnnotation)] =
        HashText(base::JsonText(made));
    return made;
  }

  Json Labels() const {
    Json labels = driver_.labels;
    labels["app"] = App();
    labels["app.kubernetes.io/component"] = kDriverComponent;
    labels[std::string(kPoolLabel)] = DaemonSetName(driver_, pool_);
    labels[std::string(api::compat::kNodeOsLabel)] = pool_.os_tag;
    labels[std::string(api::compat::kPrecompiledLabel)] = driver_.precompiled ? "true" : "false";
    if (!pool_.kernel.empty())
      labels[std::string(api::compat::kPrecompiledKernelLabel)] = pool_.kernel;
    return labels;
  }

 private:
  /// By which users select the pods.
  std::string App() const {
    return driver_.name.empty() ? "nvidia-driver-daemonset" : DaemonSetName(driver_, pool_);
  }

  Json Part(const KubeJson& part, const char* what, Json::value_t type) {
    if (part.empty()) return nullptr;
    Json json = base::ParseJson<Json>(part.text);
    if (json.type() == type) return json;
    problems_.push_back(std::string(what) + " must be " +
                        (type == Json::value_t::array ? "a list" : "a map"));
    return nullptr;
  }

  Json Metadata() const {
    Json annotations = driver_.annotations;
    annotations["kubectl.kubernetes.io/default-container"] = kDriverContainer;
    return {{"labels", Labels()}, {"annotations", std::move(annotations)}};
  }

  Json PodSpec() {
    Json spec = {{"hostPID", true},
                 {"serviceAccountName", installation_.service_account},
                 {"automountServiceAccountToken", false},  // none for the user's containers
                 // Not the label by which users want none: the pod stays while it is in use.
                 {"nodeSelector", {{std::string(kPoolLabel), DaemonSetName(driver_, pool_)}}},
                 {"affinity", Affinity()},
                 {"tolerations", Tolerations()},
                 {"initContainers", Json::array({PrepareContainer()})},
                 {"containers", Containers()},
                 {"volumes", volumes_.volumes}};
    if (!driver_.priority_class.empty()) spec["priorityClassName"] = driver_.priority_class;
    if (driver_.host_network) spec["hostNetwork"] = true;
    if (Json context =
            Part(driver_.pod_security_context, "podSecurityContext", Json::value_t::object);
        !context.is_null())
      spec["securityContext"] = std::move(context);
    if (Json secrets = PullSecrets(); !secrets.empty()) spec["imagePullSecrets"] = secrets;
    return spec;
  }

  /// Not beside another driver, and not where an earlier driver is held.
  static Json Affinity() {
    const Json others = {{"key", "app.kubernetes.io/component"},
                         {"operator", "In"},
                         {"values", {kDriverComponent, "nvidia-vgpu-manager"}}};
    const Json not_held = {{"key", kHeldLabel}, {"operator", "DoesNotExist"}};
    const char* required = "requiredDuringSchedulingIgnoredDuringExecution";
    return {
        {"podAntiAffinity",
         {{required, Json::array({{{"labelSelector", {{"matchExpressions", Json::array({others})}}},
                                   {"topologyKey", "kubernetes.io/hostname"}}})}}},
        {"nodeAffinity",
         {{required,
           {{"nodeSelectorTerms",
             Json::array({{{"matchExpressions", Json::array({not_held})}}})}}}}}};
  }

  Json Tolerations() {
    Json tolerations = Part(driver_.tolerations, "tolerations", Json::value_t::array);
    if (tolerations.is_null()) tolerations = Json::array();
    const Json usual = {
        {"key", "nvidia.com/gpu"}, {"operator", "Exists"}, {"effect", "NoSchedule"}};
    if (std::find(tolerations.begin(), tolerations.end(), usual) == tolerations.end())
      tolerations.push_back(usual);
    for (const std::string& key : installation_.startup_taints)
      tolerations.push_back({{"key", key}, {"operator", "Exists"}});
    return tolerations;
  }

  Json PullSecrets() const {
    Json secrets = Json::array();
    for (const auto* names : {&driver_.image.pull_secrets, &installation_.pull_secrets})
      for (const std::string& name : *names) secrets.push_back({{"name", name}});
    return secrets;
  }

  /// Variables that both containers and the digest have.
  Json CommonVariables() const {
    Json variables = Json::array({Variable("NVIDIA_VISIBLE_DEVICES", "void"),
                                  FieldVariable("NODE_NAME", "spec.nodeName"),
                                  Variable(api::compat::kConfigDigest, digest_)});
    if (driver_.peer_memory) variables.push_back(Variable("GPU_DIRECT_RDMA_ENABLED", "true"));
    if (driver_.host_network_driver) variables.push_back(Variable("USE_HOST_MOFED", "true"));
    return variables;
  }

  /// A variable that the user sets replaces ours: a server refuses two of one name.
  static void Add(Json& variables, const std::vector<std::pair<std::string, std::string>>& more) {
    for (const auto& [name, value] : more) {
      const auto same = [&name](const Json& one) { return one["name"] == name; };
      variables.erase(std::remove_if(variables.begin(), variables.end(), same), variables.end());
      variables.push_back(Variable(name, value));
    }
  }

  /// It unloads the driver that is there, unless that is the same, and says who uses it.
  Json PrepareContainer() const {
    Json variables = CommonVariables();
    variables.push_back(FieldVariable("OPERATOR_NAMESPACE", "metadata.namespace"));
    Add(variables, driver_.prepare_environment);
    return {{"name", "k8s-driver-manager"},
            {"image", installation_.image},
            {"imagePullPolicy", installation_.pull_policy},
            {"command", {"penstock", "driver", "prepare"}},
            {"env", std::move(variables)},
            {"securityContext", {{"privileged", true}}},
            {"terminationMessagePolicy", "FallbackToLogsOnError"},
            {"volumeMounts", volumes_.prepare_mounts}};
  }

  Json Container(std::string_view name, const char* argument) const {
    return {{"name", name},
            {"image", image_},
            {"imagePullPolicy",
             driver_.image.pull_policy.empty() ? "IfNotPresent" : driver_.image.pull_policy},
            {"command", {"nvidia-driver"}},
            {"args", Json::array({argument})},
            {"securityContext", {{"privileged", true}, {"seLinuxOptions", {{"level", "s0"}}}}}};
  }

  Json Containers() {
    Json containers = Json::array({MainContainer()});
    if (driver_.peer_memory) containers.push_back(PeerContainer());
    if (Json resources = Part(driver_.resources, "resources", Json::value_t::object);
        !resources.is_null())
      for (Json& one : containers) one["resources"] = resources;
    return containers;
  }

  Json MainContainer() {
    Json container = Container(kDriverContainer, "init");
    for (const std::string& argument : driver_.arguments) container["args"].push_back(argument);
    container["env"] = MainVariables();
    container["volumeMounts"] = volumes_.driver_mounts;
    if (!driver_.files.variables.empty())
      container["envFrom"] = Json::array({{{"secretRef", {{"name", driver_.files.variables}}}}});
    container["lifecycle"]["preStop"] = ShellOf("rm -f /run/nvidia/validations/.driver-ctr-ready");
    // A driver that is there is seen within seconds; one that is compiled has an hour.
    Json startup = ShellOf(kStartupScript);
    startup.update({{"periodSeconds", 5}, {"timeoutSeconds", 60}, {"failureThreshold", 720}});
    if (Json probe = Part(driver_.startup_probe, "startupProbe", Json::value_t::object);
        !probe.is_null())
      startup.update(probe);
    container["startupProbe"] = std::move(startup);
    AddProbe(container, "livenessProbe", driver_.liveness_probe);
    AddProbe(container, "readinessProbe", driver_.readiness_probe);
    return container;
  }

  void AddProbe(Json& container, const char* name, const KubeJson& part) {
    Json times = Part(part, name, Json::value_t::object);
    if (times.is_null()) return;
    Json probe = ShellOf("nvidia-smi");
    probe.update(times);
    container[name] = std::move(probe);
  }

  Json MainVariables() const {
    Json variables = CommonVariables();
    variables.push_back(FieldVariable("NODE_IP", "status.hostIP"));
    if (!driver_.precompiled) {
      variables.push_back(Variable("KERNEL_MODULE_TYPE", driver_.module_type));
      if (driver_.module_type == "open")
        variables.push_back(Variable("OPEN_KERNEL_MODULES_ENABLED", "true"));
    }
    Add(variables, driver_.environment);
    return variables;
  }

  Json PeerContainer() const {
    Json container = Container("nvidia-peermem-ctr", "reload_nvidia_peermem");
    container["env"] = Json::array({Variable("NVIDIA_VISIBLE_DEVICES", "void")});
    if (driver_.host_network_driver) container["env"].push_back(Variable("USE_HOST_MOFED", "true"));
    container["volumeMounts"] = volumes_.peer_mounts;
    Json probe = ShellOf("nvidia-driver probe_nvidia_peermem");
    probe.update({{"periodSeconds", 10}, {"timeoutSeconds", 10}, {"failureThreshold", 120}});
    container["startupProbe"] = probe;
    probe.update({{"periodSeconds", 30}, {"failureThreshold", 1}});
    container["livenessProbe"] = std::move(probe);
    return container;
  }

  /// Of everything that decides about what is installed; not of what only concerns the pod.
  std::string Digest() const {
    const api::DriverFiles& files = driver_.files;
    const Json installed = {
        image_,
        driver_.type,
        driver_.module_type,
        pool_.kernel,
        driver_.arguments,
        driver_.environment,
        driver_.peer_memory,
        driver_.host_network_driver,
        {files.repositories, files.certificates, files.module_options, files.variables},
        installation_.driver_root};
    return HashText(base::JsonText(installed));
  }

  const DriverSpec& driver_;
  const DriverPool& pool_;
  const DriverInstallation& installation_;
  std::vector<std::string> problems_;
  std::string image_, digest_;
  DriverVolumes volumes_;
};

Json PreviousIn(const Json& daemon_set) {
  const auto annotations = TextsAt(daemon_set, "/metadata/annotations");
  const auto found = annotations.find(std::string(kPreviousAnnotation));
  if (found == annotations.end()) return nullptr;
  Json previous = base::ParseJson<Json>(found->second);
  return previous.is_object() ? previous : Json();
}

std::string TemplateHash(const Json& pod_template) {
  const auto annotations = TextsAt(pod_template, "/metadata/annotations");
  const auto found = annotations.find(std::string(kTemplateAnnotation));
  return found == annotations.end() ? "" : found->second;
}

}  // namespace

Result<Json> DriverDaemonSet(const DriverSpec& driver, const DriverPool& pool,
                             const DriverInstallation& installation) {
  DriverPodTemplate pods(driver, pool, installation);
  ASSIGN(Json pod_template, pods.Make());
  const std::string hash = TemplateHash(pod_template);
  Json labels = pods.Labels();
  labels[std::string(kManagedBy)] = kManager;
  const std::string name = DaemonSetName(driver, pool);
  return Json{{"apiVersion", "apps/v1"},
              {"kind", "DaemonSet"},
              {"metadata",
               {{"name", name},
                {"namespace", installation.namespace_name},
                {"labels", std::move(labels)},
                {"annotations", {{std::string(api::compat::kLastAppliedHash), hash}}}}},
              {"spec",
               {{"selector",
                 {{"matchLabels", {{std::string(kPoolLabel), name}}},
                  {"matchExpressions",
                   Json::array({{{"key", kHeldLabel}, {"operator", "DoesNotExist"}}})}}},
                {"updateStrategy", {{"type", "OnDelete"}}},
                {"template", std::move(pod_template)}}}};
}

std::string TemplateOf(const Json& daemon_set) {
  const Json* pod_template = Find(daemon_set, "/spec/template");
  return pod_template == nullptr ? "" : TemplateHash(*pod_template);
}

std::string ConfigDigestOf(const Json& object) {
  for (const char* list : {"/spec/template/spec/containers", "/spec/containers"}) {
    const Json* containers = Find(object, list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (const Json& container : *containers) {
      const Json* variables = Find(container, "/env");
      if (TextAt(container, "/name") != kDriverContainer || variables == nullptr ||
          !variables->is_array())
        continue;
      for (const Json& one : *variables)
        if (TextAt(one, "/name") == api::compat::kConfigDigest) return TextAt(one, "/value");
    }
  }
  return "";
}

void KeepPrevious(Json& wanted, const Json& found, bool worked) {
  Json kept = PreviousIn(found);
  const Json* pod_template = Find(found, "/spec/template");
  if (worked && pod_template != nullptr && TemplateOf(found) != TemplateOf(wanted))
    kept = *pod_template;
  if (kept.is_null() || TemplateHash(kept) == TemplateOf(wanted)) return;
  wanted["metadata"]["annotations"][std::string(kPreviousAnnotation)] = base::JsonText(kept);
}

std::string PreviousOf(const Json& daemon_set) { return TemplateHash(PreviousIn(daemon_set)); }

std::optional<Json> HeldDaemonSet(const Json& daemon_set) {
  Json pod_template = PreviousIn(daemon_set);
  const std::string hash = TemplateHash(pod_template);
  if (hash.empty()) return std::nullopt;
  constexpr std::size_t kMost = 63;
  const std::string pool = TextAt(daemon_set, "/metadata/name");
  const std::string ending = "-" + hash.substr(0, 10);
  const std::string held(kHeldLabel);
  Json held_set = daemon_set;
  Json& metadata = held_set["metadata"];
  metadata["name"] = pool.substr(0, kMost - ending.size()) + ending;
  metadata["labels"][held] = hash;
  metadata["annotations"] = {{std::string(api::compat::kLastAppliedHash), hash}};
  pod_template["metadata"]["labels"][held] = hash;
  pod_template["spec"]["nodeSelector"][held] = hash;
  pod_template["spec"]["affinity"].erase("nodeAffinity");
  held_set["spec"]["selector"] = {{"matchLabels", {{std::string(kPoolLabel), pool}, {held, hash}}}};
  held_set["spec"]["template"] = std::move(pod_template);
  return held_set;
}

}  // namespace penstock::cluster
