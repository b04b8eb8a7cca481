// The labels of this node, put together: the machine's facts, the devices', how these are shared, and what the configuration says of them.
// Construction only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "api/node_config.h"
#include "door/features_file.h"
#include "node/label/labels.h"
#include "node/share/offers.h"
#include "os/loop.h"
#include "os/pci_watch.h"

namespace penstock::app {

/// On the control loop; the machine is read on `io`.
class Labeller {
 public:
  /// `sysfs_root` is where PCI functions come and go; `pci_changed` is called when they have.
  Labeller(os::Loop& control, base::Executor& io, node::inventory::Inventory& inventory, node::share::Offers& offers,
           const std::string& sysfs_root, std::function<void()> pci_changed);

  /// Reads the machine; again where the configuration is another one.
  void Configure(const api::NodeConfig& config);

  /// The first look at the devices is over.
  void Begin();

  /// Whether NFD labels this node: then the host's features are its to say, unless the configuration says otherwise.
  void SetNfd(bool labels_this_node);

  /// This agent serves the node: labels may leave by the file that the configuration names.
  void Serve();

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
  const std::string sysfs_root_;
  const std::function<void()> pci_changed_;
  node::label::Labels labels_;
  const std::int64_t started_;
  std::optional<os::MachineFacts> machine_;
  api::LabelsConfig config_;
  bool begun_ = false;
  bool serves_ = false;
  bool nfd_ = false;
  std::string features_path_;
  std::optional<door::FeaturesFile> features_file_;
  os::PciWatch pci_watch_;
};

}  // namespace penstock::app
