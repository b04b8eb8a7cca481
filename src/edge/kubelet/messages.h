// Between the messages of the device plugin and pod-resources APIs and this room's structs; what the kubelet sends is checked here. Pure.
// Private to this room: includes generated code, so for .cc files only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "deviceplugin.pb.h"
#include "edge/kubelet/device_plugin.h"
#include "edge/kubelet/pod_resources.h"
#include "podresources.pb.h"

namespace penstock::edge::kubelet {

/// The ids of a request, checked against the list (sorted by id) and sorted. kInvalidArgument: empty or repeated ids, also of two
/// containers, none at all; kNotFound: one that is not in the list. Messages say what to do, since they become the pod's event.
base::Result<AllocateRequest> ReadRequest(const v1beta1::AllocateRequest& message, const std::vector<PluginDevice>& devices,
                                          const std::string& resource);

PreferRequest ReadRequest(const v1beta1::PreferredAllocationRequest& message);

/// One response for each container. kInternal where there are not as many, or a text is no UTF-8, which the kubelet could not read.
base::Status WriteEdits(const std::vector<ContainerEdits>& edits, std::size_t containers, v1beta1::AllocateResponse& response);

/// One response for each container; empty for those without a preference.
void WritePreference(const std::vector<std::vector<std::string>>& preferred, std::size_t containers,
                     v1beta1::PreferredAllocationResponse& response);

void WriteDevices(const std::vector<PluginDevice>& devices, v1beta1::ListAndWatchResponse& response);

/// The kubelet has an entry for each device or NUMA node; here is one for each container and resource (PodResources::List).
std::vector<PodDevices> ReadPods(const v1::ListPodResourcesResponse& response);

/// Resource → ids, each once, sorted (PodResources::GetAllocatable).
std::map<std::string, std::vector<std::string>> ReadAllocatable(const v1::AllocatableResourcesResponse& response);

/// Ids as they can be published: sorted, each once (the first counts), those left out that are empty or no UTF-8.
std::vector<PluginDevice> Normalize(std::vector<PluginDevice> devices);

}  // namespace penstock::edge::kubelet
