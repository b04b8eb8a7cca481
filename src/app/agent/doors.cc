// The doors of this machine, put together.
#include "app/agent/doors.h"

#include "app/agent/paths.h"
#include "base/log.h"
#include "door/doors_keeper.h"
#include "os/core/file.h"
#include "os/kept_file.h"
#include "vendor/all.h"

namespace penstock::app {
namespace {

bool IsOpen(api::Switch setting, bool automatic) { return setting == api::Switch::kOn || (setting == api::Switch::kAuto && automatic); }

std::string WhyNoKubelet(const api::NodeConfig& config) {
  return config.kubelet_door == api::Switch::kOff ? "switched off" : "there is no kubelet: no folder " + config.paths.kubelet_dir;
}

std::string LedgerPath(const std::string& state_dir) { return state_dir + "/ledger.json"; }
std::string MovesPath(const std::string& state_dir) { return state_dir + "/doors.json"; }

std::string QueuePath(const std::string& state_dir) { return state_dir + "/queue.json"; }

/// Who waits only loses the place where it cannot be read.
door::QueueMemory RememberQueue(const std::string& path, const std::string& boot_id) {
  auto queue = os::LoadKept<door::QueueMemory>(
      path, "who waits for devices", [&](const std::string& text) { return door::DecodeQueueMemory(text, boot_id, path); },
      door::kMostQueueBytes);
  if (queue.ok()) return *std::move(queue);
  base::Log(base::kWarn, "who waited for devices has lost the place", {{"path", path}, {"why", queue.error().message()}});
  return {};
}

node::allocate::Consumer ConsumerOf(const api::NodeConfig& config) {
  return config.device_ids == api::DeviceIds::kIndex ? node::allocate::Consumer::kContainerByIndex : node::allocate::Consumer::kContainer;
}

}  // namespace

node::share::OpenDoors DecideDoors(const api::NodeConfig& config) {
  return {.kubelet = IsOpen(config.kubelet_door, os::Exists(config.paths.kubelet_dir)), .local = IsOpen(config.local_door, true)};
}

base::Result<Doors::Remembered> Doors::Remember(const std::string& state_dir, const std::string& boot_id) {
  Remembered remembered;
  ASSIGN(remembered.leases, node::ledger::Keeper::Load(LedgerPath(state_dir), boot_id));
  ASSIGN(remembered.moved, door::DoorsKeeper::Load(MovesPath(state_dir)));
  remembered.queue = RememberQueue(QueuePath(state_dir), boot_id);
  return remembered;
}

Doors::Doors(Node node, node::share::OpenDoors open, const api::NodeConfig& config, Remembered remembered, std::string boot_id,
             Callbacks callbacks)
    : keeper_(node.control, node.io, node.ledger, LedgerPath(config.paths.state_dir), boot_id),
      follow_(node.control, node.io, config.paths.proc_root, node.inventory, node.ledger,
              [proc = config.paths.proc_root](const os::ProcessInfo& process) { return vendor::IsServer(proc, process); }),
      local_(node.control, node.io, door::LocalDoor::Node{node.inventory, node.ledger, node.offers, vendor::FindDialect},
             door::LocalDoor::Options{.run_dir = config.paths.run_dir,
                                      .group = config.local_group,
                                      .proc_root = config.paths.proc_root,
                                      .enabled = open.local,
                                      .queue_file = QueuePath(config.paths.state_dir),
                                      .boot_id = std::move(boot_id)},
             door::LocalDoor::Callbacks{.report = std::move(callbacks.report),
                                        .end = std::move(callbacks.end),
                                        .plan = std::move(callbacks.plan),
                                        .move = [this](const auto& request, auto progress,
                                                       auto done) { moves_->Set(request, std::move(progress), std::move(done)); },
                                        .samples = std::move(callbacks.samples),
                                        .usage = std::move(callbacks.usage)},
             [&control = node.control, group = door::CgroupNameFor(config.paths.run_dir)] { return door::OpenCgroups(control, group); }),
      why_no_kubelet_(open.kubelet ? "" : WhyNoKubelet(config)) {
  local_.Recover(remembered.leases, std::move(remembered.queue));
  local_.CloseDevices(config.closed_cgroups);
  if (open.kubelet) MakeKubeletDoor(node, config, std::move(callbacks), remembered.leases);
  door::DoorMoves::Kubelet kubelet;
  if (kubelet_)
    kubelet = {.ask_counted = [this](auto done) { kubelet_->AskCounted(std::move(done)); },
               .await_releases = [this](bool somebody_waits) { kubelet_->AwaitReleases(somebody_waits); }};
  moves_.emplace(node.control, node.io, door::DoorMoves::Node{node.inventory, node.ledger, node.offers}, open, std::move(kubelet),
                 MovesPath(config.paths.state_dir), std::move(remembered.moved));
}

void Doors::MakeKubeletDoor(Node node, const api::NodeConfig& config, Callbacks callbacks,
                            const std::vector<node::ledger::Lease>& remembered) {
  kubelet_.emplace(node.control, node.io,
                   door::KubeletDoor::Options{
                       .kubelet_dir = config.paths.kubelet_dir,
                       .proc_root = config.paths.proc_root,
                       .host_path = [config = callbacks.config](const std::string& path) { return HostDevicePath(config()->paths, path); },
                       .consumer = [config = callbacks.config] { return ConsumerOf(*config()); },
                       .share_policy = [config = callbacks.config] { return config()->sharing.policy; },
                       .containers = [config = callbacks.config] { return config()->containers; },
                       .engine = node.containers.engine(),
                       .written = node.containers.written(),
                       .cdi_folder = node.containers.folder(),
                       .containers_differ = std::move(callbacks.containers_differ),
                       .kubelet_has = std::move(callbacks.kubelet_has)},
                   node.inventory, node.ledger, node.offers, vendor::FindDialect);
  kubelet_->Recover(remembered);
}

void Doors::Configure(const api::NodeConfig& config) {
  moves_->Configure(config);
  local_.CloseDevices(config.closed_cgroups);
  local_.Configure(config.queue);
  if (kubelet_) kubelet_->ContainersChanged();
}

void Doors::OpenKubelet() {
  if (kubelet_) kubelet_->Open();
}

std::vector<api::DoorReport> Doors::Reports() const {
  std::vector<api::DoorReport> doors;
  doors.push_back(kubelet_ ? kubelet_->Report() : api::DoorReport{.name = "kubelet", .state = "closed", .reason = why_no_kubelet_});
  doors.push_back(local_.Report());
  return doors;
}

std::map<std::string, std::string> Doors::Withheld() const {
  return kubelet_ ? kubelet_->withheld() : std::map<std::string, std::string>();
}

}  // namespace penstock::app
