// Collects what devices measure, at each quantity's own rate; keeps nonsense out. Joins nothing with who holds what.
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

/// On the control executor. One call at a time with each vendor; a device that is gone, or lost, is not asked. Time that is stepped harms
/// nothing: it waits by the steady clock and only stamps by the other.
class Sampler {
 public:
  struct Source {
    const device::Dialect* dialect = nullptr;
    device::AsyncBackend* backend = nullptr;
    /// Number of the connection to the driver whose devices are described (inventory::Discovery::session); nothing while there is none.
    std::function<std::optional<std::uint64_t>()> session;
  };
  struct Callbacks {
    /// A device has other processes than its last reading says: those who attribute them want to know.
    std::function<void(const std::string& vendor, const std::string& device)> processes_differ;
  };
  struct Options {
    base::Duration interval = std::chrono::seconds(10);
    bool processes = true;
    std::map<std::string, std::set<std::string, std::less<>>, std::less<>> left_out;  ///< by vendor, keys of quantities that nobody wants
  };

  /// Collects nothing before Configure.
  Sampler(base::Executor& control, inventory::Inventory& inventory, std::vector<Source> sources, Callbacks callbacks = {});
  ~Sampler();

  /// Collects from now on, or otherwise than before.
  void Configure(Options options);

  /// Somebody looks: collections come each second for the next few, whatever the interval says.
  void Hurry();

  /// Very many wait for a collection: the next one comes a tenth of a second after the last one began, or now.
  void AtOnce();

  const base::Published<Snapshot>& published() const;
  base::Published<Snapshot>& published();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::sample
