// Decides when the agent first advertises devices to the kubelet: when the configuration is known.
// While a configured ConfigMap was never read, the agent waits for a limited time; after that time
// it still does not advertise whole devices if devices were shared before.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "app/agent/configuration.h"
#include "base/core/clock.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "base/published.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"

namespace penstock::app {

/// On the control executor; the kubelet's checkpoint is read on `io`.
class KubeletStart {
 public:
  struct Node {
    base::Executor& control;
    base::Executor& io;
    Configuration& configuration;
    node::inventory::Inventory& inventory;
    node::ledger::Ledger& ledger;
    std::string kubelet_dir;
  };
  static constexpr base::Duration kWait = std::chrono::seconds(30);

  /// Construct when all devices were read once. `open` is called exactly once, immediately if there
  /// is nothing to wait for. Does not wait if `kubelet_served` is false.
  KubeletStart(Node node, bool kubelet_served, std::function<void()> open);
  ~KubeletStart();

  bool waits() const { return !opened_; }
  /// Why it waits, for users; empty otherwise.
  const std::string& reason() const { return reason_; }

  void ConfigurationChanged();

 private:
  void Open();
  void CheckShares();
  void Decide(const std::string& shares);

  const Node node_;
  const std::function<void()> open_;
  bool opened_ = false;
  std::string reason_;
  base::TimerId timer_ = 0;
  base::Lifetime lifetime_;
};

}  // namespace penstock::app
