// The kubelet's own calls, one after the other. Calls end with their owner, so no step runs after
// the destructor.
#include "protocol/engine/cri/probe_container.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/core/document.h"
#include "base/core/strings.h"
#include "protocol/rpc/calls.h"
#include "runtime.grpc.pb.h"

namespace penstock::protocol::engine::cri {
namespace {

namespace v1 = ::runtime::v1;
using Kind = ProbeAnswer::Kind;

constexpr base::Duration kRemoval = std::chrono::seconds(30);
constexpr base::Duration kFormerRemoval = std::chrono::seconds(5);  // it is tried again each time
constexpr std::size_t kMostStuck = 4;
constexpr std::int64_t kExecSeconds = 20;
constexpr std::int32_t kKilled = 128 + 9;  // the status of a program that SIGKILL ended
constexpr char kName[] = "penstock-proof", kInside[] = "/penstock-probe", kWaits[] = "--wait",
               kLongest[] = "60",  // seconds; by then a container whose caller has gone ends
    kLast[] = "--last";
/// By these labels a kubelet finds the containers of a pod that is no more, which it stops before
/// the pod's sandbox (pkg/kubelet/kuberuntime/labels.go, killPodWithSyncResult). The sandbox itself
/// it finds by its metadata.
constexpr char kPodName[] = "io.kubernetes.pod.name",
               kPodNamespace[] = "io.kubernetes.pod.namespace", kPodUid[] = "io.kubernetes.pod.uid",
               kContainerName[] = "io.kubernetes.container.name";
constexpr char kOwner[] = "penstock.io/proof";               // label of a sandbox
constexpr char kAnnotation[] = "cdi.k8s.io/penstock-proof";  // pkg/cdi/annotations.go: any name
constexpr char kSlice[] = "system.slice", kTopGroup[] = "/";

// The method that takes this type of request.
using Runtime = v1::RuntimeService::StubInterface::async_interface;
using Images = v1::ImageService::StubInterface::async_interface;
using Context = grpc::ClientContext;
using Finished = std::function<void(grpc::Status)>;

void Call(Runtime* methods, Context* context, const v1::StatusRequest* request,
          v1::StatusResponse* response, Finished finished) {
  methods->Status(context, request, response, std::move(finished));
}
void Call(Images* methods, Context* context, const v1::ListImagesRequest* request,
          v1::ListImagesResponse* response, Finished finished) {
  methods->ListImages(context, request, response, std::move(finished));
}
void Call(Runtime* methods, Context* context, const v1::RunPodSandboxRequest* request,
          v1::RunPodSandboxResponse* response, Finished finished) {
  methods->RunPodSandbox(context, request, response, std::move(finished));
}
void Call(Runtime* methods, Context* context, const v1::ListPodSandboxRequest* request,
          v1::ListPodSandboxResponse* response, Finished finished) {
  methods->ListPodSandbox(context, request, response, std::move(finished));
}
void Call(Runtime* methods, Context* context, const v1::RemovePodSandboxRequest* request,
          v1::RemovePodSandboxResponse* response, Finished finished) {
  methods->RemovePodSandbox(context, request, response, std::move(finished));
}
void Call(Runtime* methods, Context* context, const v1::CreateContainerRequest* request,
          v1::CreateContainerResponse* response, Finished finished) {
  methods->CreateContainer(context, request, response, std::move(finished));
}
void Call(Runtime* methods, Context* context, const v1::StartContainerRequest* request,
          v1::StartContainerResponse* response, Finished finished) {
  methods->StartContainer(context, request, response, std::move(finished));
}
void Call(Runtime* methods, Context* context, const v1::ExecSyncRequest* request,
          v1::ExecSyncResponse* response, Finished finished) {
  methods->ExecSync(context, request, response, std::move(finished));
}

/// The image of sandboxes; where the engine does not name it, the smallest of those that it keeps
/// from garbage collection. None where the named one is missing: to start a sandbox, the engine
/// would pull it. By id: a name may get another image later. Which one it is does not matter:
/// nothing of it is executed.
std::string ChooseImage(const v1::ListImagesResponse& list, const std::string& of_sandboxes) {
  const v1::Image* chosen = nullptr;
  for (const v1::Image& image : list.images()) {
    for (const auto* names : {&image.repo_tags(), &image.repo_digests()})
      if (std::ranges::find(*names, of_sandboxes) != names->end()) return image.id();
    if (of_sandboxes.empty() && image.pinned() &&
        (chosen == nullptr || image.size() < chosen->size()))
      chosen = &image;
  }
  return chosen == nullptr ? "" : chosen->id();
}

}  // namespace

class ProbeRun::Steps {
 public:
  Steps(os::Loop& loop, ProbeContainer container, base::Duration within, Done done)
      : loop_(loop),
        container_(std::move(container)),
        within_(within),
        deadline_(loop.clock().Now() + within),
        done_(std::move(done)),
        calls_(loop) {
    v1::StatusRequest request;
    request.set_verbose(true);
    Ask<v1::RuntimeService, v1::StatusResponse>(
        std::move(request), [this](const v1::StatusResponse& status) { ChooseSandbox(status); });
  }

 private:
  /// Goes on with `next` after a success, and ends without a verdict otherwise.
  template <typename Service, typename Response, typename Request, typename Next>
  void Ask(Request request, Next next) {
    Ask<Service, Response>(std::move(request), std::move(next), [this](const base::Error& error) {
      End({Kind::kNotTried, error.message()});
    });
  }

  template <typename Service, typename Response, typename Request, typename Next, typename Failed>
  void Ask(Request request, Next next, Failed failed) {
    AskWithin<Service, Response>(
        std::move(request), Left(),
        [next = std::move(next), failed = std::move(failed)](const base::Result<Response>& answer) {
          if (answer.ok()) return next(*answer);
          failed(answer.error());
        });
  }

  template <typename Service, typename Response, typename Request>
  void AskWithin(Request request, base::Duration within,
                 std::function<void(base::Result<Response>)> answered) {
    calls_.Call<Service, Response>(
        container_.socket, std::move(request), within,
        [](auto* methods, auto* context, const auto* sent, auto* response, auto finished) {
          Call(methods, context, sent, response, Finished(std::move(finished)));
        },
        std::move(answered));
  }

  base::Duration Left() const {
    return std::max<base::Duration>(deadline_ - loop_.clock().Now(), std::chrono::milliseconds(1));
  }

  void ChooseSandbox(const v1::StatusResponse& status) {
    const auto config = status.info().find("config");
    settings_ = SandboxSettingsIn(config == status.info().end() ? "" : config->second,
                                  container_.handler, container_.runtime);
    if (!container_.log_folder.starts_with('/'))
      return End({Kind::kNotTried, "there is no folder for its log: \"" + container_.log_folder +
                                       "\" is no path of the machine"});
    if (!container_.handler.empty() && settings_.handler.empty() && container_.devices.empty())
      return End({Kind::kNotTried, WhyNotHandled(container_)});
    if (!container_.image.empty()) return RemoveFormer();
    Ask<v1::ImageService, v1::ListImagesResponse>(
        v1::ListImagesRequest(), [this](const v1::ListImagesResponse& list) {
          container_.image = ChooseImage(list, settings_.image);
          if (!container_.image.empty()) return RemoveFormer();
          End({Kind::kNotTried, "the engine reports no image of its own to start it from"});
        });
  }

  void RemoveFormer() {
    if (container_.owner == ProbeContainer().owner) return StartSandbox();
    v1::ListPodSandboxRequest request;
    (*request.mutable_filter()->mutable_label_selector())[kOwner] = container_.owner;
    Ask<v1::RuntimeService, v1::ListPodSandboxResponse>(
        std::move(request), [this](const v1::ListPodSandboxResponse& list) {
          for (const v1::PodSandbox& one : list.items()) {
            // An engine that does not know the selector would list all. Labels may be those of a
            // user's pod, its uid is the API server's.
            const auto owner = one.labels().find(kOwner);
            if (owner != one.labels().end() && owner->second == container_.owner &&
                one.metadata().uid().starts_with(kName))
              former_.push_back(one.id());
          }
          RemoveNext();
        });
  }

  /// One that cannot be removed, since a process in it hangs in the kernel, keeps no other from
  /// starting; but each may leave another one.
  void RemoveNext() {
    if (former_.empty()) return StartSandbox();
    v1::RemovePodSandboxRequest request;
    request.set_pod_sandbox_id(former_.back());
    AskWithin<v1::RuntimeService, v1::RemovePodSandboxResponse>(
        std::move(request), kFormerRemoval,
        [this](const base::Result<v1::RemovePodSandboxResponse>& removed) {
          const bool hangs =
              !removed.ok() && removed.error().code() == base::Code::kDeadlineExceeded;
          if (!removed.ok() && !hangs) return End({Kind::kNotTried, removed.error().message()});
          if (hangs) left_.push_back(former_.back());
          former_.pop_back();
          if (left_.size() > kMostStuck)
            return End({Kind::kNotTried, "those that were started before cannot be removed: " +
                                             removed.error().message()});
          RemoveNext();
        });
  }

  v1::PodSandboxConfig SandboxConfig() const {
    v1::PodSandboxConfig config;
    config.mutable_metadata()->set_name(kName);
    config.mutable_metadata()->set_uid(uid_);
    config.mutable_metadata()->set_namespace_(kName);
    config.set_log_directory(container_.log_folder);
    (*config.mutable_labels())[kOwner] = container_.owner;
    config.mutable_linux()->set_cgroup_parent(settings_.cgroup_parent);
    // A network of its own would require a working CNI plugin, which this container does not need.
    config.mutable_linux()->mutable_security_context()->mutable_namespace_options()->set_network(
        v1::NODE);
    return config;
  }

  void StartSandbox() {
    // A kubelet takes the sandbox for that of a pod that is no more, and forgets no such pod.
    uid_ = kName + std::to_string(loop_.clock().Wall().time_since_epoch().count());
    v1::RunPodSandboxRequest request;
    *request.mutable_config() = SandboxConfig();
    request.set_runtime_handler(settings_.handler);
    deadline_ = loop_.clock().Now() + within_;
    Ask<v1::RuntimeService, v1::RunPodSandboxResponse>(
        std::move(request),
        [this](const v1::RunPodSandboxResponse& sandbox) {
          sandbox_ = sandbox.pod_sandbox_id();
          deadline_ = loop_.clock().Now() + within_;
          Create();
        },
        // The program of a handler starts the sandbox, too; that of the engine's default says
        // nothing about devices.
        [this](const base::Error& error) {
          if (settings_.handler.empty()) return End({Kind::kNotTried, error.message()});
          if (!Interrupted(error)) End({Kind::kRefused, error.message()});
        });
  }

  void Create() {
    v1::CreateContainerRequest request;
    request.set_pod_sandbox_id(sandbox_);
    *request.mutable_sandbox_config() = SandboxConfig();
    *request.mutable_config() = Config();
    Ask<v1::RuntimeService, v1::CreateContainerResponse>(
        std::move(request),
        [this](const v1::CreateContainerResponse& made) { Start(made.container_id()); },
        [this](const base::Error& error) { Refused(error); });
  }

  v1::ContainerConfig Config() const {
    v1::ContainerConfig config;
    config.mutable_metadata()->set_name(kName);
    for (const auto& [label, value] : {std::pair<const char*, std::string>{kPodName, kName},
                                       {kPodNamespace, kName},
                                       {kPodUid, uid_},
                                       {kContainerName, kName}})
      (*config.mutable_labels())[label] = value;
    config.mutable_image()->set_image(container_.image);
    config.set_log_path(kProbeLog);
    for (const char* word : {kInside, kWaits, kLongest}) config.add_command(word);
    v1::Mount& mount = *config.add_mounts();
    mount.set_container_path(kInside);
    mount.set_host_path(container_.program);
    mount.set_readonly(true);
    mount.set_selinux_relabel(container_.relabel);
    if (container_.by_annotation && !container_.cdi_devices.empty()) {
      (*config.mutable_annotations())[kAnnotation] = base::Join(container_.cdi_devices, ",");
    } else {
      for (const std::string& device : container_.cdi_devices)
        config.add_cdi_devices()->set_name(device);
    }
    for (const auto& [name, value] : container_.environment) {
      v1::KeyValue& one = *config.add_envs();
      one.set_key(name);
      one.set_value(value);
    }
    for (const ProbeContainer::Device& device : container_.devices) {
      v1::Device& one = *config.add_devices();
      one.set_container_path(device.container_path);
      one.set_host_path(device.host_path);
      one.set_permissions(device.permissions);
    }
    v1::LinuxContainerSecurityContext& security =
        *config.mutable_linux()->mutable_security_context();
    security.mutable_namespace_options()->set_network(v1::NODE);
    security.mutable_namespace_options()->set_pid(v1::CONTAINER);
    // Engines drop first. Ordinary containers have the other one: a device file may belong to
    // another user (NVreg_DeviceFileUID).
    security.mutable_capabilities()->add_drop_capabilities("ALL");
    security.mutable_capabilities()->add_add_capabilities("DAC_OVERRIDE");
    // Root, whatever the image says: files of devices may belong to root alone.
    security.mutable_run_as_user()->set_value(0);
    security.mutable_run_as_group()->set_value(0);
    security.set_readonly_rootfs(true);
    security.set_no_new_privs(true);
    return config;
  }

  void Start(const std::string& container) {
    v1::StartContainerRequest request;
    request.set_container_id(container);
    Ask<v1::RuntimeService, v1::StartContainerResponse>(
        std::move(request),
        [this, container](const v1::StartContainerResponse&) { Probe(container); },
        // A kubelet that collects garbage takes one that has not started for one that has ended.
        [this](const base::Error& error) {
          if (error.code() == base::Code::kNotFound) return End({Kind::kEnded, error.message()});
          Refused(error);
        });
  }

  void Probe(const std::string& container) {
    v1::ExecSyncRequest request;
    request.set_container_id(container);
    request.add_cmd(kInside);
    request.add_cmd(kLast);
    for (const std::string& file : container_.files) request.add_cmd(file);
    request.set_timeout(kExecSeconds);
    Ask<v1::RuntimeService, v1::ExecSyncResponse>(
        std::move(request),
        [this](const v1::ExecSyncResponse& said) {
          if (said.exit_code() == 0) return End({Kind::kAnswered, said.stdout()});
          End({said.exit_code() == kKilled ? Kind::kEnded : Kind::kNotTried,
               "the program in it ended with status " + std::to_string(said.exit_code()) + ": " +
                   said.stderr()});
        },
        // Only a container that has been stopped takes no program.
        [this](const base::Error& error) {
          if (!Interrupted(error)) End({Kind::kEnded, error.message()});
        });
  }

  /// Whether it was refused, or another program ended its sandbox: the kubelet does so with one
  /// that is no pod's.
  void Refused(const base::Error& error) {
    if (Interrupted(error)) return;
    v1::ListPodSandboxRequest request;
    request.mutable_filter()->set_id(sandbox_);
    Ask<v1::RuntimeService, v1::ListPodSandboxResponse>(
        std::move(request), [this, why = error.message()](const v1::ListPodSandboxResponse& list) {
          const bool lives = std::ranges::any_of(list.items(), [this](const v1::PodSandbox& one) {
            return one.id() == sandbox_ && one.state() == v1::SANDBOX_READY;
          });
          End({lives ? Kind::kRefused : Kind::kEnded, why});
        });
  }

  /// Ends where a call in a sandbox that has started took too long, or the engine has gone.
  bool Interrupted(const base::Error& error) {
    const auto code = error.code();
    const bool late = code == base::Code::kDeadlineExceeded;
    const bool gone = code == base::Code::kUnavailable || code == base::Code::kCancelled;
    if (late || gone) End({late ? Kind::kLate : Kind::kNotTried, error.message()});
    return late || gone;
  }

  void End(ProbeAnswer answer) {
    answer.handled = !settings_.handler.empty();
    if (!sandbox_.empty()) left_.push_back(sandbox_);
    if (left_.empty()) return done_(answer);
    ended_ = std::move(answer);
    removing_ = left_.size();
    // What remains is removed before the next run.
    for (const std::string& sandbox : std::vector<std::string>(left_)) {
      v1::RemovePodSandboxRequest request;
      request.set_pod_sandbox_id(sandbox);
      AskWithin<v1::RuntimeService, v1::RemovePodSandboxResponse>(
          std::move(request), kRemoval, [this](const base::Result<v1::RemovePodSandboxResponse>&) {
            if (--removing_ == 0) done_(ended_);
          });
    }
  }

  os::Loop& loop_;
  ProbeContainer container_;
  const base::Duration within_;
  base::TimePoint deadline_;
  const Done done_;
  SandboxSettings settings_;
  std::vector<std::string> former_, left_;  // sandboxes: to be removed, and that could not be
  ProbeAnswer ended_;
  std::size_t removing_ = 0;
  std::string uid_, sandbox_;  // empty until the sandbox exists
  rpc::Calls calls_;
};

ProbeRun::ProbeRun(os::Loop& loop, ProbeContainer container, base::Duration within, Done done)
    : steps_(std::make_unique<Steps>(loop, std::move(container), within, std::move(done))) {}

ProbeRun::~ProbeRun() = default;

base::Result<std::string> RunContainer(ProbeContainer container, base::Duration within) {
  os::Loop loop("cri");
  ProbeAnswer answer;
  const ProbeRun run(loop, std::move(container), within, [&](const ProbeAnswer& given) {
    answer = given;
    loop.Stop();
  });
  loop.Run();
  switch (answer.kind) {
    case Kind::kAnswered: return answer.text;
    case Kind::kRefused: return base::Error(base::Code::kUnknown, answer.text);
    case Kind::kLate: return base::Error(base::Code::kDeadlineExceeded, answer.text);
    default: return base::Error(base::Code::kUnavailable, answer.text);
  }
}

std::string WhyNotHandled(const ProbeContainer& container) {
  return "the engine has no runtime handler " + container.handler + " that is " + container.runtime;
}

SandboxSettings SandboxSettingsIn(std::string_view config, const std::string& handler,
                                  const std::string& program) {
  SandboxSettings settings;
  const auto document = base::ParseJson(config, "config");
  if (!document.ok()) return settings;
  const auto below = [](const base::Value* value, const std::string& key) {
    return value == nullptr ? nullptr : value->Find(key);
  };
  const auto text = [](const base::Value* value) {
    return value != nullptr && value->kind == base::Value::Kind::kString ? value->text : "";
  };
  settings.image = text(below(&*document, "sandboxImage"));
  const base::Value* containerd = below(&*document, "containerd");
  const base::Value* runtimes = below(containerd, "runtimes");
  const base::Value* runtime = handler.empty() ? nullptr : below(runtimes, handler);
  if (!handler.empty() && text(below(below(runtime, "options"), "BinaryName")) == program) {
    settings.handler = handler;
  } else {
    runtime = below(runtimes, text(below(containerd, "defaultRuntimeName")));
  }
  const base::Value* systemd = below(below(runtime, "options"), "SystemdCgroup");
  if (runtime != nullptr)
    settings.cgroup_parent =
        systemd != nullptr && systemd->kind == base::Value::Kind::kBool && systemd->boolean
            ? kSlice
            : kTopGroup;
  return settings;
}

}  // namespace penstock::protocol::engine::cri
