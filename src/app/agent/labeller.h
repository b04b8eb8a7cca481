// Computes this node's labels from the facts of the machine and its devices, the sharing of
// devices, and the configuration.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "adapter/cluster/features_file.h"
#include "api/config/node_config.h"
#include "node/label/labels.h"
#include "node/share/offers.h"
#include "os/loop.h"
#include "os/watch/pci_watch.h"

namespace penstock::app {

/// On the control loop; the machine's facts are read on `io`.
class Labeller {
 public:
  struct Callbacks {
    std::function<void()> pci_changed;  ///< PCI functions have appeared or disappeared
    std::function<void()>
        labelled;  ///< the labels may be different for another reason than devices
    std::function<void()> machine_read;  ///< `machine` may be different
  };
  /// `sysfs_root` is watched for PCI functions.
  Labeller(os::Loop& control, base::Executor& io, node::inventory::Inventory& inventory,
           node::share::Offers& offers, const std::string& sysfs_root, Callbacks callbacks);

  /// Reads the machine's facts; call again for a changed configuration.
  void Configure(const api::NodeConfig& config);

  /// The first look at the devices is over.
  void Begin();

  /// Whether NFD labels this node: if so, NFD publishes the host's features, unless the
  /// configuration says otherwise.
  void SetNfd(bool labels_this_node);

  /// Whether this agent says of the devices what GPU Feature Discovery does; before the first call
  /// it does.
  void SetFeatureDiscovery(bool on);

  /// Call when this agent serves the node: the configured file of labels is written from now on.
  /// `former` is the file of the agent before; empty: it had none. A file that is not configured
  /// any more is removed.
  void Serve(std::string former);

  /// Takes the devices as they are now.
  void Follow(const node::share::NodeDevices& now) { labels_.Update(now); }

  bool nfd() const { return nfd_; }
  node::label::Labels& labels() { return labels_; }
  const std::optional<os::MachineFacts>& machine() const { return machine_; }
  std::int64_t started() const { return started_; }  ///< seconds since 1970

 private:
  void PciChanged();
  void Update();
  void OpenFeaturesFile();

  os::Loop& control_;
  base::Executor& io_;
  node::inventory::Inventory& inventory_;
  node::share::Offers& offers_;
  const std::string sysfs_root_;
  const Callbacks callbacks_;
  node::label::Labels labels_;
  const std::int64_t started_;
  std::optional<os::MachineFacts> machine_;
  api::LabelsConfig config_;
  api::PartsStrategy parts_ = api::PartsStrategy::kDefault, profiled_parts_ = parts_;
  bool configured_ = false;
  bool begun_ = false;
  bool serves_ = false;
  bool nfd_ = false;
  bool feature_discovery_ = true;
  std::string features_path_;  // of features_file_, or the former one
  std::optional<adapter::cluster::FeaturesFile> features_file_;
  os::PciWatch pci_watch_;
};

}  // namespace penstock::app
