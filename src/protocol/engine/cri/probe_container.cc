#include "protocol/engine/cri/probe_container.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"
#include "os/loop.h"
#include "protocol/rpc/calls.h"
#include "runtime.grpc.pb.h"

namespace penstock::protocol::engine::cri {
namespace {

namespace v1 = ::runtime::v1;

constexpr base::Duration kRemoval = std::chrono::seconds(30);
constexpr auto kPause = std::chrono::milliseconds(
    20);  // between looks at a container; older engines report its end in no other way
constexpr char kName[] = "penstock-proof";
constexpr char kLog[] = "log";

// The method that takes this type of request.
using Methods = v1::RuntimeService::StubInterface::async_interface;
using Context = grpc::ClientContext;
using Done = std::function<void(grpc::Status)>;

void Call(Methods* methods, Context* context, const v1::RunPodSandboxRequest* request,
          v1::RunPodSandboxResponse* response, Done done) {
  methods->RunPodSandbox(context, request, response, std::move(done));
}
void Call(Methods* methods, Context* context, const v1::RemovePodSandboxRequest* request,
          v1::RemovePodSandboxResponse* response, Done done) {
  methods->RemovePodSandbox(context, request, response, std::move(done));
}
void Call(Methods* methods, Context* context, const v1::CreateContainerRequest* request,
          v1::CreateContainerResponse* response, Done done) {
  methods->CreateContainer(context, request, response, std::move(done));
}
void Call(Methods* methods, Context* context, const v1::StartContainerRequest* request,
          v1::StartContainerResponse* response, Done done) {
  methods->StartContainer(context, request, response, std::move(done));
}
void Call(Methods* methods, Context* context, const v1::ContainerStatusRequest* request,
          v1::ContainerStatusResponse* response, Done done) {
  methods->ContainerStatus(context, request, response, std::move(done));
}

/// Makes one call and waits for its result.
template <typename Response, typename Request>
Result<Response> CallNow(const std::string& socket, Request request, base::Duration within) {
  os::Loop loop("cri");
  Result<Response> result = Error(Code::kCancelled, "not queried");
  rpc::Calls calls(loop);
  calls.Call<v1::RuntimeService, Response>(
      socket, std::move(request), within,
      [](auto* methods, auto* context, const auto* sent, auto* response, auto finished) {
        Call(methods, context, sent, response, Done(std::move(finished)));
      },
      [&](Result<Response> answer) {
        result = std::move(answer);
        loop.Stop();
      });
  loop.Run();
  return result;
}

class Pod {
 public:
  Pod(const ProbeContainer& container, base::Duration within, std::string folder)
      : container_(container), deadline_(clock_.Now() + within), folder_(std::move(folder)) {}

  ~Pod() {
    if (id_.empty()) return;
    v1::RemovePodSandboxRequest request;
    request.set_pod_sandbox_id(id_);
    (void)CallNow<v1::RemovePodSandboxResponse>(container_.socket, std::move(request), kRemoval);
  }
  Pod(const Pod&) = delete;
  Pod& operator=(const Pod&) = delete;

  Result<std::string> Run() {
    TRY(Start());
    ASSIGN(const std::string container, CreateContainer());
    v1::StartContainerRequest start;
    start.set_container_id(container);
    ASSIGN([[maybe_unused]] const auto started,
           CallNow<v1::StartContainerResponse>(container_.socket, std::move(start), Left()));
    ASSIGN(const v1::ContainerStatus status, WaitForEnd(container));
    const std::string output = OutputOfLog(os::ReadFile(folder_ + "/" + kLog).value_or(""));
    if (status.exit_code() == 0) return output;
    return Error(Code::kUnknown, container_.command.front() + " ended with status " +
                                     std::to_string(status.exit_code()) +
                                     (status.message().empty() ? "" : ": " + status.message()));
  }

 private:
  base::Duration Left() const {
    return std::max<base::Duration>(deadline_ - clock_.Now(), std::chrono::milliseconds(1));
  }

  v1::PodSandboxConfig PodConfig() const {
    v1::PodSandboxConfig config;
    config.mutable_metadata()->set_name(kName);
    config.mutable_metadata()->set_uid(kName + std::to_string(::getpid()));
    config.mutable_metadata()->set_namespace_(kName);
    config.set_log_directory(folder_);
    // A network of its own would require a working CNI plugin, which this container does not need.
    config.mutable_linux()->mutable_security_context()->mutable_namespace_options()->set_network(
        v1::NODE);
    return config;
  }

  base::Status Start() {
    v1::RunPodSandboxRequest request;
    *request.mutable_config() = PodConfig();
    ASSIGN(const auto sandbox,
           CallNow<v1::RunPodSandboxResponse>(container_.socket, std::move(request), Left()));
    id_ = sandbox.pod_sandbox_id();
    return {};
  }

  Result<std::string> CreateContainer() const {
    v1::CreateContainerRequest request;
    request.set_pod_sandbox_id(id_);
    *request.mutable_sandbox_config() = PodConfig();
    v1::ContainerConfig& config = *request.mutable_config();
    config.mutable_metadata()->set_name(kName);
    config.mutable_image()->set_image(container_.image);
    config.set_log_path(kLog);
    config.mutable_linux()->mutable_security_context()->mutable_namespace_options()->set_network(
        v1::NODE);
    for (const std::string& word : container_.command) config.add_command(word);
    for (const std::string& device : container_.cdi_devices)
      config.add_cdi_devices()->set_name(device);
    v1::Mount& mount = *config.add_mounts();
    mount.set_container_path(container_.command.front());
    mount.set_host_path(container_.program);
    mount.set_readonly(true);
    ASSIGN(const auto container,
           CallNow<v1::CreateContainerResponse>(container_.socket, std::move(request), Left()));
    return container.container_id();
  }

  Result<v1::ContainerStatus> WaitForEnd(const std::string& container) const {
    while (clock_.Now() < deadline_) {
      v1::ContainerStatusRequest request;
      request.set_container_id(container);
      ASSIGN(const auto answer,
             CallNow<v1::ContainerStatusResponse>(container_.socket, std::move(request), Left()));
      if (answer.status().state() == v1::CONTAINER_EXITED) return answer.status();
      std::this_thread::sleep_for(kPause);
    }
    return Error(Code::kDeadlineExceeded, "the container did not exit in time");
  }

  const ProbeContainer& container_;
  const base::SystemClock clock_;
  const base::TimePoint deadline_;
  const std::string folder_;  // where the engine writes the container's output
  std::string id_;            // empty until the pod exists
};

}  // namespace

base::Result<std::string> RunContainer(const ProbeContainer& container, base::Duration within) {
  std::string folder = (std::filesystem::temp_directory_path() / "penstock-proof-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr)
    return base::ErrnoError(errno, "create a folder for the container's output");
  auto output = Pod(container, within, folder).Run();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return output;
}

std::string OutputOfLog(std::string_view log) {
  std::string output;
  for (const std::string& line : base::Split(log, '\n')) {
    const auto stream = line.find(' ');
    const auto tag = stream == std::string::npos ? stream : line.find(' ', stream + 1);
    const auto text = tag == std::string::npos ? tag : line.find(' ', tag + 1);
    if (text == std::string::npos || line.substr(stream + 1, tag - stream - 1) != "stdout")
      continue;
    output += line.substr(text + 1);
    if (!line.substr(tag + 1, text - tag - 1).starts_with("P")) output += '\n';
  }
  return output;
}

}  // namespace penstock::protocol::engine::cri
