// From the agent's parts to what others read.
#include "app/agent/views.h"

#include "door/report.h"
#include "vendor/all.h"

namespace penstock::app {
namespace {

std::optional<node::metrics::ApiRequests> RequestsOf(const std::optional<ClusterLine>& cluster) {
  if (!cluster) return std::nullopt;
  const edge::kube::Requests& requests = cluster->requests();
  return node::metrics::ApiRequests{requests.reads, requests.writes, requests.streams, requests.retries, requests.failures};
}

}  // namespace

api::Report Views::Report() {
  Spine& spine = parts_.spine;
  const auto wished = spine.offers.wished().Get();
  const auto offers = spine.offers.published().Get();
  const auto servers = spine.offers.servers().Get();
  const auto health = spine.monitor.statuses();
  api::Report report =
      door::MakeReport(*spine.inventory.published().Get(), *spine.ledger.Get(),
                       {.node = parts_.node,
                        .doors = [this] { return DoorReports(); },
                        .withheld = [this] { return parts_.doors ? parts_.doors->Withheld() : std::map<std::string, std::string>(); },
                        .wishes = &wished->wishes,
                        .offers = offers.get(),
                        .servers = servers.get(),
                        .health = &health,
                        .configuration = [this] { return parts_.configuration.published().Get()->report; },
                        .times = &condition_times_,
                        .now = parts_.control.clock().Wall()});
  if (parts_.containers) report.cdi = parts_.containers->Report();
  return report;
}

std::vector<api::DoorReport> Views::DoorReports() const {
  if (!parts_.doors)
    return {{.name = "kubelet", .state = "waiting", .reason = parts_.waiting_for},
            {.name = "local", .state = "waiting", .reason = parts_.waiting_for}};
  auto reports = parts_.doors->Reports();
  if (parts_.cluster) reports.push_back(parts_.cluster->report());
  return reports;
}

std::string Views::Metrics() const {
  Spine& spine = parts_.spine;
  return node::metrics::Render(*spine.inventory.published().Get(), *spine.ledger.Get(),
                               {.version = PENSTOCK_VERSION,
                                .queue_length = parts_.doors ? parts_.doors->waiting() : 0,
                                .processes = parts_.costs ? parts_.costs->Get() : std::vector<node::metrics::ProcessCost>{},
                                .evidence = spine.monitor.Counts(),
                                .health = spine.monitor.statuses(),
                                .transitions = spine.monitor.Transitions(),
                                .resets = spine.monitor.Resets(),
                                .offers = spine.offers.published().Get(),
                                .servers = spine.offers.servers().Get(),
                                .reloads = parts_.configuration.reloads(),
                                .api_requests = RequestsOf(parts_.cluster)});
}

node::metrics::Page Views::MetricsPage(node::metrics::Format) { return {.text = std::make_shared<const std::string>(Metrics())}; }

door::ClusterNews Views::News() {
  door::ClusterNews news{.report = Report(), .notices = parts_.spine.monitor.Notices()};
  if (parts_.labeller.labels().begun()) news.labels = *parts_.labeller.labels().published().Get();
  return news;
}

door::PreviewNode Views::ForPreview() const {
  Spine& spine = parts_.spine;
  return {.inventory = *spine.inventory.published().Get(),
          .ledger = *spine.ledger.Get(),
          .dialect_of = vendor::FindDialect,
          .machine = parts_.labeller.machine().value_or(os::MachineFacts{}),
          .timestamp = parts_.labeller.started(),
          .moves = parts_.doors ? parts_.doors->by_hand() : node::share::Moves{},
          .servers = *spine.offers.servers().Get(),
          .kubelet_exists = parts_.open.kubelet,
          .nfd = parts_.labeller.nfd()};
}

}  // namespace penstock::app
