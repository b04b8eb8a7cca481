#include "app/agent/device_pipeline.h"

#include <algorithm>
#include <utility>

#include "app/devices/paths.h"
#include "backend/all.h"
#include "base/log.h"

namespace penstock::app {

namespace {

/// The folder of a vendor's sharing servers, as this process sees it.
std::string ServerRootOf(const api::NodeConfig& config, const device::Dialect& dialect) {
  std::string root = api::OfVendor(config.sharing.server_roots, dialect.vendor());
  if (root.empty()) root = dialect.server_root();
  return root.empty() ? config.paths.run_dir + "/" + std::string(dialect.vendor()) : root;
}

std::map<std::string, std::unique_ptr<device::SharingService>, std::less<>> MakeServers(
    os::Loop& control, const api::NodeConfig& config, const std::string& worker,
    bool for_containers) {
  std::map<std::string, std::unique_ptr<device::SharingService>, std::less<>> servers;
  for (const device::Dialect* dialect : backend::Dialects()) {
    const std::string root = ServerRootOf(config, *dialect);
    const std::string host_root =
        api::OfVendor(config.sharing.host_server_roots, dialect->vendor());
    if (auto service =
            backend::MakeSharingService(dialect->vendor(), control,
                                        {.driver_root = config.paths.driver_root,
                                         .proc_root = config.paths.proc_root,
                                         .root = root,
                                         .host_root = host_root.empty() ? root : host_root,
                                         .for_containers = for_containers,
                                         .launcher = worker}))
      servers.emplace(dialect->vendor(), std::move(service));
  }
  return servers;
}

}  // namespace

DevicePipeline::DevicePipeline(os::Loop& control, base::Executor& io, const api::NodeConfig& config,
                               const std::string& worker, node::share::EnabledAllocators enabled,
                               std::string boot_id)
    : servers_(MakeServers(control, config, worker, node::share::ServesPods(enabled))),
      monitor(
          control, inventory, backend::FindDialect,
          {.probation = config.health.probation,
           .probation_most = config.health.probation_most,
           .policy = config.health.policy,
           .in_use =
               [this](const std::string& id) { return ledger.Get()->HolderOf(id) != nullptr; }}),
      offers(inventory, ledger, backend::FindDialect, enabled),
      control_(control),
      io_(io),
      kernel_log_path_(OpenedPath(config.paths, "/dev/kmsg")),
      state_dir_(config.paths.state_dir),
      boot_id_(std::move(boot_id)) {
  for (const device::Dialect* dialect : backend::Dialects()) {
    connections_.push_back(std::make_unique<BackendConnection>(control_, io_, config, worker,
                                                               *dialect, inventory, monitor));
    BackendConnection& connection = *connections_.back();
    actions_.emplace(dialect->vendor(),
                     backend::MakeActions(dialect->vendor(), control, connection.paths()));
    connection.OnMove([this, &connection] { FollowRoot(connection); });
    FollowRoot(connection);
  }
  Configure(config, {});
  for (const auto& [vendor, service] : servers_) offers.FollowServers(vendor, service->published());
  turns_.emplace(control_, inventory, ledger, offers,
                 [this](const auto& now, const auto& before) { Turn(now, before); });
}

/// What runs the driver's programs.
void DevicePipeline::FollowRoot(const BackendConnection& connection) {
  if (const auto actions = actions_.find(connection.vendor());
      actions != actions_.end() && actions->second)
    actions->second->SetPaths(connection.paths());
  if (const auto service = servers_.find(connection.vendor()); service != servers_.end())
    service->second->SetDriverRoot(connection.paths().driver_root);
}

base::Status DevicePipeline::Recall() {
  ASSIGN(node::health::HealthCheckpoint checkpoint,
         node::health::HealthCheckpointWriter::Load(state_dir_, boot_id_, control_.clock().Wall()));
  // If the previous agent ran in this boot but saved no position in the log, its records are not
  // processed again.
  from_.after = checkpoint.kernel_log;
  from_.history = from_.after || !checkpoint.this_boot;
  monitor.Recall(std::move(checkpoint));
  return {};
}

/// Only records whose evidence was processed count as read: if the agent ends before that, the next
/// agent reads them again.
void DevicePipeline::NoteKernelLog() {
  if (kernel_log_ && std::ranges::none_of(connections_, [](const auto& connection) {
        return connection->HasPending();
      }))
    monitor.SetKernelLog(kernel_log_->last().value_or(0));
}

void DevicePipeline::ListenToKernel() {
  if (from_.history && !from_.after) monitor.SetKernelLog(0);  // nothing was read yet
  const auto report = [this](std::string_view vendor, const device::Evidence& evidence,
                             base::Duration ago) {
    for (const auto& connection : connections_)
      if (connection->vendor() == vendor) connection->OnEvidence(evidence, ago);
    NoteKernelLog();
  };
  auto feed = node::health::KernelLogFeed::Open(control_, kernel_log_path_, backend::Dialects(),
                                                report, from_);
  if (feed.ok()) {
    kernel_log_ = *std::move(feed);
    NoteKernelLog();
  } else {
    base::Log(base::kWarn, "cannot read the kernel log; only the driver reports device errors",
              {{"why", feed.error().message()}});
  }
}

void DevicePipeline::Start(const std::function<void()>& first_look) {
  pending_connections_ = connections_.size();
  for (const auto& connection : connections_)
    connection->Start(
        [this, first_look] {
          if (--pending_connections_ == 0) first_look();
        },
        [this] { NoteKernelLog(); });
}

void DevicePipeline::Configure(const api::NodeConfig& config, node::share::Moves moves) {
  monitor.Configure(config.health);
  for (const auto& connection : connections_) connection->SetPoll(config.health.poll);
  offers.Configure(config, std::move(moves));
}

void DevicePipeline::Serve() {
  writer_.emplace(control_, io_, monitor, state_dir_, boot_id_);
  serves_ = true;
  WantServers();
}

void DevicePipeline::Turn(const node::share::NodeDevices& now,
                          const node::share::NodeDevices& before) {
  if (now.desired != before.desired) LogRemarks(now.desired->remarks);
  // The last held share of a set may no longer be offered.
  if (serves_ && (now.offers != before.offers || now.ledger != before.ledger)) WantServers();
  if (follow_) follow_(now, before);
}

node::change::Resets::Vendor DevicePipeline::ResetsOf(std::string_view vendor) {
  const auto actions = actions_.find(vendor);
  for (const auto& connection : connections_)
    if (connection->vendor() == vendor && actions != actions_.end())
      return {.actions = actions->second.get(),
              .release = [&connection = *connection](
                             std::function<void()> done) { connection.Release(std::move(done)); },
              .reopen = [&connection = *connection] { connection.Reopen(); },
              .read_soon = [&connection =
                                *connection](const std::string& id) { connection.ReadSoon(id); }};
  return {};
}

node::change::Divisions::Vendor DevicePipeline::DivisionsOf(std::string_view vendor) {
  const auto actions = actions_.find(vendor);
  for (const auto& one : connections_) {
    if (one->vendor() != vendor) continue;
    BackendConnection& connection = *one;
    return {
        .backend = &connection.backend(),
        .dialect = &connection.dialect(),
        .ready = [&connection] { return connection.session().has_value(); },
        .describe =
            [&connection](std::function<void()> done) { connection.DescribeNow(std::move(done)); },
        .actions = actions == actions_.end() ? nullptr : actions->second.get(),
        .release =
            [&connection](std::function<void()> done) { connection.Release(std::move(done)); },
        .reopen = [&connection] { connection.Reopen(); }};
  }
  return {};
}

void DevicePipeline::LogRemarks(const std::vector<std::string>& remarks) {
  for (const std::string& remark : remarks)
    if (std::ranges::find(remarks_, remark) == remarks_.end()) base::Log(base::kWarn, remark);
  remarks_ = remarks;
}

void DevicePipeline::WantServers() {
  auto sets = node::share::SetsOf(offers.Desired()->assignments, *inventory.published().Get(),
                                  *ledger.Get());
  std::map<std::string, std::vector<device::SharedSet>, std::less<>> wanted;
  for (device::SharedSet& set : sets)
    if (!released_.contains(set.members.front().device->vendor))
      wanted[set.members.front().device->vendor].push_back(std::move(set));
  if (wanted == wanted_) return;
  wanted_ = std::move(wanted);
  for (const auto& [vendor, service] : servers_) {
    const auto of_vendor = wanted_.find(vendor);
    service->Want(of_vendor == wanted_.end() ? std::vector<device::SharedSet>()
                                             : of_vendor->second);
  }
}

BackendConnection* DevicePipeline::ConnectionOf(std::string_view vendor) {
  for (const auto& connection : connections_)
    if (connection->vendor() == vendor) return connection.get();
  return nullptr;
}

void DevicePipeline::ReleaseDriver(const std::string& vendor, Released done) {
  BackendConnection* connection = ConnectionOf(vendor);
  if (connection == nullptr)
    return done(
        base::Error(base::Code::kNotFound, "this agent knows no vendor \"" + vendor + "\""));
  ++released_[vendor];
  if (serves_) WantServers();
  connection->GiveUp("the driver is being replaced",
                     [this, connection, done = std::move(done)] { done(StillUsing(*connection)); });
}

std::vector<std::string> DevicePipeline::StillUsing(const BackendConnection& connection) const {
  std::vector<std::string> remaining;
  if (connection.hangs())
    remaining.emplace_back("a worker of the agent hangs in a call of the driver");
  const auto service = servers_.find(connection.vendor());
  if (service == servers_.end()) return remaining;
  std::map<std::string, int> clients;
  for (const auto& [id, shared] : *service->second->published().Get())
    if (!shared.servers.empty() || shared.clients > 0) clients[shared.set] = shared.clients;
  for (const auto& [set, count] : clients)
    remaining.push_back("the sharing server of " + set + " ends with its last client (" +
                        std::to_string(count) + " now)");
  return remaining;
}

void DevicePipeline::TakeDriverBack(const std::string& vendor) {
  const auto count = released_.find(vendor);
  if (count == released_.end() || --count->second > 0) return;
  released_.erase(count);
  if (BackendConnection* connection = ConnectionOf(vendor)) connection->TakeBack();
  if (serves_) WantServers();
}

void DevicePipeline::EndIdle() {
  for (const auto& [vendor, service] : servers_) service->EndIdle();
}

void DevicePipeline::Refresh() {
  for (const auto& connection : connections_) connection->Refresh();
}

std::vector<node::sample::Sampler::Source> DevicePipeline::Sources() {
  std::vector<node::sample::Sampler::Source> sources;
  for (const auto& connection : connections_)
    sources.push_back({.dialect = &connection->dialect(),
                       .backend = &connection->backend(),
                       .session = [&connection = *connection] { return connection.session(); }});
  return sources;
}

void DevicePipeline::ReadSoon(std::string_view vendor, const std::string& device) {
  for (const auto& connection : connections_)
    if (connection->vendor() == vendor) connection->ReadSoon(device);
}

std::map<std::string, pid_t> DevicePipeline::Workers() const {
  std::map<std::string, pid_t> workers;
  for (const auto& connection : connections_)
    workers["worker-" + connection->vendor()] = connection->worker_pid();
  return workers;
}

}  // namespace penstock::app
