// Validates this node continuously: looks at device files when they change, judges each report, and
// keeps the files by which other programs wait for this node.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/compat/nvidia/node_status.h"
#include "api/config/node_config.h"
#include "api/report.h"
#include "app/agent/compute_check.h"
#include "app/agent/container_check.h"
#include "base/lifetime.h"
#include "node/inventory/inventory.h"
#include "node/validate/validate.h"
#include "os/loop.h"
#include "os/machine_facts.h"
#include "os/watch/watch.h"

namespace penstock::app {

/// On the control loop; files are read and written on `io`. Without timers of its own: device files
/// are watched.
class Validation {
 public:
  /// `changed` is called when a report would be judged otherwise. `programs` is the folder of this
  /// program and of its companions.
  Validation(os::Loop& control, base::Executor& io, node::inventory::Inventory& inventory,
             const api::NodeConfig& config, const std::string& programs,
             std::function<void()> changed);
  ~Validation();
  Validation(const Validation&) = delete;
  Validation& operator=(const Validation&) = delete;

  void Configure(const api::NodeConfig& config);

  /// The inventory has changed.
  void DevicesChanged();

  /// All devices were read once.
  void Begin();

  /// Call when this agent serves the node: the files of other programs are its own from now on,
  /// also those in the folders of `last`, the configurations of the agent before.
  void Serve(const std::vector<api::NodeConfig>& last);

  /// What the agent knows of containers.
  struct OfContainers {
    node::validate::Toolkit toolkit;
    std::optional<ContainerStart> start;  ///< nothing: none can be started
    bool changing = false;                ///< a change of devices or drivers is under way
  };

  /// The steps of a report whose other parts are complete, with the times of their last changes.
  std::vector<api::ValidationStep> Judge(const api::Report& report, OfContainers containers,
                                         const std::optional<os::MachineFacts>& machine);

  /// The steps of the last report; empty: there was none.
  const std::vector<api::ValidationStep>& steps() const { return steps_; }

  /// The metrics of the node status exporter, from the last report; empty: they are not configured.
  std::vector<api::compat::NodeStatusMetric> Metrics() const;

 private:
  void Look();
  void LookSoon();
  void Looked(const node::validate::StandingFiles& files);
  void Watch(const std::vector<node::validate::WantedFile>& wanted);
  std::map<std::string, int> OnBus(const std::optional<os::MachineFacts>& machine) const;
  void Stamp(std::vector<api::ValidationStep>& steps);
  /// After a start, what has not been decided yet leaves everything as it was.
  bool IsStarting() const;
  void ClearFolder(const std::string& folder);
  void UpdateFiles();
  void FilesUpdated(const std::set<std::string>& cleared, const std::string& problem);

  os::Loop& control_;
  base::Executor& io_;
  node::inventory::Inventory& inventory_;
  const std::function<void()> changed_;
  std::shared_ptr<const api::NodeConfig> node_config_;
  api::compat::DriverPlace driver_;
  api::ValidationConfig config_;
  bool discovered_ = false, serves_ = false;
  std::optional<base::TimePoint> served_at_;
  bool settled_ = false;

  std::uint64_t facts_generation_ = 0;
  std::set<std::string> gone_;  // devices
  std::optional<node::validate::StandingFiles> files_;
  bool looking_ = false, again_ = false;
  base::TimePoint looked_at_{};
  base::TimerId look_timer_ = 0, files_timer_ = 0;
  std::string looked_in_;  // instances of the drivers whose files were looked at last
  std::map<std::string, std::unique_ptr<os::PathWatch>> watches_;

  ComputeCheck compute_;
  ContainerCheck container_;
  std::vector<api::ValidationStep> steps_;
  std::map<std::string, std::pair<std::string, std::string>> since_;  // step → state and its time
  api::compat::NodeStatusFacts status_;

  std::unique_ptr<os::PathWatch> folder_watch_;
  std::set<std::string> to_clear_;  // other folders into which files may have been written
  std::string problem_;
  bool updating_ = false, update_again_ = false;
  base::Lifetime lifetime_;
};

}  // namespace penstock::app
