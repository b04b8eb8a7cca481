// Folds the kubelet's many small entries (one for each device or NUMA node) into one for each container and resource.
#include "edge/kubelet/pod_resources.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "edge/rpc/calls.h"
#include "podresources.grpc.pb.h"

namespace penstock::edge::kubelet {
namespace {

using Allocatable = std::map<std::string, std::vector<std::string>>;

void SortUnique(std::vector<std::string>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

std::vector<PodDevices> Fold(const v1::ListPodResourcesResponse& response) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::vector<std::string>> folded;
  for (const auto& pod : response.pod_resources()) {
    for (const auto& container : pod.containers()) {
      for (const auto& devices : container.devices()) {
        auto& ids = folded[{pod.namespace_(), pod.name(), container.name(), devices.resource_name()}];
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

Allocatable Fold(const v1::AllocatableResourcesResponse& response) {
  Allocatable allocatable;
  for (const auto& devices : response.devices()) {
    auto& ids = allocatable[devices.resource_name()];
    ids.insert(ids.end(), devices.device_ids().begin(), devices.device_ids().end());
  }
  for (auto& [resource, ids] : allocatable) SortUnique(ids);
  return allocatable;
}

}  // namespace

struct PodResources::Impl {
  Impl(base::Executor& executor, const std::string& kubelet_dir, base::Duration its_within)
      : socket(kubelet_dir + "/pod-resources/kubelet.sock"), within(its_within), calls(executor) {}

  /// Calls with an empty request and hands on the answer, folded.
  template <typename Request, typename Response, typename Folded, typename Start>
  void Ask(Start start, std::function<void(base::Result<Folded>)> done) {
    calls.Call<v1::PodResourcesLister, Response>(socket, Request(), within, start,
                                                 [done = std::move(done), where = socket](base::Result<Response> response) {
                                                   if (response.ok()) return done(Fold(*response));
                                                   done(response.error().Within("ask the kubelet at " + where));
                                                 });
  }

  const std::string socket;
  const base::Duration within;
  rpc::Calls calls;
};

PodResources::PodResources(base::Executor& executor, const std::string& kubelet_dir, base::Duration within)
    : impl_(std::make_unique<Impl>(executor, kubelet_dir, within)) {}

PodResources::~PodResources() = default;

void PodResources::List(std::function<void(base::Result<std::vector<PodDevices>>)> done) {
  impl_->Ask<v1::ListPodResourcesRequest, v1::ListPodResourcesResponse, std::vector<PodDevices>>(
      [](auto* stub, auto* context, const auto* request, auto* response, auto finished) {
        stub->List(context, request, response, std::function<void(grpc::Status)>(std::move(finished)));
      },
      std::move(done));
}

void PodResources::GetAllocatable(std::function<void(base::Result<Allocatable>)> done) {
  impl_->Ask<v1::AllocatableResourcesRequest, v1::AllocatableResourcesResponse, Allocatable>(
      [](auto* stub, auto* context, const auto* request, auto* response, auto finished) {
        stub->GetAllocatableResources(context, request, response, std::function<void(grpc::Status)>(std::move(finished)));
      },
      std::move(done));
}

}  // namespace penstock::edge::kubelet
