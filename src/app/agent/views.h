// Computes what the agent publishes about itself: report, metrics page, updates for the cluster,
// and the input of previews.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapter/pages/pages.h"
#include "api/page_state.h"
#include "api/report.h"
#include "app/agent/adapters.h"
#include "app/agent/boot_follower.h"
#include "app/agent/changes.h"
#include "app/agent/client_pause.h"
#include "app/agent/cluster_connection.h"
#include "app/agent/configuration.h"
#include "app/agent/containers.h"
#include "app/agent/device_pipeline.h"
#include "app/agent/kubelet_start.h"
#include "app/agent/labeller.h"
#include "app/agent/layout_followers.h"
#include "app/agent/preview.h"
#include "app/agent/process_stats.h"
#include "app/agent/telemetry.h"
#include "app/agent/validation.h"
#include "node/metrics/metrics.h"
#include "node/metrics/page_cache.h"
#include "node/sample/hour_history.h"
#include "view/conditions.h"
#include "view/page_state.h"
#include "view/preview.h"
#include "view/report_cache.h"

namespace penstock::app {

/// The agent's parts, some of which are constructed later than others. All must outlive the views.
struct Parts {
  os::Loop& control;
  const std::string& node;  ///< its name
  const node::share::EnabledAllocators& enabled;
  DevicePipeline& pipeline;
  Telemetry& telemetry;
  Configuration& configuration;
  Labeller& labeller;
  Validation& validation;
  const BootFollower& boot;
  std::optional<Containers>& containers;
  std::optional<Adapters>& adapters;
  std::optional<Changes>& changes;
  std::optional<LayoutFollowers>& layouts;
  std::optional<ClientPause>& clients;
  const std::optional<KubeletStart>& kubelet_start;
  std::optional<ClusterConnection>& cluster;
  const std::optional<ProcessStats>& process_stats;
  const std::string& waiting_for;  ///< the other agent, while that holds the lock
  adapter::pages::Pages& pages;    ///< constructed after the views, which use it only when asked
};

/// On the control loop.
class Views {
 public:
  explicit Views(Parts parts);
  ~Views();
  Views(const Views&) = delete;
  Views& operator=(const Views&) = delete;

  /// Something changed that reports or pages show, and perhaps the cluster beside the report.
  void Changed();
  /// Only what pages show changed, and not what reports say.
  void PagesChanged() { pages_.Changed(); }
  /// Only what the cluster is shown beside the report changed: labels, notices, paused programs.
  void ClusterChanged();
  /// Devices were read, and say the same as before.
  void ReadTimesChanged();
  void AddSamples(const node::sample::Snapshot& samples);

  /// The report of this moment, for a client.
  api::Report Report() { return *report_.Make(); }
  node::metrics::RenderedPage MetricsPage(node::metrics::PageFormat format,
                                          node::metrics::Detail detail) {
    return pages_.Get(format, detail);
  }
  adapter::cluster::ClusterUpdate MakeClusterUpdate();
  api::PageState PageState();
  api::PageHistory PageHistory() const;

  /// Only for calls on the control loop, where the snapshots do not change meanwhile.
  KeptPreviewNode ForPreview() const;

 private:
  api::Report MakeReport();
  Validation::OfContainers OfContainers() const;
  api::LayoutReport LayoutReport() const;
  std::string WhyKubeletWaits() const;
  std::vector<api::AllocatorReport> AllocatorReports() const;
  std::string MakePage(node::metrics::PageFormat format, node::metrics::Detail detail);
  node::metrics::PageInputs MakePageInputs() const;
  const std::vector<api::UnavailableMetric>& UnavailableMetrics();

  const Parts parts_;
  view::ConditionTimes condition_times_;
  std::uint64_t seen_health_ = 0;  // Monitor::generation, as followed last
  view::ReportCache report_;
  node::metrics::MetricsRenderer renderer_;
  node::metrics::PageCache pages_;
  node::sample::HourHistory history_;
  // How pages look now.
  std::optional<api::TelemetryConfig> shown_;

  /// The last result of UnavailableMetrics and its inputs: reports are made far more often than
  /// these change.
  struct {
    std::shared_ptr<const CurrentConfig> config;
    std::shared_ptr<const node::sample::Snapshot> samples;
    std::uint64_t facts = 0;
    std::vector<api::UnavailableMetric> metrics;
  } unavailable_;
};

}  // namespace penstock::app
