// Everything that speaks with the API server lives on the cluster's loop; what comes from it is posted to the control loop.
#include "app/agent/cluster_line.h"

#include <cstdlib>
#include <future>
#include <utility>

#include "base/log.h"

namespace penstock::app {
namespace {

constexpr base::Duration kNewsTogether = std::chrono::milliseconds(20);
constexpr base::Duration kCountRequests = std::chrono::seconds(10);
constexpr base::Duration kLookForCredentials = std::chrono::seconds(10);

bool InPod() { return std::getenv("KUBERNETES_SERVICE_HOST") != nullptr; }

base::Result<edge::kube::Access> AccessOf(const api::ClusterConfig& config) {
  return config.kubeconfig.empty() ? edge::kube::InClusterAccess() : edge::kube::FindAccess(config.kubeconfig);
}

std::string NamespaceOf(const api::ClusterConfig& config, const edge::kube::Access& access) {
  if (!config.namespace_name.empty()) return config.namespace_name;
  return access.namespace_name.empty() ? "default" : access.namespace_name;
}

}  // namespace

bool ClusterLine::Wanted(const api::ClusterConfig& config) {
  return config.enabled == api::Switch::kOn || (config.enabled == api::Switch::kAuto && (InPod() || !config.kubeconfig.empty()));
}

ClusterLine::ClusterLine(base::Executor& control, std::string node, const api::NodeConfig& config, Callbacks callbacks)
    : control_(control),
      node_(std::move(node)),
      callbacks_(std::move(callbacks)),
      self_(std::make_shared<ClusterLine*>(this)),
      config_(config) {
  loop_.Start();
  loop_.Post([this] { Connect(); });
}

ClusterLine::~ClusterLine() {
  *self_ = nullptr;
  std::promise<void> gone;
  loop_.Post([this, &gone] {
    door_.reset();
    client_.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  loop_.Stop();
}

void ClusterLine::TellSoon() {
  if (std::exchange(telling_, true)) return;
  control_.PostAfter(kNewsTogether, [self = self_] {
    if (*self == nullptr) return;
    ClusterLine& line = **self;
    line.telling_ = false;
    line.loop_.Post([&line, news = line.callbacks_.news()]() mutable {
      line.news_ = std::move(news);
      if (line.door_) line.door_->Show(*line.news_);
    });
  });
}

void ClusterLine::ShowKubeletHas(const door::KubeletAmounts& resources) {
  loop_.Post([this, resources] {
    if (door_) door_->ShowKubeletHas(resources);
  });
}

void ClusterLine::Connect() {
  auto access = AccessOf(config_.cluster);
  if (access.ok()) return Connected(*std::move(access));
  TellReport({.name = "cluster", .state = "waiting", .reason = access.error().message()});
  loop_.PostAfter(kLookForCredentials, [this] { Connect(); });
}

void ClusterLine::Connected(edge::kube::Access access) {
  base::Log(base::kInfo, "cluster", {{"server", access.server}, {"access", access.from}});
  namespace_ = NamespaceOf(config_.cluster, access);
  client_.emplace(loop_, std::move(access),
                  edge::kube::Client::Options{.user_agent = std::string("penstock-agent/") + PENSTOCK_VERSION + " (" + node_ + ")"});
  OpenDoor();
  CountRequests();
}

void ClusterLine::CountRequests() {
  OnControl([requests = client_->requests()](ClusterLine& line) { line.requests_ = requests; });
  loop_.PostAfter(kCountRequests, [this] { CountRequests(); });
}

void ClusterLine::OpenDoor() {
  door_.reset();
  door_.emplace(
      *client_,
      door::ClusterDoor::Options{.node = node_,
                                 .namespace_name = namespace_,
                                 .config = config_.cluster,
                                 .labels = config_.labels,
                                 .counters_map = config_.telemetry.counters_map,
                                 .holder_labels = config_.telemetry.holder_labels},
      door::ClusterDoor::Callbacks{
          .wished = [this](const door::WishedConfig& wish) { OnControl([wish](ClusterLine& line) { line.callbacks_.wished(wish); }); },
          .nfd = [this](bool labels) { OnControl([labels](ClusterLine& line) { line.callbacks_.nfd(labels); }); },
          .counters = [this](const door::WishedConfig& wish) { OnControl([wish](ClusterLine& line) { line.callbacks_.counters(wish); }); },
          .pods = [this](auto pods) { OnControl([pods = std::move(pods)](ClusterLine& line) { line.callbacks_.pods(pods); }); },
          .state = [this](const api::DoorReport& report) { TellReport(report); }});
  door_->Start();
  if (news_) door_->Show(*news_);
}

void ClusterLine::Reconfigure(const api::NodeConfig& config) {
  loop_.Post([this, config] {
    if (config.cluster == config_.cluster && config.labels == config_.labels &&
        config.telemetry.counters_map == config_.telemetry.counters_map &&
        config.telemetry.holder_labels == config_.telemetry.holder_labels)
      return;
    config_ = config;
    if (door_) OpenDoor();
  });
}

void ClusterLine::TellReport(const api::DoorReport& report) {
  const bool begins = std::exchange(begins_, false) && report.state == "waiting";  // everyone waits for the first answer
  if (report.state != "open" && !begins) base::Log(base::kWarn, "cluster", {{"state", report.state}, {"why", report.reason}});
  OnControl([report](ClusterLine& line) { line.report_ = report; });
}

void ClusterLine::OnControl(std::function<void(ClusterLine&)> function) {
  control_.Post([self = self_, function = std::move(function)] {
    if (*self != nullptr) function(**self);
  });
}

}  // namespace penstock::app
