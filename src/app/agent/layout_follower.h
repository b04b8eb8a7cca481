// Applies the layout that a label of the Node, or the configuration, names: one of a file, or of
// those made from what this node's devices can be divided into.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/compat/layout_programs.h"
#include "api/config/layouts.h"
#include "api/config/node_config.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "device/dialect.h"
#include "node/change/divisions.h"
#include "node/inventory/inventory.h"
#include "os/loop.h"
#include "os/watch/watch.h"

namespace penstock::app {

/// An Event about a layout that a label asked for.
struct LayoutEvent {
  bool warning = false;
  std::string reason, message;
};

/// Of one vendor's devices. On the control loop; the file is read on `io`. A value is followed
/// once: a layout that a user applies afterwards stays until the label has another value, or is
/// removed and set again, or until a new value of the vendor's label for that repeats it. A new
/// version of the named layout in the file is applied.
class LayoutFollower {
 public:
  /// `dialect` has part_terms; `divisions` are those of its devices.
  LayoutFollower(os::Loop& control, base::Executor& io, node::inventory::Inventory& inventory,
                 node::change::Divisions& divisions, const device::Dialect& dialect);

  /// Follows the file that the configuration names, from now on.
  void Configure(const api::NodeConfig& config);

  /// The labels of the Node by which users ask for something (ClusterAdapter::Options::requests);
  /// empty where there is no Node. Nothing is followed before. Without a label, the configured
  /// default is followed as if a label named it, while there are devices that can be divided.
  void Take(const std::map<std::string, std::string>& labels);

  /// While a label switches off the program in whose place this divides devices, no layout is
  /// followed: what was applied stays.
  void SetServices(const api::compat::NodeServices& services);

  /// All devices were read once. Follows no label before.
  void Begin();

  /// Devices have changed.
  void DevicesChanged();

  /// The labels by which the Node shows how a layout stands that it asked for.
  std::map<std::string, std::string> Labels() const;

  /// The vendor's Event for what has become of the layout since the last call.
  std::optional<LayoutEvent> TakeEvent();

 private:
  /// A layout, or why there is none.
  struct Found {
    base::Result<api::Layout> layout;
    device::LayoutFailure failure = device::LayoutFailure::kNone;
  };
  void Read();
  void Choose();
  void Follow();
  Found Find(const std::string& name) const;
  Found FindIn(const api::Layouts& layouts, const std::string& name) const;
  api::Layouts Made() const;
  bool CanDivide() const;

  os::Loop& control_;
  base::Executor& io_;
  node::inventory::Inventory& inventory_;
  node::change::Divisions& divisions_;
  const device::Dialect& dialect_;
  const device::PartTerms& terms_;
  const api::compat::LayoutProgram* const program_;  // null: its users have no files
  std::string path_;
  std::optional<base::Result<std::string>> text_;  // of the file; nothing: not read yet
  std::unique_ptr<os::PathWatch> watch_;
  std::optional<std::map<std::string, std::string>> labels_;  // nothing: not known yet
  std::string default_;
  bool by_label_ = true;   // as configured: labels and the default count
  std::string value_;      // the name of the layout that is followed; empty: there is none
  bool labelled_ = false;  // a label names it, not the default
  std::optional<std::string> again_;  // the label that repeats it; nothing: not known yet
  bool repeats_ = false;              // that has a new value
  device::LayoutFailure failure_ = device::LayoutFailure::kNone;  // of finding it
  std::string asked_;     // the value that was looked for last
  std::string reported_;  // reason of the last event about it
  bool changed_ = false;  // a device was being divided for it
  std::uint64_t facts_generation_ = 0;
  bool begun_ = false, waits_for_devices_ = false, suspended_ = false;
  base::Lifetime lifetime_;
};

/// The keys of all vendors' labels by which users ask for a layout.
std::vector<std::string> RequestLabels();

}  // namespace penstock::app
