// Who used what: joins samples with the ledger, publishes it, writes records of it, and sums these. Calls no vendor.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/node_config.h"
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
  /// The node, as far as usage needs it. All must outlive the meter.
  struct Node {
    base::Executor& control;
    base::Executor& io;
    inventory::Inventory& inventory;
    ledger::Ledger& ledger;
    base::Published<sample::Snapshot>& samples;
    std::function<const device::Dialect*(std::string_view)> dialect_of;
    std::function<void()> hurry;    ///< a sample is wanted soon: somebody came or went
    std::function<void()> at_once;  ///< a sample is wanted now: very many wait for it
    std::string proc_root;
    std::string name;  ///< in records
  };

  Meter(Node node, const api::NodeConfig& config);
  ~Meter();  ///< writes what there is for the next agent; blocks

  /// What a running agent can change follows this configuration from now on.
  void Configure(const api::NodeConfig& config);

  /// This agent serves the node: takes up what the one before it knew of running holders, and writes records from now on. Before any lease
  /// is taken over. Where that cannot be read, nothing is written, and records say why. Blocks.
  void Serve(const std::string& boot_id);

  const base::Published<Snapshot>& published() const;
  base::Published<Snapshot>& published();

  /// Sums the records and what runs. `done` runs on the control executor. One question at a time; kUnavailable while there is another one,
  /// kInvalidArgument for keys that there are not.
  void Sum(const api::UsageQuery& query, std::function<void(base::Result<api::UsageReport>)> done);

  /// Who holds a device and does not use it, the longest first.
  std::vector<api::IdleHolder> Idle() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::usage
