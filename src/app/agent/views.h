// What the agent tells of itself: report, metrics, news for the cluster, and what a plan is made of. Changes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/report.h"
#include "app/agent/cluster_line.h"
#include "app/agent/configuration.h"
#include "app/agent/containers.h"
#include "app/agent/costs.h"
#include "app/agent/doors.h"
#include "app/agent/kubelet_start.h"
#include "app/agent/labeller.h"
#include "app/agent/plan.h"
#include "app/agent/spine.h"
#include "app/agent/telemetry.h"
#include "door/conditions.h"
#include "door/pages.h"
#include "door/preview.h"
#include "node/metrics/metrics.h"
#include "node/metrics/page_keeper.h"

namespace penstock::app {

/// The agent's parts, of which some come later than others. All outlive the views.
struct Parts {
  os::Loop& control;
  const std::string& node;  ///< its name
  const node::share::OpenDoors& open;
  Spine& spine;
  Telemetry& telemetry;
  Configuration& configuration;
  Labeller& labeller;
  std::optional<Containers>& containers;
  const std::optional<Doors>& doors;
  const std::optional<KubeletStart>& kubelet_start;
  const std::optional<ClusterLine>& cluster;
  const std::optional<Costs>& costs;
  const std::string& waiting_for;  ///< the other agent, while one has the lock
  door::Pages& pages;              ///< made after the views, which look at it once they are asked
};

/// On the control loop.
class Views {
 public:
  explicit Views(Parts parts);
  ~Views();
  Views(const Views&) = delete;
  Views& operator=(const Views&) = delete;

  api::Report Report();
  node::metrics::Page MetricsPage(node::metrics::Format format, node::metrics::Detail detail) { return pages_.Get(format, detail); }
  door::ClusterNews News();

  /// For a call on the control loop, where the snapshots stay what they are meanwhile.
  KeptPreviewNode ForPreview() const;

 private:
  void LookSoon();
  std::vector<api::DoorReport> DoorReports() const;
  std::string MakePage(node::metrics::Format format, node::metrics::Detail detail);
  node::metrics::Figures Figures() const;
  const std::vector<api::UnavailableMetric>& UnavailableMetrics();

  const Parts parts_;
  door::ConditionTimes condition_times_;
  base::TimerId look_ = 0;
  node::metrics::Press press_;
  node::metrics::PageKeeper pages_;
  std::optional<api::TelemetryConfig> shown_;  // how pages look now
  std::vector<base::Subscription> subscriptions_;

  /// What UnavailableMetrics said last, and of what: reports are made far more often than these change.
  struct {
    std::shared_ptr<const CurrentConfig> config;
    std::shared_ptr<const node::sample::Snapshot> samples;
    std::uint64_t facts = 0;
    std::vector<api::UnavailableMetric> metrics;
  } unavailable_;
};

}  // namespace penstock::app
