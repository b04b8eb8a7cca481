// One extended resource, told to the kubelet by the device plugin API v1beta1. Knows ids and edits, no devices, no vendors, no policy but
// the kubelet's own habits (docs of each function say which).
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

namespace penstock::edge::kubelet {

/// One thing the kubelet can hand out.
struct PluginDevice {
  std::string id;
  bool healthy = true;
  std::vector<int> numa_nodes;  ///< empty: not near to any
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
    std::string permissions;  ///< of "rwm"
  };
  std::map<std::string, std::string> environment;
  std::vector<Mount> mounts;
  std::vector<DeviceFile> files;
  std::map<std::string, std::string> annotations;
  std::vector<std::string> cdi_devices;
};

/// An answer that is owed. Copies share it; the first call counts, from any thread. When the last copy goes unanswered the caller is told
/// kUnavailable.
template <typename T>
class Reply {
 public:
  explicit Reply(std::function<void(base::Result<T>)> answer) : state_(std::make_shared<State>(std::move(answer))) {}

  void operator()(base::Result<T> result) const { state_->Answer(std::move(result)); }

 private:
  struct State {
    explicit State(std::function<void(base::Result<T>)> function) : answer(std::move(function)) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
      Answer(base::Error(base::Code::kUnavailable,
                         "the agent gave this request up, most likely because it is ending; it is asked again "
                         "when the pod is started anew"));
    }
    void Answer(base::Result<T> result) {
      if (!answered.exchange(true)) answer(std::move(result));
    }
    std::atomic<bool> answered = false;
    std::function<void(base::Result<T>)> answer;
  };
  std::shared_ptr<State> state_;
};

/// Device ids for each container, sorted, none empty, none twice in all, all of the list published last. The kubelet asks for one container
/// at a time.
struct AllocateRequest {
  std::vector<std::vector<std::string>> containers;
};

/// What could be given to each container; ids as the kubelet sent them, sorted.
struct PreferRequest {
  struct Container {
    std::vector<std::string> available, must_include;
    int size = 0;
  };
  std::vector<Container> containers;
};

/// When the kubelet, while it reads our list, is asked whether it counts our devices.
struct AuditTimes {
  base::Duration every = std::chrono::minutes(1);    ///< between two questions
  base::Duration settled = std::chrono::seconds(5);  ///< from a change of the list or of the streams, or a registration, to a question
  base::Duration again = std::chrono::seconds(2);    ///< between the two answers of a verdict
  base::Duration soon = std::chrono::seconds(1);     ///< from other sockets that came or went to a question
  base::Duration most = std::chrono::hours(1);       ///< between two verdicts: at least `every`, doubled each time up to this
};

/// Where this plugin stands with the kubelet.
struct PluginState {
  enum class Phase {
    kWaitingForDevices,  ///< no list was published yet
    kWaitingForKubelet,  ///< no kubelet, or it does not answer
    kRegistering,
    kServing,      ///< the kubelet reads our list
    kRefused,      ///< the kubelet said no, or no socket can be made; tried again
    kSteppedBack,  ///< another plugin serves this resource; looked at again every few seconds
  };
  Phase phase = Phase::kWaitingForDevices;
  std::string reason;  ///< one sentence for people; empty where there is nothing to say
  bool operator==(const PluginState&) const = default;
};
std::string_view ToString(PluginState::Phase phase);

/// The plugin of one resource. Finds the kubelet when it comes, registers, registers again when the kubelet was restarted or dropped it,
/// never two at a time, and answers. Registers over a live stream of its own only where the kubelet reads that and counts none of it. Made
/// and destroyed on the loop's thread, or while the loop does not run.
class DevicePlugin {
 public:
  struct Options {
    std::string kubelet_dir = "/var/lib/kubelet";  ///< absolute; may not exist yet, is never created
    std::string resource;                          ///< "nvidia.com/gpu"
    std::string socket_prefix;                     ///< "penstock-nvidia-gpu": the socket's name is this, the pid, and a random number
    std::string own_prefix;                        ///< what the names of all sockets of this program begin with; empty: socket_prefix
    std::string proc_root = "/proc";               ///< to name other plugins' processes

    base::Duration answer_within = std::chrono::seconds(10);      ///< then an unanswered request gets kDeadlineExceeded
    base::Duration retry_first = std::chrono::milliseconds(200);  ///< after a stream's end or a failure, doubling
    base::Duration retry_most = std::chrono::seconds(10);
    base::Duration stream_within = std::chrono::seconds(5);  ///< after an accepted registration, then it is repeated
    base::Duration recheck = std::chrono::seconds(5);        ///< of another plugin that serves the resource
    base::Duration others_within = std::chrono::seconds(1);  ///< another plugin answers, or counts for none
    AuditTimes audit = {};                                   ///< whether the kubelet, while it reads our list, counts our devices
  };
  struct Callbacks {
    /// On a thread of gRPC: read snapshots or post to an executor, do not block. An error's message becomes the pod's event.
    std::function<void(AllocateRequest, Reply<std::vector<ContainerEdits>>)> allocate;
    /// Likewise. An empty list for a container lets the kubelet choose; so does an error, which would fail the pod otherwise.
    std::function<void(PreferRequest, Reply<std::vector<std::vector<std::string>>>)> prefer;
    /// On the loop's thread, when it changed; must not destroy the plugin.
    std::function<void(const PluginState&)> state;
  };

  /// kInvalidArgument where the socket's path would be longer than the 107 bytes a unix socket's may have, or the folder is not absolute.
  static base::Result<std::unique_ptr<DevicePlugin>> Create(os::Loop& loop, Options options, Callbacks callbacks);

  /// Ends the kubelet's streams, answers what is pending with kUnavailable, removes its own socket and no other. Takes a few milliseconds.
  ~DevicePlugin();
  DevicePlugin(const DevicePlugin&) = delete;
  DevicePlugin& operator=(const DevicePlugin&) = delete;

  /// The whole list, which replaces the one before; an equal one is not sent again. Any thread. The first one starts the registration.
  void Update(std::vector<PluginDevice> devices);

  /// On the loop's thread.
  const PluginState& state() const;

 private:
  class Impl;
  explicit DevicePlugin(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace penstock::edge::kubelet
