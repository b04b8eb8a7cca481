// Vendor lines and the kernel's log, joined to the inventory.
#include "app/agent/spine.h"

#include <utility>

#include "app/agent/paths.h"
#include "base/log.h"
#include "vendor/all.h"

namespace penstock::app {

Spine::Spine(os::Loop& control, const api::NodeConfig& config, const std::string& worker, node::share::OpenDoors open,
             std::unique_ptr<device::SharingService> servers)
    : servers_(std::move(servers)),
      monitor(control, inventory, vendor::FindDialect,
              {.probation = config.health.probation,
               .probation_most = config.health.probation_most,
               .policy = config.health.policy,
               .in_use = [this](const std::string& id) { return ledger.Get()->HolderOf(id) != nullptr; }}),
      offers(inventory, ledger, vendor::FindDialect, open),
      control_(control),
      kernel_log_path_(OpenedPath(config.paths, "/dev/kmsg")) {
  for (const device::Dialect* dialect : vendor::Dialects())
    lines_.push_back(std::make_unique<VendorLine>(control_, config, worker, *dialect, inventory, monitor));
  offers.Configure(config);
  if (servers_) offers.FollowServers(servers_->published());
}

void Spine::ListenToKernel() {
  auto feed = node::health::KernelLogFeed::Open(control_, kernel_log_path_, vendor::Dialects(),
                                                [this](std::string_view vendor, const device::Evidence& evidence) {
                                                  for (const auto& line : lines_)
                                                    if (line->vendor() == vendor) line->Hear(evidence);
                                                });
  if (feed.ok()) {
    kernel_log_ = *std::move(feed);
  } else {
    base::Log(base::kWarn, "the kernel's log cannot be read; errors are heard of from the driver alone", {{"why", feed.error().message()}});
  }
}

void Spine::Start(std::function<void()> first_look) {
  lines_to_look_ = lines_.size();
  for (const auto& line : lines_)
    line->Start([this, first_look] {
      if (--lines_to_look_ == 0) first_look();
    });
}

void Spine::Configure(const api::NodeConfig& config) {
  monitor.Configure(config.health);
  for (const auto& line : lines_) line->SetPoll(config.health.poll);
  offers.Configure(config);
}

void Spine::Serve() {
  if (!servers_) return;
  on_offers_ = offers.published().Subscribe([this](const auto&) { WantServers(); });
  WantServers();
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

std::map<std::string, pid_t> Spine::Workers() const {
  std::map<std::string, pid_t> workers;
  for (const auto& line : lines_) workers["worker-" + line->vendor()] = line->worker_pid();
  return workers;
}

}  // namespace penstock::app
