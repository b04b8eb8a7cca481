// When the kubelet is told of devices for the first time: once it is known what it is to be told. Where a ConfigMap says that and nobody
// has read it yet, the kubelet is told nothing for a while; devices that were shared before are not offered whole after it either.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "app/agent/configuration.h"
#include "base/core/clock.h"
#include "base/executor.h"
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

  /// All devices have been looked at. `open` is called once, at once where nothing is waited for. Where no kubelet is served, nothing is.
  KubeletStart(Node node, bool kubelet_served, std::function<void()> open);
  ~KubeletStart();

  bool waits() const { return !opened_; }
  /// Why, for people; empty once it does not.
  const std::string& reason() const { return reason_; }

 private:
  void Open();
  void LookAtShares();
  void Decide(const std::string& shares);

  const Node node_;
  const std::function<void()> open_;
  bool opened_ = false;
  std::string reason_;
  base::TimerId timer_ = 0;
  base::Subscription on_config_;
  const std::shared_ptr<KubeletStart*> self_;  // null inside once destroyed: for functions on their way
};

}  // namespace penstock::app
