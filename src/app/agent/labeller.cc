// Publishes nothing before the facts of machine and devices are known: a missing label must mean
// that the fact is absent.
#include "app/agent/labeller.h"

#include <utility>

#include "app/devices/paths.h"
#include "backend/all.h"

namespace penstock::app {

Labeller::Labeller(os::Loop& control, base::Executor& io, node::inventory::Inventory& inventory,
                   node::share::Offers& offers, const std::string& sysfs_root, Callbacks callbacks)
    : control_(control),
      io_(io),
      inventory_(inventory),
      offers_(offers),
      sysfs_root_(sysfs_root),
      callbacks_(std::move(callbacks)),
      labels_(backend::FindDialect),
      started_(std::chrono::duration_cast<std::chrono::seconds>(
                   control.clock().Wall().time_since_epoch())
                   .count()),
      pci_watch_(control, sysfs_root, [this] { PciChanged(); }) {}

void Labeller::Configure(const api::NodeConfig& config) {
  configured_ = true;
  config_ = config.labels;
  parts_ = config.parts;
  profiled_parts_ = config.profiled_parts;
  OpenFeaturesFile();
  io_.Post([this, paths = MachinePathsOf(config)] {
    control_.Post([this, machine = os::ReadMachineFacts(paths)] {
      machine_ = machine;
      callbacks_.machine_read();
      Update();
    });
  });
}

void Labeller::PciChanged() {
  callbacks_.pci_changed();
  io_.Post([this] {
    control_.Post([this, pci = os::ReadPciFunctions(sysfs_root_)] {
      if (!machine_) return;
      machine_->pci = pci;
      callbacks_.machine_read();
      Update();
    });
  });
}

void Labeller::Begin() {
  begun_ = true;
  Update();
}

void Labeller::Serve(std::string former) {
  serves_ = true;
  features_path_ = std::move(former);
  OpenFeaturesFile();
}

void Labeller::OpenFeaturesFile() {
  const std::string& path = config_.features_file;
  if (!serves_ || !configured_ || (features_file_ && path == features_path_)) return;
  features_file_.reset();
  if (!features_path_.empty() && path != features_path_)
    adapter::cluster::RemoveFeaturesFile(io_, features_path_, path);
  features_path_ = path;
  if (!path.empty()) features_file_.emplace(control_, io_, labels_, path);
}

void Labeller::SetNfd(bool labels_this_node) {
  nfd_ = labels_this_node;
  Update();
}

void Labeller::SetFeatureDiscovery(bool on) {
  if (std::exchange(feature_discovery_, on) != on) Update();
}

void Labeller::Update() {
  if (!begun_ || !machine_) return;
  const api::Switch features = config_.host_features;
  labels_.Set({.machine = *machine_,
               .timestamp = started_,
               .config = config_,
               .parts = parts_,
               .profiled_parts = profiled_parts_,
               .host_features = api::IsOn(features, !nfd_),
               .feature_discovery = feature_discovery_});
  labels_.Update({.inventory = inventory_.published().Get(),
                  .servers = offers_.Servers(),
                  .desired = offers_.Desired()});
  callbacks_.labelled();
}

}  // namespace penstock::app
