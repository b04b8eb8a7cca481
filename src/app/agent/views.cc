#include "app/agent/views.h"

#include "backend/all.h"
#include "base/core/strings.h"
#include "view/report.h"
#include "view/unavailable_metrics.h"

namespace penstock::app {
namespace {

/// Of the Node: the layout that a label asked for and why its state is what it is.
constexpr char kReasonAnnotation[] = "penstock.io/layout-reason";

std::optional<node::metrics::ApiRequests> RequestsOf(
    const std::optional<ClusterConnection>& cluster) {
  if (!cluster) return std::nullopt;
  const protocol::kube::Requests& requests = cluster->requests();
  return node::metrics::ApiRequests{requests.reads, requests.writes, requests.streams,
                                    requests.retries, requests.failures};
}

std::optional<node::metrics::HttpCounts> AnswersOf(const adapter::pages::Pages& pages) {
  if (pages.where().empty()) return std::nullopt;
  protocol::http::Counts counts = pages.counts();
  return node::metrics::HttpCounts{.answers = std::move(counts.answers),
                                   .cut = counts.cut,
                                   .refused = counts.refused,
                                   .open = counts.open};
}

std::vector<node::metrics::NodeValue> NodeValuesOf(const Validation& validation) {
  std::vector<node::metrics::NodeValue> values;
  for (const api::compat::NodeStatusMetric& one : validation.Metrics())
    values.push_back({one.name, one.help, one.value});
  return values;
}

std::optional<node::metrics::WebConfigCounts> WebConfigOf(adapter::pages::Pages& pages) {
  const auto status = pages.protection().Get();
  if (status->file.empty()) return std::nullopt;
  return node::metrics::WebConfigCounts{
      .applied = status->applied,
      .refused = status->refused,
      .last_successful = status->in_force && status->problem.empty(),
      .certificate_ends = status->certificate_ends};
}

/// One report of the layouts of all vendors: as bad as the worst.
void AddLayout(api::LayoutReport& report, const node::change::LayoutState& layout) {
  if (layout.layout.empty()) return;
  const auto add = [](std::string& text, const std::string& more, const char* between) {
    if (!text.empty() && !more.empty()) text += between;
    text += more;
  };
  add(report.name, layout.layout, ", ");
  if (report.source != layout.source) add(report.source, layout.source, ", ");
  add(report.reason, layout.reason, "; ");
  for (const char* state : {"failed", "pending", "success"})
    if (report.state == state || layout.state == state) {
      report.state = state;
      break;
    }
}

}  // namespace

Views::Views(Parts parts)
    : parts_(parts),
      report_(parts.control,
              {.make = [this] { return MakeReport(); }, .differs = [this] { ClusterChanged(); }}),
      renderer_(backend::FindDialect),
      pages_(parts.control, [this](auto format, auto detail) { return MakePage(format, detail); }) {
}

Views::~Views() = default;

void Views::AddSamples(const node::sample::Snapshot& samples) {
  const base::TimePoint now = parts_.control.clock().Now();
  renderer_.AddSample(samples, now);
  history_.Add(samples, now);
  pages_.Changed();
}

void Views::Changed() {
  seen_health_ = parts_.pipeline.monitor.generation();
  pages_.Changed();
  report_.Changed();
  ClusterChanged();
}

void Views::ClusterChanged() {
  if (parts_.cluster) parts_.cluster->ScheduleUpdate();
}

/// What a reading says of a device's health may be new although the device is as before: a warning,
/// an Event.
void Views::ReadTimesChanged() {
  if (parts_.pipeline.monitor.generation() != seen_health_) return Changed();
  pages_.Changed();
  report_.ReadTimesChanged();
}

api::Report Views::MakeReport() {
  DevicePipeline& pipeline = parts_.pipeline;
  const auto desired = pipeline.offers.Desired();
  const auto offers = pipeline.offers.Get();
  const auto servers = pipeline.offers.Servers();
  const auto health = pipeline.monitor.statuses();
  const auto samples = parts_.telemetry.sampler.published().Get();
  api::Report report = view::MakeReport(
      *pipeline.inventory.published().Get(), *pipeline.ledger.Get(),
      {.node = parts_.node,
       .allocators = [this] { return AllocatorReports(); },
       .withheld =
           [this] {
             return parts_.adapters ? parts_.adapters->Withheld()
                                    : std::map<std::string, std::string>();
           },
       .unusable_drivers =
           [this] {
             return parts_.containers ? parts_.containers->MismatchedDrivers()
                                      : std::map<std::string, std::string>();
           },
       .assignments = &desired->assignments,
       .offers = offers.get(),
       .servers = servers.get(),
       .health = &health,
       .samples = samples.get(),
       .configuration = [this] { return parts_.configuration.published().Get()->report; },
       .layout = [this] { return LayoutReport(); },
       .next_kernel = parts_.boot.next_kernel(),
       .cdi =
           [this] {
             return parts_.containers
                        ? parts_.containers->Report(parts_.configuration.services_known())
                        : api::CdiReport();
           },
       .validation =
           [this](const api::Report& made) {
             return parts_.validation.Judge(made, OfContainers(), parts_.labeller.machine());
           },
       .times = &condition_times_,
       .now = parts_.control.clock().Wall()});
  report.unavailable_metrics = UnavailableMetrics();
  return report;
}

const std::vector<api::UnavailableMetric>& Views::UnavailableMetrics() {
  auto config = parts_.configuration.published().Get();
  auto samples = parts_.telemetry.sampler.published().Get();
  const auto inventory = parts_.pipeline.inventory.published().Get();
  if (unavailable_.config == config && unavailable_.samples == samples &&
      unavailable_.facts == inventory->facts_generation)
    return unavailable_.metrics;
  unavailable_ = {std::move(config), std::move(samples), inventory->facts_generation, {}};
  const api::TelemetryConfig& telemetry = unavailable_.config->config.telemetry;
  unavailable_.metrics =
      view::UnavailableMetrics(telemetry, backend::Dialects(), *inventory, *unavailable_.samples);
  return unavailable_.metrics;
}

Validation::OfContainers Views::OfContainers() const {
  if (!parts_.containers) return {};
  return {.toolkit = parts_.containers->Toolkit(),
          .start = parts_.containers->StartedBy(),
          .changing = parts_.changes &&
                      (parts_.changes->under_way() || !parts_.changes->restoring().empty())};
}

api::LayoutReport Views::LayoutReport() const {
  if (!parts_.changes) return {};
  api::LayoutReport report;
  for (const Changes::OfVendor& one : parts_.changes->divided())
    AddLayout(report, one.divisions->state());
  if (report.state == "pending" && report.reason.empty()) report.reason = WhyKubeletWaits();
  return report;
}

/// While devices are divided again after a reboot; empty otherwise.
std::string Views::WhyKubeletWaits() const {
  if (!parts_.changes || !parts_.enabled.contains(api::kKubeletAllocator)) return "";
  std::vector<std::string> reasons;
  for (auto& [vendor, reason] : parts_.changes->restoring()) reasons.push_back(reason);
  return base::Join(reasons, "; ");
}

std::vector<api::AllocatorReport> Views::AllocatorReports() const {
  if (!parts_.adapters) {
    // The log names that process; the pages are readable by everyone.
    const std::string reason =
        parts_.waiting_for.empty() ? "" : "another agent on this machine has not exited yet";
    std::vector<api::AllocatorReport> waiting;
    for (const api::Allocator& one : api::Allocators())
      waiting.push_back({.name = std::string(one.name), .state = "waiting", .reason = reason});
    return waiting;
  }
  auto reports = parts_.adapters->Reports();
  if (parts_.kubelet_start && parts_.kubelet_start->waits())
    reports.front().reason = parts_.kubelet_start->reason();  // of the kubelet
  if (const std::string why = WhyKubeletWaits(); !why.empty()) reports.front().reason = why;
  if (parts_.cluster) reports.push_back(parts_.cluster->report());
  return reports;
}

std::string Views::MakePage(node::metrics::PageFormat format, node::metrics::Detail detail) {
  const auto current = parts_.configuration.published().Get();
  if (shown_ != current->config.telemetry) {
    shown_ = current->config.telemetry;
    renderer_.Configure(*shown_, parts_.node);
  }
  DevicePipeline& pipeline = parts_.pipeline;
  return renderer_.Make({.inventory = pipeline.inventory.published().Get(),
                         .ledger = pipeline.ledger.Get(),
                         .samples = parts_.telemetry.sampler.published().Get(),
                         .usage = parts_.telemetry.meter.Get(),
                         .offers = pipeline.offers.Get(),
                         .servers = pipeline.offers.Servers(),
                         .jobs = parts_.telemetry.jobs.published().Get()},
                        MakePageInputs(), format, detail);
}

node::metrics::PageInputs Views::MakePageInputs() const {
  const auto& monitor = parts_.pipeline.monitor;
  return {.version = PENSTOCK_VERSION,
          .now = parts_.control.clock().Wall(),
          .queue_length = parts_.adapters ? parts_.adapters->waiting() : 0,
          .processes = parts_.process_stats ? parts_.process_stats->Get()
                                            : std::vector<node::metrics::ProcessCost>{},
          .evidence = monitor.Counts(),
          .recent_evidence = monitor.CountsWithin(shown_->errors_window),
          .health = monitor.statuses(),
          .transitions = monitor.Transitions(),
          .resets = monitor.Resets(),
          .reloads = parts_.configuration.reloads(),
          .api_requests = RequestsOf(parts_.cluster),
          .http = AnswersOf(parts_.pages),
          .web_config = WebConfigOf(parts_.pages),
          .validation = parts_.validation.steps(),
          .node_values = NodeValuesOf(parts_.validation),
          .page_took = pages_.took()};
}

adapter::cluster::ClusterUpdate Views::MakeClusterUpdate() {
  adapter::cluster::ClusterUpdate update{.report = report_.Get(),
                                         .notices = parts_.pipeline.monitor.Notices()};
  // Labels show how devices are shared and divided, so they wait until all vendors' are divided.
  const bool restoring = parts_.changes && !parts_.changes->restoring().empty();
  const bool waits = !parts_.kubelet_start || parts_.kubelet_start->waits() || restoring;
  if (parts_.labeller.labels().begun() && !waits)
    update.labels = *parts_.labeller.labels().published().Get();
  const bool begun = parts_.labeller.labels().begun() && parts_.changes.has_value();
  update.known = begun && restoring;
  if (begun && parts_.clients) update.pause = parts_.clients->Keys();
  if (!update.labels || !parts_.layouts) return update;
  const auto state = parts_.layouts->Labels();
  const api::LayoutReport& layout = update.report->layout;
  update.annotations[kReasonAnnotation] =
      state.empty() || layout.reason.empty() ? "" : view::DescribeLayout(layout);
  update.labels->insert(state.begin(), state.end());
  return update;
}

api::PageState Views::PageState() {
  return view::MakePageState(*report_.Make(), *parts_.telemetry.sampler.published().Get(),
                             backend::FindDialect,
                             parts_.adapters ? parts_.adapters->Queue() : view::PageQueue{});
}

api::PageHistory Views::PageHistory() const {
  return view::MakePageHistory(*parts_.telemetry.sampler.published().Get(), history_,
                               parts_.control.clock().Now());
}

KeptPreviewNode Views::ForPreview() const {
  DevicePipeline& pipeline = parts_.pipeline;
  const auto inventory = pipeline.inventory.published().Get();
  const auto ledger = pipeline.ledger.Get();
  return {inventory,
          ledger,
          {.inventory = *inventory,
           .ledger = *ledger,
           .dialect_of = backend::FindDialect,
           .machine = parts_.labeller.machine().value_or(os::MachineFacts{}),
           .timestamp = parts_.labeller.started(),
           .moves = parts_.changes ? parts_.changes->moves().manual() : node::share::Moves{},
           .servers = *pipeline.offers.Servers(),
           .kubelet_exists = parts_.enabled.contains(api::kKubeletAllocator),
           .nfd = parts_.labeller.nfd()}};
}

}  // namespace penstock::app
