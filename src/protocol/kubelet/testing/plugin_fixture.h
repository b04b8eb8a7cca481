// Test fixture: a plugin on a loop of its own, with a record of its states.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "os/loop.h"
#include "os/testing/turned_loop.h"
#include "protocol/kubelet/device_plugin.h"

namespace penstock::protocol::kubelet {

inline constexpr char kGpu[] = "nvidia.com/gpu";

/// A handler of functions that a test sets.
struct HandlerOfFunctions final : PluginHandler {
  std::function<void(const AllocateRequest&, const Reply<std::vector<ContainerEdits>>&)> allocate;
  std::function<void(const PreferRequest&, const Reply<std::vector<std::vector<std::string>>>&)>
      prefer;

  void Allocate(const std::string&, AllocateRequest request,
                Reply<std::vector<ContainerEdits>> reply) override {
    allocate(request, reply);
  }
  void Prefer(const std::string&, const PreferRequest& request,
              const Reply<std::vector<std::vector<std::string>>>& reply) override {
    prefer(request, reply);
  }
};

/// Answers each Allocate with the ids in an environment variable and one file; prefers nothing.
class RunningPlugin {
 public:
  explicit RunningPlugin(const std::string& kubelet_dir,
                         const std::string& prefix = "penstock-nvidia-gpu") {
    options.kubelet_dir = kubelet_dir;
    options.resource = kGpu;
    options.socket_prefix = prefix;
    options.retry_first = std::chrono::milliseconds(20);
    options.retry_most = std::chrono::milliseconds(100);
    options.recheck = std::chrono::milliseconds(50);
    options.answer_within = options.stream_within = options.others_within =
        std::chrono::minutes(1);  // none expires by chance
    handler.allocate = [](const AllocateRequest& request,
                          const Reply<std::vector<ContainerEdits>>& reply) {
      std::vector<ContainerEdits> edits;
      for (const auto& ids : request.containers) {
        std::string joined;
        for (const auto& id : ids) joined += (joined.empty() ? "" : ",") + id;
        ContainerEdits container;
        container.environment["IDS"] = joined;
        container.files.push_back({"/dev/nvidia0", "/host/dev/nvidia0", "rw"});
        container.cdi_devices.push_back("nvidia.com/gpu=0");
        edits.push_back(std::move(container));
      }
      reply(std::move(edits));
    };
    handler.prefer = [](const PreferRequest& request,
                        const Reply<std::vector<std::vector<std::string>>>& reply) {
      reply(std::vector<std::vector<std::string>>(request.containers.size()));
    };
  }

  ~RunningPlugin() {
    if (turned_ != nullptr) turned_->Stop();
    loop_.Stop();
    plugin_.reset();
  }

  /// Makes its timers follow a test's clock instead of the machine's. Call before Start; the loop
  /// is stopped with the plugin.
  void Follow(os::TurnedLoop& turned) { turned_ = &turned; }

  void Start(std::vector<PluginDevice> devices) {
    os::Loop& loop = turned_ != nullptr ? turned_->loop() : loop_;
    auto plugin = DevicePlugin::Create(loop, options, handler, [this](const PluginState& state) {
      std::lock_guard lock(mutex_);
      states_.push_back(state);
      changed_.notify_all();
    });
    ASSERT_TRUE(plugin.ok()) << plugin.error().ToString();
    plugin_ = *std::move(plugin);
    plugin_->Update(std::move(devices));
    loop.Start();
  }

  void Update(std::vector<PluginDevice> devices) { plugin_->Update(std::move(devices)); }

  /// Waits until the last reported state has this phase and a reason that contains the text.
  bool WaitFor(PluginState::Phase phase, const std::string& text = "") {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] {
      return !states_.empty() && states_.back().phase == phase &&
             states_.back().reason.find(text) != std::string::npos;
    });
  }

  PluginState last() {
    std::lock_guard lock(mutex_);
    return states_.empty() ? PluginState() : states_.back();
  }

  DevicePlugin::Options options;
  HandlerOfFunctions handler;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<PluginState> states_;
  os::Loop loop_{"plugin"};
  os::TurnedLoop* turned_ = nullptr;
  std::unique_ptr<DevicePlugin> plugin_;
};

/// For tests in which the kubelet loses our devices. Too short for other tests: a fake kubelet on a
/// busy machine counts late, too.
inline constexpr AuditTimes kQuickAudit{.every = std::chrono::milliseconds(200),
                                        .settled = std::chrono::milliseconds(50),
                                        .again = std::chrono::milliseconds(20),
                                        .soon = std::chrono::milliseconds(20)};

inline std::vector<PluginDevice> TwoDevices() {
  return {{"GPU-b", true, {1}}, {"GPU-a", true, {0}}};
}

}  // namespace penstock::protocol::kubelet
