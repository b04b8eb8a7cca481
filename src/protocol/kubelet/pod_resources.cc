// Asks over gRPC; messages.cc converts the answers.
#include "protocol/kubelet/pod_resources.h"

#include <utility>

#include "podresources.grpc.pb.h"
#include "protocol/kubelet/messages.h"
#include "protocol/rpc/calls.h"

namespace penstock::protocol::kubelet {
namespace {

using Allocatable = std::map<std::string, std::vector<std::string>>;

std::vector<PodDevices> Read(const v1::ListPodResourcesResponse& response) {
  return ReadPods(response);
}
Allocatable Read(const v1::AllocatableResourcesResponse& response) {
  return ReadAllocatable(response);
}

}  // namespace

struct PodResources::Impl {
  Impl(base::Executor& executor, const std::string& kubelet_dir, base::Duration its_within)
      : socket(kubelet_dir + "/pod-resources/kubelet.sock"), within(its_within), calls(executor) {}

  /// Calls with an empty request and passes the answer on.
  template <typename Request, typename Response, typename Answer, typename Start>
  void Call(Start start, std::function<void(base::Result<Answer>)> done) {
    calls.Call<v1::PodResourcesLister, Response>(
        socket, Request(), within, start,
        [done = std::move(done), where = socket](base::Result<Response> response) {
          if (response.ok()) return done(Read(*response));
          done(response.error().Within("query the kubelet at " + where));
        });
  }

  const std::string socket;
  const base::Duration within;
  rpc::Calls calls;
};

PodResources::PodResources(base::Executor& executor, const std::string& kubelet_dir,
                           base::Duration within)
    : impl_(std::make_unique<Impl>(executor, kubelet_dir, within)) {}

PodResources::~PodResources() = default;

void PodResources::List(std::function<void(base::Result<std::vector<PodDevices>>)> done) {
  impl_->Call<v1::ListPodResourcesRequest, v1::ListPodResourcesResponse, std::vector<PodDevices>>(
      [](auto* stub, auto* context, const auto* request, auto* response, auto finished) {
        stub->List(context, request, response,
                   std::function<void(grpc::Status)>(std::move(finished)));
      },
      std::move(done));
}

void PodResources::GetAllocatable(std::function<void(base::Result<Allocatable>)> done) {
  impl_->Call<v1::AllocatableResourcesRequest, v1::AllocatableResourcesResponse, Allocatable>(
      [](auto* stub, auto* context, const auto* request, auto* response, auto finished) {
        stub->GetAllocatableResources(context, request, response,
                                      std::function<void(grpc::Status)>(std::move(finished)));
      },
      std::move(done));
}

}  // namespace penstock::protocol::kubelet
