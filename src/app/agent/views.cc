// From the agent's parts to what others read.
#include "app/agent/views.h"

#include "door/report.h"
#include "door/unavailable_metrics.h"
#include "vendor/all.h"

namespace penstock::app {
namespace {

std::optional<node::metrics::ApiRequests> RequestsOf(const std::optional<ClusterLine>& cluster) {
  if (!cluster) return std::nullopt;
  const edge::kube::Requests& requests = cluster->requests();
  return node::metrics::ApiRequests{requests.reads, requests.writes, requests.streams, requests.retries, requests.failures};
}

std::optional<node::metrics::HttpCounts> AnswersOf(const door::Pages& pages) {
  if (pages.where().empty()) return std::nullopt;
  edge::http::Counts counts = pages.counts();
  return node::metrics::HttpCounts{.answers = std::move(counts.answers), .cut = counts.cut, .refused = counts.refused, .open = counts.open};
}

std::optional<node::metrics::WebConfig> WebConfigOf(door::Pages& pages) {
  const auto status = pages.protection().Get();
  if (status->file.empty()) return std::nullopt;
  return node::metrics::WebConfig{.applied = status->applied,
                                  .refused = status->refused,
                                  .last_successful = status->in_force && status->problem.empty(),
                                  .certificate_ends = status->certificate_ends};
}

}  // namespace

Views::Views(Parts parts)
    : parts_(parts),
      press_(vendor::FindDialect),
      pages_(parts.control, [this](auto format, auto detail) { return MakePage(format, detail); }) {
  const auto changed = [this](const auto&) {
    pages_.Changed();
    LookSoon();
  };
  LookSoon();
  subscriptions_.push_back(parts_.telemetry.sampler.published().Subscribe([this](const auto& samples) {
    press_.See(*samples, parts_.control.clock().Now());
    pages_.Changed();
  }));
  subscriptions_.push_back(parts_.telemetry.meter.published().Subscribe(changed));
  subscriptions_.push_back(parts_.spine.inventory.published().Subscribe(changed));
  subscriptions_.push_back(parts_.spine.ledger.published().Subscribe(changed));
  subscriptions_.push_back(parts_.spine.offers.published().Subscribe(changed));
  subscriptions_.push_back(parts_.spine.offers.servers().Subscribe(changed));
  subscriptions_.push_back(parts_.configuration.published().Subscribe(changed));
}

Views::~Views() { parts_.control.Cancel(look_); }

/// Conditions are since they are so, and not since somebody asked first.
void Views::LookSoon() {
  if (look_ != 0) return;
  look_ = parts_.control.PostAfter(std::chrono::seconds(1), [this] {
    look_ = 0;
    (void)Report();
  });
}

api::Report Views::Report() {
  Spine& spine = parts_.spine;
  const auto wished = spine.offers.wished().Get();
  const auto offers = spine.offers.published().Get();
  const auto servers = spine.offers.servers().Get();
  const auto health = spine.monitor.statuses();
  const auto samples = parts_.telemetry.sampler.published().Get();
  api::Report report = door::MakeReport(
      *spine.inventory.published().Get(), *spine.ledger.Get(),
      {.node = parts_.node,
       .doors = [this] { return DoorReports(); },
       .withheld = [this] { return parts_.doors ? parts_.doors->Withheld() : std::map<std::string, std::string>(); },
       .unusable_drivers =
           [this] { return parts_.containers ? parts_.containers->MismatchedDrivers() : std::map<std::string, std::string>(); },
       .wishes = &wished->wishes,
       .offers = offers.get(),
       .servers = servers.get(),
       .health = &health,
       .samples = samples.get(),
       .configuration = [this] { return parts_.configuration.published().Get()->report; },
       .times = &condition_times_,
       .now = parts_.control.clock().Wall()});
  if (parts_.containers) report.cdi = parts_.containers->Report();
  report.unavailable_metrics = UnavailableMetrics();
  return report;
}

const std::vector<api::UnavailableMetric>& Views::UnavailableMetrics() {
  auto config = parts_.configuration.published().Get();
  auto samples = parts_.telemetry.sampler.published().Get();
  const auto inventory = parts_.spine.inventory.published().Get();
  if (unavailable_.config == config && unavailable_.samples == samples && unavailable_.facts == inventory->facts_generation)
    return unavailable_.metrics;
  unavailable_ = {std::move(config), std::move(samples), inventory->facts_generation, {}};
  const api::TelemetryConfig& telemetry = unavailable_.config->config.telemetry;
  unavailable_.metrics = door::UnavailableMetrics(telemetry, vendor::Dialects(), *inventory, *unavailable_.samples);
  return unavailable_.metrics;
}

std::vector<api::DoorReport> Views::DoorReports() const {
  if (!parts_.doors) {
    // Which process that is, the log says: the pages are for everybody.
    const std::string reason = parts_.waiting_for.empty() ? "" : "another agent of this machine has not ended yet";
    return {{.name = "kubelet", .state = "waiting", .reason = reason}, {.name = "local", .state = "waiting", .reason = reason}};
  }
  auto reports = parts_.doors->Reports();
  if (parts_.kubelet_start && parts_.kubelet_start->waits()) reports.front().reason = parts_.kubelet_start->reason();  // the kubelet's
  if (parts_.cluster) reports.push_back(parts_.cluster->report());
  return reports;
}

std::string Views::MakePage(node::metrics::Format format, node::metrics::Detail detail) {
  const auto current = parts_.configuration.published().Get();
  if (shown_ != current->config.telemetry) {
    shown_ = current->config.telemetry;
    press_.Configure(*shown_, parts_.node);
  }
  Spine& spine = parts_.spine;
  return press_.Make({.inventory = spine.inventory.published().Get(),
                      .ledger = spine.ledger.Get(),
                      .samples = parts_.telemetry.sampler.published().Get(),
                      .usage = parts_.telemetry.meter.published().Get(),
                      .offers = spine.offers.published().Get(),
                      .servers = spine.offers.servers().Get()},
                     Figures(), format, detail);
}

node::metrics::Figures Views::Figures() const {
  const auto& monitor = parts_.spine.monitor;
  return {.version = PENSTOCK_VERSION,
          .now = parts_.control.clock().Wall(),
          .queue_length = parts_.doors ? parts_.doors->waiting() : 0,
          .processes = parts_.costs ? parts_.costs->Get() : std::vector<node::metrics::ProcessCost>{},
          .evidence = monitor.Counts(),
          .recent_evidence = monitor.CountsWithin(shown_->xid_window),
          .health = monitor.statuses(),
          .transitions = monitor.Transitions(),
          .resets = monitor.Resets(),
          .reloads = parts_.configuration.reloads(),
          .api_requests = RequestsOf(parts_.cluster),
          .http = AnswersOf(parts_.pages),
          .web_config = WebConfigOf(parts_.pages),
          .page_took = pages_.took()};
}

door::ClusterNews Views::News() {
  door::ClusterNews news{.report = Report(), .notices = parts_.spine.monitor.Notices()};
  // They tell how devices are shared, as the kubelet is told it.
  const bool waits = !parts_.kubelet_start || parts_.kubelet_start->waits();
  if (parts_.labeller.labels().begun() && !waits) news.labels = *parts_.labeller.labels().published().Get();
  return news;
}

KeptPreviewNode Views::ForPreview() const {
  Spine& spine = parts_.spine;
  const auto inventory = spine.inventory.published().Get();
  const auto ledger = spine.ledger.Get();
  return {inventory,
          ledger,
          {.inventory = *inventory,
           .ledger = *ledger,
           .dialect_of = vendor::FindDialect,
           .machine = parts_.labeller.machine().value_or(os::MachineFacts{}),
           .timestamp = parts_.labeller.started(),
           .moves = parts_.doors ? parts_.doors->by_hand() : node::share::Moves{},
           .servers = *spine.offers.servers().Get(),
           .kubelet_exists = parts_.open.kubelet,
           .nfd = parts_.labeller.nfd()}};
}

}  // namespace penstock::app
