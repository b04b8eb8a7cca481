// Applies the layout that a label of the Node, or the configuration, names: one of a file of
// mig-parted, or of those made from the profiles of this node's devices.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "api/config/layouts.h"
#include "api/config/node_config.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "node/change/divisions.h"
#include "node/inventory/inventory.h"
#include "os/loop.h"
#include "os/watch/watch.h"

namespace penstock::app {

/// On the control loop; the file is read on `io`. A value is followed once: a layout that a user
/// applies afterwards stays until the label has another value, or is removed and set again. A new
/// version of the named layout in the file is applied.
class LayoutFollower {
 public:
  LayoutFollower(os::Loop& control, base::Executor& io, node::inventory::Inventory& inventory,
                 node::change::Divisions& divisions);

  /// Follows the file that the configuration names, from now on.
  void Configure(const api::NodeConfig& config);

  /// The labels of the Node by which users ask for something (ClusterAdapter::Options::requests);
  /// empty where there is no Node. Nothing is followed before. Without a label, the configured
  /// default is followed as if a label named it, while there are devices that can be divided.
  void Take(const std::map<std::string, std::string>& labels);

  /// While suspended, no layout is followed: what was applied stays.
  void Suspend(bool suspended);

  /// All devices were read once. Follows no label before.
  void Begin();

  /// Devices have changed.
  void DevicesChanged();

  /// The labels by which the Node shows how a layout stands that it asked for.
  std::map<std::string, std::string> Labels() const;

 private:
  void Read();
  void Choose();
  void Follow();
  base::Result<api::Layouts> Layouts() const;
  base::Result<api::Layout> Find(const std::string& name) const;
  bool CanDivide() const;

  os::Loop& control_;
  base::Executor& io_;
  node::inventory::Inventory& inventory_;
  node::change::Divisions& divisions_;
  std::string path_;
  std::optional<base::Result<std::string>> text_;  // of the file; nothing: not read yet
  std::unique_ptr<os::PathWatch> watch_;
  std::optional<std::map<std::string, std::string>> labels_;  // nothing: not known yet
  std::string default_;
  bool by_label_ = true;                      // as configured: labels and the default count
  const device::PartTerms* terms_ = nullptr;  // of the vendor whose layout is followed
  std::string value_;                         // the name of that layout; empty: there is none
  bool labelled_ = false;                     // a label names it, not the default
  std::uint64_t facts_generation_ = 0;
  bool begun_ = false, waits_for_devices_ = false, suspended_ = false;
  base::Lifetime lifetime_;
};

/// The keys of all vendors' labels by which users ask for a layout.
std::vector<std::string> RequestLabels();

}  // namespace penstock::app
