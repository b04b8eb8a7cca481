// An agent on a machine: the product's own parts, put together as src/app/agent does, with
// stand-ins for the programs and protocols around them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapter/kubelet/allocate_handler.h"
#include "base/testing/manual_executor.h"
#include "device/actions.h"
#include "node/allocate/allocate.h"
#include "node/change/device_moves.h"
#include "node/change/divisions.h"
#include "node/change/parts_on_demand.h"
#include "node/change/resets.h"
#include "node/health/checkpoint_writer.h"
#include "node/health/monitor.h"
#include "node/lease/local_leases.h"
#include "node/ledger/checkpoint_writer.h"
#include "node/share/offers.h"
#include "node/share/turns.h"
#include "os/core/fd.h"
#include "tests/capacity/machine.h"

namespace penstock::capacity {

inline node::ledger::LedgerCheckpointWriter::Files LedgerFiles(const std::string& disk) {
  return {.leases = disk + "/ledger.json", .limits = disk + "/ledger-limits.json"};
}

/// Begins with what the previous agent left on disk, in control groups and with the kubelet. Its
/// executor ends with it, and so does what was posted to it.
class Agent final : private device::Actions {
 public:
  explicit Agent(Machine& machine);
  ~Agent() override;

  /// Runs one callback. Returns whether there was one.
  bool RunOne() { return executor_.RunOne(); }
  /// Time passes; timers run.
  void Advance(base::Duration time);
  /// Until nothing is left to do now.
  void RunUntilIdle() { executor_.RunUntilIdle(); }

  // --- what is asked of it

  /// The devices are looked at and read again.
  void Look();
  /// The kubelet reads one of its lists.
  void KubeletReads(const std::string& resource);
  std::set<std::string> Resources() const;
  /// The kubelet asks for what it has chosen for Kubelet::asking.
  void Allocate();
  void PollPods();

  /// A run that waits until it is served or cancelled.
  void Want(node::allocate::Request request);
  void CancelAll();
  std::size_t waiting() const { return waiting_.size(); }

  void Move(const node::change::MoveRequest& request);
  void Divide(const node::change::LayoutRequest& request);
  /// A fault of a device that a reset ends, or only the end of its holders.
  void Break(const std::string& device, device::Severity severity);

  // --- what is seen of it

  /// "divide at await release", of each change under way.
  std::vector<std::string> UnderWay() const;
  bool serves() const { return serves_; }
  bool IsHealthy() const;
  /// The allocator that a device or part is offered by; empty: none.
  std::string AllocatorOf(const std::string& device);
  /// The slots of a device that can be allocated now.
  std::vector<node::share::OfferedSlot> UsableOf(const std::string& device);
  std::string Describe();

 private:
  struct Waiting {
    std::string ticket;
    node::allocate::Request request;
  };
  void Serve();
  void Follow(const node::share::NodeDevices& now, const node::share::NodeDevices& before);
  void Post(std::function<void()> function) { executor_.Post(std::move(function)); }
  /// After a moment of random length.
  void Soon(int most_ms, std::function<void()> function);
  void Counted(const std::function<void(base::Result<std::set<std::string>>)>& done);
  void ServeRuns();
  base::Status Attempt(const Waiting& waiting);
  node::change::Divisions::Vendor Vendor();
  void Release(std::function<void()> done);
  void Reopen();

  std::vector<std::string> ResetTogether(const device::Facts& device,
                                         const std::vector<const device::Facts*>&) const override {
    return {device.id};
  }
  void Reset(const std::vector<device::Facts>& devices,
             std::function<void(base::Status)> done) override;

  Machine& machine_;
  base::ManualExecutor executor_;
  node::change::testing::DivisibleDialect dialect_;
  node::change::testing::SlowDriver driver_;
  node::inventory::Inventory inventory_;
  node::ledger::Ledger ledger_;
  node::health::Monitor monitor_;
  node::share::Offers offers_;
  const os::UniqueFd self_;  // the process of all runs
  const api::ContainersConfig containers_;
  const adapter::kubelet::DeviceListChoice listing_;
  adapter::kubelet::AllocateHandler allocate_;
  std::optional<node::ledger::LedgerCheckpointWriter> ledger_writer_;
  std::optional<node::health::HealthCheckpointWriter> health_writer_;
  std::optional<node::lease::LocalLeases> leases_;
  std::optional<node::change::DeviceChanges> changes_;
  std::optional<node::change::DeviceMoves> moves_;
  std::optional<node::change::Divisions> divisions_;
  std::optional<node::change::PartsOnDemand> on_demand_;
  std::optional<node::change::Resets> resets_;
  std::vector<Waiting> waiting_;
  int tickets_ = 0;
  bool runs_posted_ = false;
  bool ready_ = true;    // the driver is open
  bool serves_ = false;  // all devices were read once
  bool polling_ = false, polled_ = false;
  std::shared_ptr<const std::vector<node::share::Offer>> shown_;  // to the kubelet
  std::optional<node::share::Turns> turns_;                       // last: calls all of the above
};

}  // namespace penstock::capacity
