#include "app/agent/adapters.h"

#include "app/devices/paths.h"
#include "app/state_files.h"
#include "backend/all.h"
#include "base/log.h"
#include "os/core/file.h"
#include "os/kept_file.h"

namespace penstock::app {
namespace {

std::string WhyNoKubelet(const api::NodeConfig& config) {
  return config.kubelet_allocator == api::Switch::kOff
             ? "switched off"
             : "no kubelet found: no folder " + config.paths.kubelet_dir;
}

std::string QueuePath(const std::string& state_dir) { return state_dir + "/queue.json"; }

node::ledger::LedgerCheckpointWriter::Files LedgerFiles(const std::string& state_dir) {
  return {.leases = LedgerPath(state_dir), .limits = LimitsPath(state_dir)};
}

/// An unreadable queue only costs queued runs their place.
node::lease::QueueCheckpoint RememberQueue(const std::string& path, const std::string& boot_id) {
  auto queue = os::LoadKept<node::lease::QueueCheckpoint>(
      path, "the run queue",
      [&](const std::string& text) {
        return node::lease::DecodeQueueCheckpoint(text, boot_id, path);
      },
      node::lease::kMaxQueueBytes);
  if (queue.ok()) return *std::move(queue);
  base::Log(base::kWarn, "cannot read the run queue; queued runs lost their places",
            {{"path", path}, {"why", queue.error().message()}});
  return {};
}

node::allocate::ConsumerKind ConsumerOf(const api::NodeConfig& config) {
  return config.device_ids == api::DeviceIds::kIndex
             ? node::allocate::ConsumerKind::kContainerByIndex
             : node::allocate::ConsumerKind::kContainer;
}

}  // namespace

node::share::EnabledAllocators DecideAllocators(const api::NodeConfig& config) {
  return node::share::EnabledBy(config, os::Exists(config.paths.kubelet_dir));
}

base::Result<Adapters::Remembered> Adapters::Remember(const std::string& state_dir,
                                                      const std::string& boot_id) {
  Remembered remembered;
  ASSIGN(remembered.ledger,
         node::ledger::LedgerCheckpointWriter::Load(LedgerFiles(state_dir), boot_id));
  remembered.queue = RememberQueue(QueuePath(state_dir), boot_id);
  return remembered;
}

Adapters::Adapters(Node node, node::share::EnabledAllocators enabled, const api::NodeConfig& config,
                   Remembered remembered, std::string boot_id, Callbacks callbacks)
    : writer_(node.control, node.io, node.ledger, LedgerFiles(config.paths.state_dir), boot_id),
      follow_(node.control, node.io, config.paths.proc_root, node.inventory, node.ledger,
              [proc = config.paths.proc_root](const os::ProcessInfo& process) {
                return backend::IsServer(proc, process);
              }),
      local_(
          node.control, node.io,
          adapter::local::LocalAdapter::Node{node.inventory, node.ledger, node.offers,
                                             backend::FindDialect},
          adapter::local::LocalAdapter::Options{.run_dir = config.paths.run_dir,
                                                .group = config.local_group,
                                                .proc_root = config.paths.proc_root,
                                                .enabled = enabled.contains(api::kLocalAllocator),
                                                .queue_file = QueuePath(config.paths.state_dir),
                                                .boot_id = std::move(boot_id)},
          adapter::local::LocalAdapter::Callbacks{.report = std::move(callbacks.report),
                                                  .end = std::move(callbacks.end),
                                                  .preview = std::move(callbacks.preview),
                                                  .move = std::move(callbacks.move),
                                                  .samples = std::move(callbacks.samples),
                                                  .usage = std::move(callbacks.usage),
                                                  .divide = std::move(callbacks.divide),
                                                  .on_demand = std::move(callbacks.on_demand),
                                                  .release = std::move(callbacks.release)},
          [&control = node.control, group = node::lease::CgroupNameFor(config.paths.run_dir)] {
            return node::lease::OpenCgroups(control, group);
          }),
      why_no_kubelet_(enabled.contains(api::kKubeletAllocator) ? "" : WhyNoKubelet(config)) {
  local_.Recover(remembered.ledger.leases, std::move(remembered.queue), remembered.ledger.limits);
  local_.CloseDevices(config.closed_cgroups);
  if (enabled.contains(api::kKubeletAllocator))
    MakeKubeletAdapter(node, config, std::move(callbacks), remembered.ledger.leases);
}

void Adapters::MakeKubeletAdapter(Node node, const api::NodeConfig& config, Callbacks callbacks,
                                  const std::vector<node::ledger::Lease>& remembered) {
  kubelet_.emplace(
      node.control, node.io,
      adapter::kubelet::KubeletAdapter::Options{
          .kubelet_dir = config.paths.kubelet_dir,
          .proc_root = config.paths.proc_root,
          .host_paths =
              [config = callbacks.config, &inventory = node.inventory] {
                return HostDevicePaths(config(), inventory.published().Get());
              },
          .consumer = [config = callbacks.config] { return ConsumerOf(*config()); },
          .share_policy = [config = callbacks.config] { return config()->sharing.policy; },
          .containers = [config = callbacks.config] { return config()->containers; },
          .engine = node.containers.engine(),
          .written = node.containers.written(),
          .cdi_folder = node.containers.folder(),
          .waiting = std::move(callbacks.waiting),
          .containers_differ = std::move(callbacks.containers_differ),
          .kubelet_has = std::move(callbacks.kubelet_has)},
      node.inventory, node.ledger, node.offers, backend::FindDialect);
  kubelet_->Recover(remembered);
}

void Adapters::Configure(const api::NodeConfig& config) {
  local_.CloseDevices(config.closed_cgroups);
  local_.Configure(config.queue);
  if (kubelet_) kubelet_->ContainersChanged();
}

void Adapters::Follow(const node::share::NodeDevices& now, const node::share::NodeDevices& before) {
  if (now.ledger != before.ledger) writer_.LedgerChanged();
  if (now.inventory != before.inventory || now.ledger != before.ledger) follow_.DevicesChanged();
  local_.Follow(now, before);
  if (kubelet_) kubelet_->Follow(now, before);
}

void Adapters::OpenKubelet() {
  if (kubelet_) kubelet_->Open();
}

std::vector<api::AllocatorReport> Adapters::Reports() const {
  std::vector<api::AllocatorReport> allocators;
  allocators.push_back(kubelet_ ? kubelet_->Report()
                                : api::AllocatorReport{.name = std::string(api::kKubeletAllocator),
                                                       .state = "closed",
                                                       .reason = why_no_kubelet_});
  allocators.push_back(local_.Report());
  return allocators;
}

std::map<std::string, std::string> Adapters::Withheld() const {
  return kubelet_ ? kubelet_->withheld() : std::map<std::string, std::string>();
}

}  // namespace penstock::app
