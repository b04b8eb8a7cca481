// What the agent tells of itself: report, metrics, news for the cluster, and what a plan is made of. Changes nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/report.h"
#include "app/agent/cluster_line.h"
#include "app/agent/configuration.h"
#include "app/agent/containers.h"
#include "app/agent/costs.h"
#include "app/agent/doors.h"
#include "app/agent/labeller.h"
#include "app/agent/spine.h"
#include "door/conditions.h"
#include "door/preview.h"
#include "node/metrics/page.h"

namespace penstock::app {

/// The agent's parts, of which some come later than others. All outlive the views.
struct Parts {
  os::Loop& control;
  const std::string& node;  ///< its name
  const node::share::OpenDoors& open;
  Spine& spine;
  const Configuration& configuration;
  Labeller& labeller;
  std::optional<Containers>& containers;
  const std::optional<Doors>& doors;
  const std::optional<ClusterLine>& cluster;
  const std::optional<Costs>& costs;
  const std::string& waiting_for;  ///< the other agent, while one has the lock
};

/// On the control loop.
class Views {
 public:
  explicit Views(Parts parts) : parts_(parts) {}

  api::Report Report();
  std::string Metrics() const;
  node::metrics::Page MetricsPage(node::metrics::Format format);
  door::ClusterNews News();

  /// For a call on the control loop, where the snapshots stay what they are meanwhile.
  door::PreviewNode ForPreview() const;

 private:
  std::vector<api::DoorReport> DoorReports() const;

  const Parts parts_;
  door::ConditionTimes condition_times_;
};

}  // namespace penstock::app
