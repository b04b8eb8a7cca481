// Test fixture: a KubeletAdapter on a machine with four devices, against a fake kubelet in this
// process.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapter/kubelet/kubelet_adapter.h"
#include "device/testing/acme.h"
#include "os/testing/run_on.h"
#include "os/testing/temporary_folder.h"
#include "protocol/kubelet/fake/fake_kubelet.h"

namespace penstock::adapter::kubelet {

inline constexpr char kGpu[] = "acme.com/gpu";

class KubeletAdapterTest : public ::testing::Test {
 protected:
  KubeletAdapterTest() {
    kubelet_.Start();
    control_.Start();
    io_.Start();
    On([this] {
      inventory_.SetVendor(
          {"acme", std::make_shared<const device::Driver>(device::testing::AcmeDriver()), ""});
      std::vector<device::Facts> facts;
      for (int i = 0; i < 4; ++i) facts.push_back(device::testing::AcmeDevice(i, 4));
      inventory_.SetFacts("acme", facts, "", control_.clock().Wall());
      for (const auto& one : facts)
        inventory_.SetHealth(one.id, device::HealthState::kHealthy, "", control_.clock().Wall());
      turns_.emplace(control_, inventory_, ledger_, offers_,
                     [this](const auto& now, const auto& before) {
                       if (adapter_) adapter_->Follow(now, before);
                       if (follow_) follow_(now, before);
                     });
    });
    Make();
  }

  /// Replaces the adapter, before Open, with one that asks an engine or writes specifications.
  void Make(protocol::engine::cri::EngineWatcher* engine = nullptr,
            base::Published<node::cdi::Written>* written = nullptr) {
    On([&] {
      adapter_ = std::make_unique<KubeletAdapter>(
          control_, io_,
          KubeletAdapter::Options{
              .kubelet_dir = kubelet_.kubelet_dir(),
              .proc_root = proc_root_,
              .host_paths = [] { return [](const std::string& path) { return "/host" + path; }; },
              .share_policy = [this] { return policy_.load(); },
              .containers = [this] { return containers_; },
              .engine = engine,
              .written = written,
              .kubelet_has = [this](const KubeletAmounts& amounts) { kubelet_has_.Set(amounts); },
              .list_read_within = list_read_within_},
          inventory_, ledger_, offers_, device::testing::FindAcme);
    });
  }
  ~KubeletAdapterTest() override {
    On([this] {
      turns_.reset();
      adapter_.reset();
    });
    control_.Stop();
    io_.Stop();
  }

  void Open() {
    On([this] { adapter_->Open(); });
    ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
  }

  /// Applies another configuration; the kubelet gets the result at once.
  void Configure(const api::NodeConfig& config) {
    On([&] { offers_.Configure(config, {}); });
  }

  /// Waits until the kubelet knows exactly these devices of a resource, healthy or not.
  bool WaitForIds(const std::string& resource, const std::set<std::string>& ids) {
    return kubelet_.WaitForDevices(resource, [&ids](const auto& devices) {
      std::set<std::string> seen;
      for (const auto& [id, device] : devices) seen.insert(id);
      return seen == ids;
    });
  }

  /// Returns after the turn that follows.
  void On(const std::function<void()>& function) {
    os::RunOn(control_, function);
    os::RunOn(control_, [] {});
  }

  void OpenWith(const api::NodeConfig& config) {
    Configure(config);
    On([this] { adapter_->Open(); });
  }

  void SetHealth(const std::string& device, device::HealthState state, const std::string& reason) {
    On([&] { inventory_.SetHealth(device, state, reason, control_.clock().Wall()); });
  }

  /// Waits until the published value satisfies the predicate.
  template <typename T>
  static bool WaitForPublished(base::Published<T>& published,
                               const std::function<bool(const T&)>& predicate) {
    std::promise<void> seen;
    std::atomic<bool> reported = false;
    auto subscription = published.Subscribe(
        [&](const auto& value) {
          if (predicate(*value) && !reported.exchange(true)) seen.set_value();
        },
        true);
    return seen.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  }

  /// Waits until the ledger satisfies the predicate.
  bool WaitForLedger(const std::function<bool(const node::ledger::Snapshot&)>& predicate) {
    return WaitForPublished(ledger_.published(), predicate);
  }

  /// Waits until the ledger names this pod as the holder of the device.
  bool WaitForPod(const std::string& device, const std::string& pod) {
    return WaitForLedger([&](const auto& ledger) {
      const auto* holder = ledger.HolderOf(device);
      return holder != nullptr && holder->pod == pod;
    });
  }

  bool WaitForKubeletHas(std::size_t capacity, std::size_t allocatable) {
    return WaitForKubeletHas({{kGpu, {capacity, allocatable}}});
  }

  bool WaitForKubeletHas(const KubeletAmounts& wanted) {
    return WaitForPublished<KubeletAmounts>(
        kubelet_has_, [&](const KubeletAmounts& amounts) { return amounts == wanted; });
  }

  api::ContainersConfig containers_;                                  // used on the control loop
  base::Duration list_read_within_ = std::chrono::milliseconds(100);  // as Make finds it
  std::string proc_root_ = "/proc";                                   // likewise
  std::atomic<api::SharePolicy> policy_ = api::SharePolicy::kDistributed;
  base::Published<KubeletAmounts> kubelet_has_;
  os::TemporaryFolder folder_;
  protocol::kubelet::FakeKubelet kubelet_{folder_.path()};
  os::Loop control_{"control"}, io_{"io"};
  node::inventory::Inventory inventory_;
  node::ledger::Ledger ledger_;
  base::Published<device::SharedDevices> servers_;  // for tests in which the offers follow it
  node::share::Offers offers_{inventory_, ledger_, device::testing::FindAcme, {"kubelet", "local"}};
  std::unique_ptr<KubeletAdapter> adapter_;
  node::share::Turns::Follow follow_;  // of a test's own parts
  std::optional<node::share::Turns> turns_;
};

}  // namespace penstock::adapter::kubelet
