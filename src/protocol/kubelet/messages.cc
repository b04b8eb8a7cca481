#include "protocol/kubelet/messages.h"

#include <algorithm>
#include <tuple>

#include "base/core/strings.h"

namespace penstock::protocol::kubelet {
namespace {

template <typename Ids>
std::vector<std::string> Sorted(const Ids& ids) {
  std::vector<std::string> sorted(ids.begin(), ids.end());
  std::ranges::sort(sorted);
  return sorted;
}

base::Status Check(const std::vector<std::string>& ids, const std::vector<PluginDevice>& devices,
                   const std::string& resource) {
  if (ids.empty())
    return Error(Code::kInvalidArgument,
                 "the kubelet requested no device of " + resource + " for a container");
  if (ids.front().empty())
    return Error(Code::kInvalidArgument,
                 "the kubelet requested a device of " + resource + " with an empty id");
  if (const auto twice = std::ranges::adjacent_find(ids); twice != ids.end()) {
    return Error(Code::kInvalidArgument,
                 "the kubelet requested " + *twice + " twice for one container");
  }
  for (const auto& id : ids) {
    const auto found =
        std::lower_bound(devices.begin(), devices.end(), id,
                         [](const auto& device, const auto& key) { return device.id < key; });
    if (found == devices.end() || found->id != id) {
      return Error(Code::kNotFound, id + " is no longer a device of " + resource +
                                        " on this node; delete the pod so that it is scheduled "
                                        "again; `penstock status` on the node lists the devices");
    }
  }
  return {};
}

base::Status CheckTexts(const ContainerEdits& edits) {
  const auto check = [](const std::string& text) -> base::Status {
    if (base::IsUtf8(text)) return {};
    return Error(
        Code::kInternal,
        "the device's edits contain text that is not UTF-8, which the kubelet cannot read");
  };
  for (const auto& [key, value] : edits.environment) TRY(check(key + value));
  for (const auto& [key, value] : edits.annotations) TRY(check(key + value));
  for (const auto& mount : edits.mounts) TRY(check(mount.container_path + mount.host_path));
  for (const auto& file : edits.files)
    TRY(check(file.container_path + file.host_path + file.permissions));
  for (const auto& name : edits.cdi_devices) TRY(check(name));
  return {};
}

void SortUnique(std::vector<std::string>& ids) {
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

void Write(const ContainerEdits& edits, v1beta1::ContainerAllocateResponse& response) {
  for (const auto& [key, value] : edits.environment) (*response.mutable_envs())[key] = value;
  for (const auto& [key, value] : edits.annotations) (*response.mutable_annotations())[key] = value;
  for (const auto& mount : edits.mounts) {
    auto* message = response.add_mounts();
    message->set_container_path(mount.container_path);
    message->set_host_path(mount.host_path);
    message->set_read_only(mount.read_only);
  }
  for (const auto& file : edits.files) {
    auto* message = response.add_devices();
    message->set_container_path(file.container_path);
    message->set_host_path(file.host_path);
    message->set_permissions(file.permissions);
  }
  for (const auto& name : edits.cdi_devices) response.add_cdi_devices()->set_name(name);
}

}  // namespace

base::Result<AllocateRequest> ReadRequest(const v1beta1::AllocateRequest& message,
                                          const std::vector<PluginDevice>& devices,
                                          const std::string& resource) {
  AllocateRequest request;
  std::vector<std::string> all;
  for (const auto& container : message.container_requests()) {
    auto ids = Sorted(container.devices_ids());
    TRY(Check(ids, devices, resource));
    all.insert(all.end(), ids.begin(), ids.end());
    request.containers.push_back(std::move(ids));
  }
  std::ranges::sort(all);
  if (const auto twice = std::ranges::adjacent_find(all); twice != all.end())
    return Error(Code::kInvalidArgument, "the kubelet requested " + *twice + " for two containers");
  return request;
}

PreferRequest ReadRequest(const v1beta1::PreferredAllocationRequest& message) {
  PreferRequest request;
  for (const auto& container : message.container_requests()) {
    request.containers.push_back({Sorted(container.available_deviceids()),
                                  Sorted(container.must_include_deviceids()),
                                  container.allocation_size()});
  }
  return request;
}

base::Status WriteEdits(const std::vector<ContainerEdits>& edits, std::size_t containers,
                        v1beta1::AllocateResponse& response) {
  if (edits.size() != containers) {
    return Error(Code::kInternal, "edits for " + std::to_string(edits.size()) +
                                      " containers where " + std::to_string(containers) +
                                      " were requested");
  }
  for (const auto& container : edits) TRY(CheckTexts(container));
  for (const auto& container : edits) Write(container, *response.add_container_responses());
  return {};
}

void WritePreference(const std::vector<std::vector<std::string>>& preferred, std::size_t containers,
                     v1beta1::PreferredAllocationResponse& response) {
  for (std::size_t i = 0; i < containers; ++i) {
    auto* message = response.add_container_responses();
    if (preferred.size() != containers) continue;
    for (const auto& id : preferred[i]) message->add_deviceids(id);
  }
}

void WriteDevices(const std::vector<PluginDevice>& devices,
                  v1beta1::ListAndWatchResponse& response) {
  response.mutable_devices()->Reserve(static_cast<int>(devices.size()));
  for (const auto& device : devices) {
    auto* message = response.add_devices();
    message->set_id(device.id);
    message->set_health(device.healthy ? "Healthy" : "Unhealthy");
    for (const int node : device.numa_nodes) message->mutable_topology()->add_nodes()->set_id(node);
  }
}

std::vector<PodDevices> ReadPods(const v1::ListPodResourcesResponse& response) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::vector<std::string>>
      folded;
  for (const auto& pod : response.pod_resources()) {
    for (const auto& container : pod.containers()) {
      for (const auto& devices : container.devices()) {
        auto& ids =
            folded[{pod.namespace_(), pod.name(), container.name(), devices.resource_name()}];
        ids.insert(ids.end(), devices.device_ids().begin(), devices.device_ids().end());
      }
    }
  }
  std::vector<PodDevices> list;
  for (auto& [key, ids] : folded) {
    SortUnique(ids);
    const auto& [namespace_name, pod, container, resource] = key;
    list.push_back({namespace_name, pod, container, resource, std::move(ids)});
  }
  return list;
}

std::map<std::string, std::vector<std::string>> ReadAllocatable(
    const v1::AllocatableResourcesResponse& response) {
  std::map<std::string, std::vector<std::string>> allocatable;
  for (const auto& devices : response.devices()) {
    auto& ids = allocatable[devices.resource_name()];
    ids.insert(ids.end(), devices.device_ids().begin(), devices.device_ids().end());
  }
  for (auto& [resource, ids] : allocatable) SortUnique(ids);
  return allocatable;
}

std::vector<PluginDevice> Normalize(std::vector<PluginDevice> devices) {
  std::erase_if(devices, [](const PluginDevice& device) {
    return device.id.empty() || !base::IsUtf8(device.id);
  });
  std::ranges::stable_sort(devices,
                           [](const auto& one, const auto& other) { return one.id < other.id; });
  const auto same = [](const auto& one, const auto& other) { return one.id == other.id; };
  devices.erase(std::unique(devices.begin(), devices.end(), same), devices.end());
  return devices;
}

}  // namespace penstock::protocol::kubelet
