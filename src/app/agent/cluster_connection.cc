// All code that talks to the API server runs on the cluster's loop; results are posted to the
// control loop.
#include "app/agent/cluster_connection.h"

#include <algorithm>
#include <cstdlib>
#include <future>
#include <utility>

#include "api/compat/nvidia/deploy_labels.h"
#include "app/agent/client_pause.h"
#include "app/agent/layout_follower.h"
#include "base/log.h"

namespace penstock::app {
namespace {

constexpr base::Duration kNewsTogether = std::chrono::milliseconds(20);
constexpr base::Duration kCountRequests = std::chrono::seconds(10);
constexpr base::Duration kCredentialsPoll = std::chrono::seconds(10);

bool InPod() { return std::getenv("KUBERNETES_SERVICE_HOST") != nullptr; }

base::Result<protocol::kube::ClusterAccess> AccessOf(const api::ClusterConfig& config) {
  return config.kubeconfig.empty() ? protocol::kube::InClusterAccess()
                                   : protocol::kube::FindAccess(config.kubeconfig);
}

std::vector<std::string> FollowedLabels() {
  std::vector<std::string> keys = RequestLabels();
  const auto& services = api::compat::ServiceLabels();
  keys.insert(keys.end(), services.begin(), services.end());
  return keys;
}

std::string NamespaceOf(const api::ClusterConfig& config,
                        const protocol::kube::ClusterAccess& access) {
  if (!config.namespace_name.empty()) return config.namespace_name;
  return access.namespace_name.empty() ? "default" : access.namespace_name;
}

/// The keys of pods' labels that someone shows.
std::vector<std::string> HolderLabels(const api::TelemetryConfig& telemetry) {
  std::vector<std::string> keys = telemetry.holder_labels;
  for (const auto& [name, key] : telemetry.exporter.holder_labels)
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  return keys;
}

}  // namespace

bool ClusterConnection::Wanted(const api::ClusterConfig& config) {
  return config.enabled == api::Switch::kOn ||
         (config.enabled == api::Switch::kAuto && (InPod() || !config.kubeconfig.empty()));
}

ClusterConnection::ClusterConnection(base::Executor& control, std::string node,
                                     const api::NodeConfig& config, Callbacks callbacks)
    : control_(control), node_(std::move(node)), callbacks_(std::move(callbacks)), config_(config) {
  loop_.Start();
  loop_.Post([this] { Connect(); });
}

ClusterConnection::~ClusterConnection() {
  std::promise<void> gone;
  loop_.Post([this, &gone] {
    adapter_.reset();
    client_.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  loop_.Stop();
}

void ClusterConnection::ScheduleUpdate() {
  if (std::exchange(reporting_, true)) return;
  control_.PostAfter(kNewsTogether, lifetime_.Guard([this] {
    reporting_ = false;
    loop_.Post([this, update = callbacks_.update()]() mutable {
      update_ = std::move(update);
      if (adapter_) adapter_->Show(*update_);
    });
  }));
}

void ClusterConnection::ShowKubeletHas(const adapter::kubelet::KubeletAmounts& resources) {
  loop_.Post([this, resources] {
    if (adapter_) adapter_->ShowKubeletHas(resources);
  });
}

void ClusterConnection::Connect() {
  auto access = AccessOf(config_.cluster);
  if (access.ok()) return Connected(*std::move(access));
  WriteReport({.name = "cluster", .state = "waiting", .reason = access.error().message()});
  loop_.PostAfter(kCredentialsPoll, [this] { Connect(); });
}

void ClusterConnection::Connected(protocol::kube::ClusterAccess access) {
  base::Log(base::kInfo, "cluster access configured",
            {{"server", access.server}, {"access", access.from}});
  namespace_ = NamespaceOf(config_.cluster, access);
  client_.emplace(
      loop_, std::move(access),
      protocol::kube::Client::Options{.user_agent = std::string("penstock-agent/") +
                                                    PENSTOCK_VERSION + " (" + node_ + ")"});
  OpenAdapter();
  CountRequests();
}

void ClusterConnection::CountRequests() {
  OnControl([requests = client_->requests()](ClusterConnection& connection) {
    connection.requests_ = requests;
  });
  loop_.PostAfter(kCountRequests, [this] { CountRequests(); });
}

void ClusterConnection::OpenAdapter() {
  adapter_.reset();
  adapter_.emplace(
      *client_,
      adapter::cluster::ClusterAdapter::Options{.node = node_,
                                                .namespace_name = namespace_,
                                                .config = config_.cluster,
                                                .labels = config_.labels,
                                                .counters_map = config_.telemetry.counters_map,
                                                .holder_labels = HolderLabels(config_.telemetry),
                                                .requests = FollowedLabels(),
                                                .clients = PausedLabels()},
      adapter::cluster::ClusterAdapter::Callbacks{
          .remote =
              [this](const api::RemoteConfig& remote) {
                OnControl([remote](ClusterConnection& connection) {
                  connection.callbacks_.remote(remote);
                });
              },
          .nfd =
              [this](bool labels) {
                OnControl(
                    [labels](ClusterConnection& connection) { connection.callbacks_.nfd(labels); });
              },
          .requests =
              [this](const std::map<std::string, std::string>& labels) {
                OnControl([labels](ClusterConnection& connection) {
                  connection.callbacks_.requests(labels);
                });
              },
          .counters =
              [this](const api::RemoteConfig& remote) {
                OnControl([remote](ClusterConnection& connection) {
                  connection.callbacks_.counters(remote);
                });
              },
          .pods =
              [this](auto pods) {
                OnControl([pods = std::move(pods)](ClusterConnection& connection) {
                  connection.callbacks_.pods(pods);
                });
              },
          .state = [this](const api::AllocatorReport& report) { WriteReport(report); }});
  adapter_->Start();
  if (update_) adapter_->Show(*update_);
}

void ClusterConnection::Reconfigure(const api::NodeConfig& config) {
  loop_.Post([this, config] {
    if (config.cluster == config_.cluster && config.labels == config_.labels &&
        config.telemetry.counters_map == config_.telemetry.counters_map &&
        HolderLabels(config.telemetry) == HolderLabels(config_.telemetry))
      return;
    config_ = config;
    if (adapter_) OpenAdapter();
  });
}

void ClusterConnection::WriteReport(const api::AllocatorReport& report) {
  const bool begins = std::exchange(begins_, false) &&
                      report.state == "waiting";  // waiting for the first answer is normal
  if (report.state != "open" && !begins)
    base::Log(base::kWarn, "cluster access state changed",
              {{"state", report.state}, {"why", report.reason}});
  OnControl([report](ClusterConnection& connection) { connection.report_ = report; });
}

void ClusterConnection::OnControl(std::function<void(ClusterConnection&)> function) {
  control_.Post(lifetime_.Guard([this, function = std::move(function)] { function(*this); }));
}

}  // namespace penstock::app
