// Has the cluster stop programs that hold devices while these are divided, by labels of the Node.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "device/dialect.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "os/loop.h"

namespace penstock::app {

/// On the control loop; processes are read on `io`. ClientLabels (adapter/cluster) writes the
/// labels; this waits until they are written and the programs have let go of the device. It waits
/// for a limited time, and not at all where the Node has no such label.
class ClientPause {
 public:
  struct Node {
    os::Loop& control;
    base::Executor& io;
    const node::inventory::Inventory& inventory;
    const node::ledger::Ledger& ledger;
    /// Those whose clients are to be stopped now.
    std::function<std::set<std::string>()> devices;
  };
  /// `wake`: what Await returned may be different now.
  ClientPause(Node node, std::function<void()> wake);

  /// What is still waited for before a device is divided, where there is a cluster; empty: nothing.
  std::string Await(const device::Facts& device);

  void Configure(const api::LabelsConfig& config) { writes_ = config.node != api::Switch::kOff; }

  /// The labels of the Node that ClusterAdapter::Callbacks::requests gets.
  void Take(const std::map<std::string, std::string>& labels) { labels_ = labels; }

  /// The keys of the labels whose programs are to be stopped now.
  std::set<std::string> Keys() const;

  /// Call after each change of Node::devices: the next change of a device waits from its own
  /// beginning.
  void ForgetEnded();

 private:
  struct Wait {
    base::TimePoint since{};
    bool reading = false;                           // the processes
    std::optional<std::vector<std::string>> users;  // of the device, as read last
  };
  std::string AwaitUsers(const device::Facts& device, const device::PartTerms& terms, Wait& wait);
  void Read(const device::Facts& device, const device::PartTerms& terms);
  void WakeSoon();

  const Node node_;
  const std::function<void()> wake_;
  std::optional<std::map<std::string, std::string>> labels_;  // nothing: not known yet
  std::map<std::string, Wait> waits_;                         // by device
  bool writes_ = true;                                        // the agent may write labels
  bool waking_ = false;
  base::Lifetime lifetime_;
};

/// ClusterAdapter::Options::clients, of all vendors.
std::map<std::string, std::string> PausedLabels();

}  // namespace penstock::app
