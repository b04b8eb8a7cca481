// Measures the usage of holders: combines samples with the ledger, shows usage, writes records
// of it, and sums records.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "api/usage.h"
#include "base/executor.h"
#include "base/published.h"
#include "device/dialect.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/sample/samples.h"
#include "node/usage/usage.h"

namespace penstock::node::usage {

/// On the control executor.
class Meter {
 public:
  /// The parts of the node that usage needs. All must outlive the meter.
  struct Node {
    base::Executor& control;
    base::Executor& io;
    inventory::Inventory& inventory;
    ledger::Ledger& ledger;
    base::Published<sample::Snapshot>& samples;
    device::DialectOf dialect_of;
    std::function<void()> sample_soon;  ///< requests a sample soon: a lease began or ended
    std::function<void()> sample_now;   ///< requests a sample now: many ended leases wait for it
    std::string proc_root;
    std::string name;  ///< the node's name in records
  };

  Meter(Node node, const api::NodeConfig& config);
  ~Meter();  ///< writes the state for the next agent; blocks

  /// There are new samples.
  void SamplesChanged();

  /// Applies the settings that can change at run time.
  void Configure(const api::NodeConfig& config);

  /// Call when this agent serves the node, before any lease is restored: restores the previous
  /// agent's usage of running holders, and starts writing records. If that state cannot be read, no
  /// records are written, and RecordCounts::problem says why. Blocks.
  void Serve(const std::string& boot_id);

  /// Sets the one function that is called whenever Get has something new. It must not call back.
  [[nodiscard]] base::Subscription OnChange(std::function<void()> changed);

  /// The usage as of the last change, made when it is first asked for: with each of a burst of
  /// leases it changes, and a page is read now and then.
  std::shared_ptr<const Snapshot> Get() const;

  /// Sums the records and the running leases. `done` runs on the control executor. One query at a
  /// time: returns kUnavailable during another one, kInvalidArgument for unknown keys.
  void Sum(const api::UsageQuery& query, std::function<void(base::Result<api::UsageReport>)> done);

  /// Holders that do not use their device, the longest idle first.
  std::vector<api::IdleHolder> Idle() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::usage
