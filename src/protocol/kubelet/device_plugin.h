// Serves one extended resource to the kubelet through the device plugin API v1beta1. Uses only ids
// and edits, and no policy except the kubelet's own behaviour, which the comments of the functions
// describe.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/result.h"
#include "os/loop.h"

namespace penstock::protocol::kubelet {

/// A device that the kubelet can allocate.
struct PluginDevice {
  std::string id;
  bool healthy = true;
  std::vector<int> numa_nodes;  ///< empty: near none
  bool operator==(const PluginDevice&) const = default;
};

/// What a container gets: one ContainerAllocateResponse.
struct ContainerEdits {
  struct Mount {
    std::string container_path, host_path;
    bool read_only = false;
  };
  struct DeviceFile {
    std::string container_path, host_path;
    std::string permissions;  ///< a subset of "rwm"
  };
  std::map<std::string, std::string> environment;
  std::vector<Mount> mounts;
  std::vector<DeviceFile> files;
  std::map<std::string, std::string> annotations;
  std::vector<std::string> cdi_devices;
};

/// A pending answer. Copies share it; the first call counts, from any thread. If the last copy is
/// destroyed without an answer, the caller gets kUnavailable.
template <typename T>
class Reply {
 public:
  explicit Reply(std::function<void(base::Result<T>)> answer)
      : state_(std::make_shared<State>(std::move(answer))) {}

  void operator()(base::Result<T> result) const { state_->Answer(std::move(result)); }

 private:
  struct State {
    explicit State(std::function<void(base::Result<T>)> function) : answer(std::move(function)) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
      Answer(base::Error(base::Code::kUnavailable,
                         "the agent dropped this request, most likely because it is stopping; the "
                         "kubelet repeats it when the pod is recreated"));
    }
    void Answer(base::Result<T> result) {
      if (!answered.exchange(true)) answer(std::move(result));
    }
    std::atomic<bool> answered = false;
    std::function<void(base::Result<T>)> answer;
  };
  std::shared_ptr<State> state_;
};

/// Device ids for each container: sorted, none empty, none twice in the request, all from the list
/// that was published last. The kubelet asks for one container at a time.
struct AllocateRequest {
  std::vector<std::vector<std::string>> containers;
};

/// What could be allocated to each container; ids as the kubelet sent them, sorted.
struct PreferRequest {
  struct Container {
    std::vector<std::string> available, must_include;
    int size = 0;
  };
  std::vector<Container> containers;
};

/// Answers the kubelet's requests about the devices of all plugins. Called on gRPC threads: reads
/// snapshots or posts to an executor, and does not block. Must outlive the plugins.
class PluginHandler {
 public:
  virtual ~PluginHandler() = default;

  /// An error's message becomes the pod's event.
  virtual void Allocate(const std::string& resource, AllocateRequest request,
                        Reply<std::vector<ContainerEdits>> reply) = 0;

  /// An empty list for a container lets the kubelet choose; so does an error, which would otherwise
  /// fail the pod.
  virtual void Prefer(const std::string& resource, const PreferRequest& request,
                      const Reply<std::vector<std::vector<std::string>>>& reply) = 0;
};

/// When the kubelet is asked, while it reads our list, whether it counts our devices.
struct AuditTimes {
  base::Duration every = std::chrono::minutes(1);  ///< between two questions
  /// From a change of the list or of the streams, or a registration, to a question.
  base::Duration settled = std::chrono::seconds(5);
  base::Duration again = std::chrono::seconds(2);  ///< between the two answers of a verdict
  /// From other sockets that appeared or disappeared to a question.
  base::Duration soon = std::chrono::seconds(1);
  /// Between two verdicts: at least `every`, doubled each time up to this.
  base::Duration most = std::chrono::hours(1);
};

/// The state of this plugin at the kubelet.
struct PluginState {
  enum class Phase {
    kWaitingForDevices,  ///< no list was published yet
    kWaitingForKubelet,  ///< no kubelet, or it does not answer
    kRegistering,
    kServing,      ///< the kubelet reads our list
    kRefused,      ///< the kubelet refused, or no socket can be created; retried
    kSteppedBack,  ///< another plugin serves this resource; checked again every few seconds
  };
  Phase phase = Phase::kWaitingForDevices;
  std::string reason;  ///< one sentence for people; may be empty
  bool operator==(const PluginState&) const = default;
};
std::string_view ToString(PluginState::Phase phase);

/// The plugin of one resource. Finds the kubelet when it starts, registers, registers again after
/// the kubelet restarted or dropped it, never twice at a time, and answers requests. Registers over
/// a live stream of its own only if the kubelet reads that stream and counts none of its devices.
/// Create and destroy it on the loop's thread, or while the loop does not run.
class DevicePlugin {
 public:
  struct Options {
    /// Absolute; may not exist yet, is never created.
    std::string kubelet_dir = "/var/lib/kubelet";
    std::string resource;  ///< "nvidia.com/gpu"
    /// "penstock-nvidia-gpu": the socket's name is this, the pid, and a random number.
    std::string socket_prefix;
    /// Prefix of the names of all sockets of this program; empty: socket_prefix.
    std::string own_prefix;
    std::string proc_root = "/proc";  ///< to name the processes of other plugins

    /// After this time, an unanswered request gets kDeadlineExceeded.
    base::Duration answer_within = std::chrono::seconds(10);
    /// After a stream's end or a failure; doubles each time.
    base::Duration retry_first = std::chrono::milliseconds(200);
    base::Duration retry_most = std::chrono::seconds(10);
    /// After an accepted registration; without a stream by then, it is repeated.
    base::Duration stream_within = std::chrono::seconds(5);
    /// Interval of checks of another plugin that serves the resource.
    base::Duration recheck = std::chrono::seconds(5);
    /// Another plugin that does not answer within this time does not count.
    base::Duration others_within = std::chrono::seconds(1);
    AuditTimes audit = {};  ///< whether the kubelet, while it reads our list, counts our devices
  };
  /// Called on the loop's thread after a change; must not destroy the plugin.
  using StateChanged = std::function<void(const PluginState&)>;

  /// kInvalidArgument if the socket's path would be longer than the 107 bytes that a unix socket's
  /// may have, or if the folder is not absolute.
  static base::Result<std::unique_ptr<DevicePlugin>> Create(os::Loop& loop, Options options,
                                                            PluginHandler& handler,
                                                            StateChanged state_changed);

  /// Ends the kubelet's streams, answers pending requests with kUnavailable, and removes its own
  /// socket and no other. Takes a few milliseconds.
  ~DevicePlugin();
  DevicePlugin(const DevicePlugin&) = delete;
  DevicePlugin& operator=(const DevicePlugin&) = delete;

  /// Publishes the whole list, which replaces the one before; an equal one is not sent again. Any
  /// thread. The first list starts the registration.
  void Update(std::vector<PluginDevice> devices);

  /// On the loop's thread.
  const PluginState& state() const;

 private:
  class Impl;
  explicit DevicePlugin(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace penstock::protocol::kubelet
