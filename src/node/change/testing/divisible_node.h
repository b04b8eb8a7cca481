// A node with a device that can be divided, or several, a simulated driver and a kubelet that has a
// list of its own: a fixture for unit tests of changes that divide it.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/testing/manual_executor.h"
#include "device/testing/acme.h"
#include "node/change/divisions.h"
#include "node/change/testing/divisible_device.h"
#include "node/change/testing/usable_devices.h"
#include "node/inventory/testing/acme_inventory.h"
#include "node/share/offers.h"
#include "os/testing/temporary_folder.h"

namespace penstock::node::change::testing {

class DivisibleNode : public ::testing::Test {
 protected:
  DivisibleNode() {
    offers_.FollowServers("acme", servers_);
    backend_.before_change = [this](const std::string& id) {
      EXPECT_FALSE(counted_.contains(id)) << "the kubelet may allocate " << id;
    };
  }

  /// As discovery does.
  void Describe() {
    std::vector<device::Facts> all;
    for (const DivisibleDevice* one : driver_.devices) {
      all.push_back(one->Now());
      all.insert(all.end(), one->parts.begin(), one->parts.end());
    }
    inventory::ReportHealthy(inventory_, all, executor_.clock().Wall());
    const auto now = inventory_.published().Get();
    for (const device::Facts& facts : all)
      if (now->Find(facts.id)->reading == nullptr)
        inventory_.SetReading(facts.id, {}, executor_.clock().Wall());
    inventory_.PublishReadTimes();
  }

  /// Changes of an agent that takes these over. Kinds are added before the caller starts them.
  void MakeChanges(std::vector<DeviceChange> under_way) {
    changes_ = std::make_unique<DeviceChanges>(
        executor_, executor_, DeviceChanges::Node{inventory_, ledger_, offers_},
        [this](const auto& done) {
          if (kubelet_is_silent_) return done(base::Error(base::Code::kUnavailable, "no answer"));
          KubeletReads();
          done(counted_);
        },
        folder_ / "changes.json", std::move(under_way));
  }
  void StartChanges() {
    changes_->Start();
    Settle();
  }

  /// The kubelet's list becomes that of what it is offered.
  void KubeletReads() {
    if (!kubelet_is_stuck_) counted_ = UsableDevices(offers_, "kubelet");
  }

  /// The agent does what it can, also once the kubelet has answered, and the kubelet follows.
  void Settle() {
    executor_.Advance(std::chrono::milliseconds(10));
    KubeletReads();
  }

  Divisions::Node NodeOfChanges() { return {inventory_, ledger_, *changes_}; }

  /// Without actions, devices cannot be reset.
  Divisions::VendorOf VendorWith(device::Actions* actions) {
    return [this, actions](std::string_view) {
      return Divisions::Vendor{.backend = &driver_,
                               .dialect = &dialect_,
                               .ready = [this] { return ready_; },
                               .describe =
                                   [this](const std::function<void()>& done) {
                                     Describe();
                                     if (done) done();
                                   },
                               .actions = actions,
                               .release =
                                   [this](const std::function<void()>& done) {
                                     ready_ = false;
                                     done();
                                   },
                               .reopen = [this] { ready_ = true; }};
    };
  }

  /// Something has changed that changes do not notice themselves.
  void Wake() {
    changes_->Wake();
    Settle();
  }

  void Hold(const std::string& device) {
    ASSERT_TRUE(ledger_
                    .Add({.id = device,
                          .allocator = "local",
                          .slots = {{.id = device, .device = device, .resource = "acme.com/gpu"}}})
                    .ok());
    Wake();
  }
  void End(const std::string& device) {
    ledger_.Release(device);
    Wake();
  }

  /// As a sharing service does: servers behind devices.
  void Serve(device::SharedDevices servers) {
    servers_.Set(std::move(servers));
    executor_.RunUntilIdle();
    Wake();
  }

  os::TemporaryFolder folder_;
  base::ManualExecutor executor_;
  inventory::Inventory inventory_;
  ledger::Ledger ledger_;
  base::Published<device::SharedDevices> servers_;
  DivisibleDialect dialect_;
  share::Offers offers_{inventory_, ledger_, device::testing::FindAcme, {"local", "kubelet"}};
  DivisibleDevice backend_;
  DivisibleDevices driver_{{&backend_}};
  bool ready_ = true;  // the driver is open
  bool kubelet_is_stuck_ = false, kubelet_is_silent_ = false;
  std::set<std::string> counted_;  // the devices that the kubelet counts
  std::unique_ptr<DeviceChanges> changes_;
};

}  // namespace penstock::node::change::testing
