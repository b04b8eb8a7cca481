#include "node/share/offers.h"

#include <optional>

namespace penstock::node::share {

Offers::Offers(inventory::Inventory& inventory, ledger::Ledger& ledger,
               device::DialectOf dialect_of, EnabledAllocators enabled)
    : inventory_(inventory),
      ledger_(ledger),
      dialect_of_(std::move(dialect_of)),
      enabled_(enabled) {
  subscriptions_.push_back(inventory_.published().Subscribe([this](const auto&) { Changed(); }));
  subscriptions_.push_back(ledger_.published().Subscribe([this](const auto&) { Changed(); }));
  Recompute();
}

void Offers::Configure(const api::NodeConfig& config) {
  config_ = config;
  Recompute();
}

void Offers::SetMoves(Moves moves) {
  moves_ = std::move(moves);
  Recompute();
}

void Offers::SetWithdrawals(Withdrawals withdrawals) {
  withdrawals_ = std::move(withdrawals);
  Recompute();
}

void Offers::FollowServers(const std::string& vendor,
                           base::Published<device::SharedDevices>& servers) {
  subscriptions_.push_back(servers.Subscribe(
      [this, vendor](const auto& now) {
        servers_of_[vendor] = now;
        device::SharedDevices all;
        for (const auto& [of, devices] : servers_of_) all.insert(devices->begin(), devices->end());
        servers_.Set(std::move(all));
        Changed();
      },
      true));
}

void Offers::Recompute() {
  recompute_ = true;
  Changed();
}

// Subscribers may change ledger and servers, which calls this again: then repeat once after all
// subscribers have been called.
void Offers::Changed() {
  changed_ = true;
  if (reporting_) return;
  reporting_ = true;
  while (changed_) {
    changed_ = false;
    Compute();
  }
  reporting_ = false;
}

void Offers::Compute() {
  const auto inventory = inventory_.published().Get();
  std::optional<DesiredAssignments> desired;
  if (recompute_ || inventory->facts_generation != facts_generation_) {
    recompute_ = false;
    facts_generation_ = inventory->facts_generation;
    desired = ComputeAssignments(config_, enabled_, moves_, *inventory, dialect_of_, withdrawals_);
    if (*desired == *desired_.Get()) desired.reset();
  }
  const Assignments& assignments = desired ? desired->assignments : desired_.Get()->assignments;
  const bool offers_changed =
      book_.Update(assignments, *inventory, *ledger_.Get(), *servers_.Get());
  if (desired) desired_.Set(*std::move(desired));
  if (offers_changed) published_.Set(book_.Get());
}

}  // namespace penstock::node::share
