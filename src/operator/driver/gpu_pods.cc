#include "operator/driver/gpu_pods.h"

#include <algorithm>

#include "api/cluster/label_selector.h"
#include "api/compat/nvidia/driver_names.h"
#include "operator/json_values.h"

namespace penstock::cluster {
namespace {

constexpr const char* kContainerLists[] = {"containers", "initContainers"};

std::string PodNameOf(const Json& pod) {
  return TextAt(pod, "/metadata/namespace") + "/" + TextAt(pod, "/metadata/name");
}

bool HasEnded(const Json& pod) {
  const std::string phase = TextAt(pod, "/status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

/// Zero of a resource is none of it.
bool IsSomething(const Json& quantity) {
  return quantity.is_number() ? quantity != 0 : quantity.is_string() && quantity != "0";
}

std::string ResourceOf(const Json& container) {
  for (const char* list : {"/resources/limits", "/resources/requests"}) {
    const Json* resources = Find(container, list);
    if (resources == nullptr || !resources->is_object()) continue;
    for (const auto& [name, quantity] : resources->items())
      if (api::compat::IsGpuResource(name) && IsSomething(quantity)) return name;
  }
  return "";
}

std::string ClaimOf(const Json& pod, const DeviceClaims& claims) {
  const std::string name_space = TextAt(pod, "/metadata/namespace") + "/";
  const auto holds = [&](const std::string& claim) { return claims.contains(name_space + claim); };
  for (const Json& claim : ListAt(pod, "/spec/resourceClaims"))
    if (const std::string name = TextAt(claim, "/resourceClaimName"); holds(name))
      return "claim " + name;
  for (const Json& status : ListAt(pod, "/status/resourceClaimStatuses"))
    if (const std::string name = TextAt(status, "/resourceClaimName"); holds(name))
      return "claim " + name;
  return "";
}

/// "DaemonSet", "ReplicaSet", of the controller; "Node" for the kubelet's own pods.
std::string ControllerOf(const Json& pod) {
  for (const Json& owner : ListAt(pod, "/metadata/ownerReferences"))
    if (const Json* controller = Find(owner, "/controller");
        controller != nullptr && *controller == true)
      return TextAt(owner, "/kind");
  return "";
}

bool HasEmptyDir(const Json& pod) {
  return std::ranges::any_of(ListAt(pod, "/spec/volumes"), [](const Json& volume) {
    return volume.is_object() && volume.contains("emptyDir");
  });
}

bool IsMirror(const Json& pod) {
  return TextsAt(pod, "/metadata/annotations").contains("kubernetes.io/config.mirror");
}

HoldingPod HoldingPodOf(const Json& pod, std::string holds) {
  HoldingPod holding;
  holding.name = PodNameOf(pod);
  holding.uid = TextAt(pod, "/metadata/uid");
  holding.holds = std::move(holds);
  holding.labels = TextsAt(pod, "/metadata/labels");
  const auto skip = holding.labels.find(std::string(api::compat::kDrainSkipLabel));
  holding.skipped = skip != holding.labels.end() && skip->second == "true";
  holding.terminating = !TextAt(pod, "/metadata/deletionTimestamp").empty();
  const std::string controller = ControllerOf(pod);
  holding.restarted = controller == "DaemonSet" || IsMirror(pod);
  holding.unmanaged = controller.empty();
  holding.has_empty_dir = HasEmptyDir(pod);
  return holding;
}

std::string ValueOr(const std::map<std::string, std::string>& texts, const std::string& key) {
  const auto found = texts.find(key);
  return found == texts.end() ? "" : found->second;
}

void Keep(Json& kept, const Json& from, const std::string& pointer) {
  if (const Json* found = Find(from, pointer)) kept[Json::json_pointer(pointer)] = *found;
}

Json ReducedContainers(const Json& pod, const char* list) {
  Json kept = Json::array();
  for (const Json& container : ListAt(pod, std::string("/spec/") + list)) {
    const std::string resource = ResourceOf(container);
    if (!resource.empty()) kept.push_back({{"resources", {{"limits", {{resource, "1"}}}}}});
  }
  return kept;
}

}  // namespace

bool HoldsDevices(const Json& claim) {
  return std::ranges::any_of(ListAt(claim, "/status/allocation/devices/results"),
                             [](const Json& device) {
                               const Json* admin = Find(device, "/adminAccess");
                               return TextAt(device, "/driver") == api::compat::kClaimDriver &&
                                      (admin == nullptr || *admin != true);
                             });
}

Json ReducedPod(const Json& pod) {
  Json kept = Json::object();
  for (const char* pointer :
       {"/metadata/namespace", "/metadata/name", "/metadata/uid", "/metadata/labels",
        "/metadata/deletionTimestamp", "/metadata/ownerReferences", "/spec/nodeName",
        "/spec/resourceClaims", "/status/phase", "/status/resourceClaimStatuses"})
    Keep(kept, pod, pointer);
  if (IsMirror(pod)) kept["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "";
  if (HasEmptyDir(pod)) kept["spec"]["volumes"] = Json::array({{{"emptyDir", Json::object()}}});
  for (const char* list : kContainerLists)
    if (Json containers = ReducedContainers(pod, list); !containers.empty())
      kept["spec"][list] = std::move(containers);
  return kept;
}

std::string DevicesOf(const Json& pod, const DeviceClaims& claims) {
  if (HasEnded(pod)) return "";
  for (const char* list : kContainerLists)
    for (const Json& container : ListAt(pod, std::string("/spec/") + list))
      if (std::string resource = ResourceOf(container); !resource.empty()) return resource;
  return ClaimOf(pod, claims);
}

std::vector<HoldingPod> HoldingPods(const std::vector<Json>& pods_of_node,
                                    const DeviceClaims& claims,
                                    const std::map<std::string, std::string>& refused) {
  std::vector<HoldingPod> holding;
  for (const Json& pod : pods_of_node) {
    std::string holds = DevicesOf(pod, claims);
    if (holds.empty()) continue;
    holding.push_back(HoldingPodOf(pod, std::move(holds)));
    holding.back().refused = ValueOr(refused, TextAt(pod, "/metadata/uid"));
  }
  std::ranges::sort(holding, {}, &HoldingPod::name);
  return holding;
}

Result<std::vector<std::string>> RunningPods(const std::vector<Json>& pods_of_node,
                                             const std::string& selector) {
  ASSIGN(const api::LabelSelector wanted, api::LabelSelector::Parse(selector));
  std::vector<std::string> names;
  if (wanted.empty()) return names;
  for (const Json& pod : pods_of_node)
    if (!HasEnded(pod) && wanted.Matches(TextsAt(pod, "/metadata/labels")))
      names.push_back(PodNameOf(pod));
  std::ranges::sort(names);
  return names;
}

}  // namespace penstock::cluster
