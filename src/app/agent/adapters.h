// Constructs the parts that only the holder of the run directory's lock runs: the ledger with its
// checkpoint, the attribution of processes, and the adapters of this machine's allocators.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapter/kubelet/kubelet_adapter.h"
#include "adapter/local/local_adapter.h"
#include "api/config/node_config.h"
#include "api/report.h"
#include "app/agent/containers.h"
#include "node/attribute/follow.h"
#include "node/change/device_moves.h"
#include "node/change/parts_on_demand.h"
#include "node/ledger/checkpoint_writer.h"
#include "node/share/offers.h"
#include "os/loop.h"

namespace penstock::app {

/// Decides which allocators are enabled on this machine, from the configuration and from what
/// exists.
node::share::EnabledAllocators DecideAllocators(const api::NodeConfig& config);

/// On the control loop. Each part starts when it is constructed, except the kubelet's adapter,
/// which OpenKubelet starts.
class Adapters {
 public:
  struct Node {
    os::Loop& control;
    base::Executor& io;
    node::inventory::Inventory& inventory;
    node::ledger::Ledger& ledger;
    node::share::Offers& offers;
    Containers& containers;
  };
  struct Callbacks {
    std::function<std::shared_ptr<const api::NodeConfig>()> config;  ///< in force
    std::function<api::Report()> report;
    std::function<api::Samples()> samples;  ///< LocalAdapter::Callbacks::samples
    std::function<void(const protocol::broker::UsageRequest&, const api::Viewer&,
                       adapter::local::AnswerQueue::Done)>
        usage;                  ///< as LocalAdapter::Callbacks::usage
    std::function<void()> end;  ///< an authorized user asks the agent to end
    std::function<void(const protocol::broker::PreviewRequest&, adapter::local::AnswerQueue::Done)>
        preview;  ///< as LocalAdapter::Callbacks::preview
    std::function<void(const node::change::MoveRequest&, node::change::DeviceMoves::Progress,
                       node::change::DeviceMoves::Done)>
        move;  ///< DeviceMoves::Set
    std::function<void(const std::string& vendor, const node::change::LayoutRequest&,
                       node::change::Divisions::Progress, node::change::Divisions::Done)>
        divide;  ///< as LocalAdapter::Callbacks::divide
    adapter::local::DriverRelease release;
    std::function<node::change::PartsOnDemand*()> on_demand;
    std::function<void(const adapter::kubelet::KubeletAmounts&)> kubelet_has;
    std::function<std::map<std::string, std::string>()>
        waiting;  ///< KubeletAdapter::Options::waiting
    /// The way in which containers get devices has changed, or which devices are withheld from
    /// them, or how a plugin stands with the kubelet.
    std::function<void()> containers_differ;
  };

  /// What the previous agent left on disk.
  struct Remembered {
    node::ledger::LedgerCheckpointWriter::Remembered ledger;
    node::lease::QueueCheckpoint queue;
  };
  /// Loads it. Returns kUnavailable if a file exists and cannot be read; the queue is the
  /// exception: an unreadable one does not prevent the start. Blocks.
  static base::Result<Remembered> Remember(const std::string& state_dir,
                                           const std::string& boot_id);

  /// Takes over what the previous agent left.
  Adapters(Node node, node::share::EnabledAllocators enabled, const api::NodeConfig& config,
           Remembered remembered, std::string boot_id, Callbacks callbacks);

  /// Applies a new configuration.
  void Configure(const api::NodeConfig& config);

  /// The engine or the written specifications have changed.
  void ContainersChanged() {
    if (kubelet_) kubelet_->ContainersChanged();
  }

  /// Takes the next turn of the devices.
  void Follow(const node::share::NodeDevices& now, const node::share::NodeDevices& before);

  /// Null where the kubelet gets no devices.
  adapter::kubelet::KubeletAdapter* kubelet() { return kubelet_ ? &*kubelet_ : nullptr; }

  /// Starts to listen for local users. The caller must hold the lock.
  base::Status Listen() { return local_.Open(); }

  /// Call when all devices were read once, so that none is advertised as unhealthy only because it
  /// was not read yet.
  void OpenKubelet();

  std::vector<api::AllocatorReport> Reports() const;

  /// Devices that an allocator's adapter withholds although they are offered to it, with the
  /// reason.
  std::map<std::string, std::string> Withheld() const;

  /// Number of queued runs.
  std::size_t waiting() const { return local_.waiting(); }

  view::PageQueue Queue() { return local_.Queue(); }

  /// A request that waits may be served now.
  void TryQueue() { local_.TryQueue(); }

 private:
  void MakeKubeletAdapter(Node node, const api::NodeConfig& config, Callbacks callbacks,
                          const std::vector<node::ledger::Lease>& remembered);

  node::ledger::LedgerCheckpointWriter writer_;
  node::attribute::Follow follow_;
  adapter::local::LocalAdapter local_;
  std::optional<adapter::kubelet::KubeletAdapter> kubelet_;
  const std::string why_no_kubelet_;
};

}  // namespace penstock::app
