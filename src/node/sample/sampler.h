// Samples all devices, each quantity at its own rate, and rejects impossible values. Does not
// relate samples to holders.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/published.h"
#include "device/backend.h"
#include "device/dialect.h"
#include "node/inventory/inventory.h"
#include "node/sample/samples.h"

namespace penstock::node::sample {

/// On the control executor. At most one call at a time per vendor; devices that are gone or
/// unreachable are not asked. Steps of the wall clock do no harm: intervals use the steady clock,
/// the wall clock only stamps samples.
class Sampler {
 public:
  struct Source {
    const device::Dialect* dialect = nullptr;
    device::AsyncBackend* backend = nullptr;
    /// Number of the session with the driver whose devices the inventory describes
    /// (inventory::Discovery::session); nothing while there is none.
    std::function<std::optional<std::uint64_t>()> session;
  };
  struct Callbacks {
    /// A device has other processes than its last reading says, so that their attribution needs a
    /// new reading.
    std::function<void(const std::string& vendor, const std::string& device)> processes_differ;
  };
  struct Options {
    base::Duration interval = std::chrono::seconds(10);
    bool processes = true;
    /// By vendor, the keys of quantities that are not needed.
    std::map<std::string, std::set<std::string, std::less<>>, std::less<>> left_out;
  };

  /// Collects nothing before Configure.
  Sampler(base::Executor& control, inventory::Inventory& inventory, std::vector<Source> sources,
          Callbacks callbacks = {});
  ~Sampler();

  /// Starts collecting, or changes the options.
  void Configure(Options options);

  /// The inventory has changed, and the change is complete.
  void DevicesChanged();

  /// A client is watching: collects every second for the next few seconds, whatever the interval
  /// is.
  void RequestSoon();

  /// Many requests wait for a collection: starts the next one a tenth of a second after the start
  /// of the last one, or now.
  void RequestNow();

  const base::Published<Snapshot>& published() const;
  base::Published<Snapshot>& published();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::sample
