// Vendor lines and the kernel's log, joined to the inventory.
#include "app/agent/spine.h"

#include <algorithm>
#include <utility>

#include "app/agent/paths.h"
#include "base/log.h"
#include "vendor/all.h"

namespace penstock::app {

namespace {

constexpr char kServersOf[] = "nvidia";  // the one vendor whose driver has servers to share devices through

std::unique_ptr<device::SharingService> MakeServers(os::Loop& control, const api::NodeConfig& config, const std::string& worker,
                                                    bool for_containers) {
  const std::string& root = config.sharing.mps_root;
  return vendor::MakeSharingService(kServersOf, control,
                                    {.driver_root = config.paths.driver_root,
                                     .proc_root = config.paths.proc_root,
                                     .root = root,
                                     .host_root = config.sharing.host_mps_root.empty() ? root : config.sharing.host_mps_root,
                                     .for_containers = for_containers,
                                     .launcher = worker});
}

}  // namespace

Spine::Spine(os::Loop& control, base::Executor& io, const api::NodeConfig& config, const std::string& worker, node::share::OpenDoors open,
             std::string boot_id)
    : servers_(MakeServers(control, config, worker, open.kubelet)),
      monitor(control, inventory, vendor::FindDialect,
              {.probation = config.health.probation,
               .probation_most = config.health.probation_most,
               .policy = config.health.policy,
               .in_use = [this](const std::string& id) { return ledger.Get()->HolderOf(id) != nullptr; }}),
      offers(inventory, ledger, vendor::FindDialect, open),
      control_(control),
      io_(io),
      kernel_log_path_(OpenedPath(config.paths, "/dev/kmsg")),
      state_dir_(config.paths.state_dir),
      boot_id_(std::move(boot_id)) {
  for (const device::Dialect* dialect : vendor::Dialects()) {
    lines_.push_back(std::make_unique<VendorLine>(control_, config, worker, *dialect, inventory, monitor));
    actions_.emplace(dialect->vendor(), vendor::MakeActions(dialect->vendor(), control, PathsOf(config)));
  }
  on_wished_ = offers.wished().Subscribe([this](const auto& wished) { LogRemarks(wished->remarks); });
  Configure(config);
  offers.FollowServers(servers_->published());
}

base::Status Spine::Recall() {
  ASSIGN(node::health::Memory memory, node::health::Keeper::Load(state_dir_, boot_id_, control_.clock().Wall()));
  // Where an agent ran in this boot that kept no place in the log, what it read is not judged again.
  from_.after = memory.kernel_log;
  from_.history = from_.after || !memory.this_boot;
  monitor.Recall(std::move(memory));
  return {};
}

/// Only what was judged counts as read: an agent that ends before that leaves it to the next one.
void Spine::NoteKernelLog() {
  if (kernel_log_ && std::none_of(lines_.begin(), lines_.end(), [](const auto& line) { return line->HasEarly(); }))
    monitor.SetKernelLog(kernel_log_->last().value_or(0));
}

void Spine::ListenToKernel() {
  if (from_.history && !from_.after) monitor.SetKernelLog(0);  // nothing yet
  const auto heard = [this](std::string_view vendor, const device::Evidence& evidence, base::Duration ago) {
    for (const auto& line : lines_)
      if (line->vendor() == vendor) line->Hear(evidence, ago);
    NoteKernelLog();
  };
  auto feed = node::health::KernelLogFeed::Open(control_, kernel_log_path_, vendor::Dialects(), heard, from_);
  if (feed.ok()) {
    kernel_log_ = *std::move(feed);
    NoteKernelLog();
  } else {
    base::Log(base::kWarn, "the kernel's log cannot be read; errors are heard of from the driver alone", {{"why", feed.error().message()}});
  }
}

void Spine::Start(std::function<void()> first_look) {
  lines_to_look_ = lines_.size();
  for (const auto& line : lines_)
    line->Start(
        [this, first_look] {
          if (--lines_to_look_ == 0) first_look();
        },
        [this] { NoteKernelLog(); });
}

void Spine::Configure(const api::NodeConfig& config) {
  monitor.Configure(config.health);
  for (const auto& line : lines_) line->SetPoll(config.health.poll);
  offers.Configure(config);
  reset_policy_ = config.health.reset;
  if (resets_) resets_->SetPolicy(reset_policy_);
}

void Spine::Serve() {
  keeper_.emplace(control_, io_, monitor, state_dir_, boot_id_);
  resets_.emplace(control_, inventory, ledger, monitor, [this](std::string_view vendor) { return VendorFor(vendor); });
  resets_->SetPolicy(reset_policy_);
  on_offers_ = offers.published().Subscribe([this](const auto&) { WantServers(); });
  on_ledger_ = ledger.published().Subscribe([this](const auto&) { WantServers(); });  // the last share of a set may be offered nowhere
  WantServers();
}

node::health::Resets::Vendor Spine::VendorFor(std::string_view vendor) {
  const auto actions = actions_.find(vendor);
  for (const auto& line : lines_)
    if (line->vendor() == vendor && actions != actions_.end())
      return {.actions = actions->second.get(),
              .let_go = [&line = *line](std::function<void()> done) { line.LetGo(std::move(done)); },
              .take_up = [&line = *line] { line.TakeUp(); }};
  return {};
}

void Spine::LogRemarks(const std::vector<std::string>& remarks) {
  for (const std::string& remark : remarks)
    if (std::find(remarks_.begin(), remarks_.end(), remark) == remarks_.end()) base::Log(base::kWarn, remark);
  remarks_ = remarks;
}

void Spine::WantServers() {
  auto sets = node::share::SetsOf(offers.wished().Get()->wishes, *inventory.published().Get(), *ledger.Get());
  if (sets == wanted_) return;
  wanted_ = sets;
  servers_->Want(std::move(sets));
}

void Spine::LookNow() {
  for (const auto& line : lines_) line->LookNow();
}

std::vector<node::sample::Sampler::Source> Spine::Sources() {
  std::vector<node::sample::Sampler::Source> sources;
  for (const auto& line : lines_)
    sources.push_back({.dialect = &line->dialect(), .backend = &line->backend(), .session = [&line = *line] { return line.session(); }});
  return sources;
}

void Spine::ReadSoon(std::string_view vendor, const std::string& device) {
  for (const auto& line : lines_)
    if (line->vendor() == vendor) line->ReadSoon(device);
}

std::map<std::string, pid_t> Spine::Workers() const {
  std::map<std::string, pid_t> workers;
  for (const auto& line : lines_) workers["worker-" + line->vendor()] = line->worker_pid();
  return workers;
}

}  // namespace penstock::app
