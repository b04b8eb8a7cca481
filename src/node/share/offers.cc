#include "node/share/offers.h"

#include <utility>

namespace penstock::node::share {

Offers::Offers(inventory::Inventory& inventory, ledger::Ledger& ledger,
               device::DialectOf dialect_of, EnabledAllocators enabled)
    : inventory_(inventory),
      ledger_(ledger),
      dialect_of_(std::move(dialect_of)),
      enabled_(std::move(enabled)) {}

void Offers::Configure(const api::NodeConfig& config, Moves moves) {
  config_ = config;
  SetMoves(std::move(moves));
}

void Offers::SetMoves(Moves moves) {
  moves_ = std::move(moves);
  assignments_differ_ = true;
  InputChanged();
}

void Offers::SetWithdrawals(Withdrawals withdrawals) {
  withdrawals_ = std::move(withdrawals);
  assignments_differ_ = true;
  InputChanged();
}

void Offers::FollowServers(const std::string& vendor,
                           base::Published<device::SharedDevices>& servers) {
  subscriptions_.push_back(servers.Subscribe(
      [this, vendor](const auto& now) {
        servers_of_[vendor] = now;
        device::SharedDevices all;
        for (const auto& [of, devices] : servers_of_) all.insert(devices->begin(), devices->end());
        servers_ = std::make_shared<const device::SharedDevices>(std::move(all));
        InputChanged();
      },
      true));
}

void Offers::InputChanged() {
  if (on_input_) on_input_();
}

std::shared_ptr<const std::vector<Offer>> Offers::Get() {
  Update();
  return offers_;
}

std::shared_ptr<const DesiredAssignments> Offers::Desired() {
  Update();
  return desired_.Get();
}

void Offers::Update() {
  auto inventory = inventory_.published().Get();
  auto ledger = ledger_.Get();
  const bool facts = inventory->facts_generation != facts_generation_;
  if (!assignments_differ_ && !facts && inventory->state_generation == state_generation_ &&
      ledger == from_ledger_ && servers_ == from_servers_)
    return;
  if (assignments_differ_ || facts) {
    assignments_differ_ = false;
    auto desired =
        ComputeAssignments(config_, enabled_, moves_, *inventory, dialect_of_, withdrawals_);
    if (desired != *desired_.Get()) desired_.Set(std::move(desired));
  }
  if (book_.Update(desired_.Get()->assignments, *inventory, *ledger, *servers_))
    offers_ = std::make_shared<const std::vector<Offer>>(book_.Get());
  facts_generation_ = inventory->facts_generation;
  state_generation_ = inventory->state_generation;
  from_ledger_ = std::move(ledger);
  from_servers_ = servers_;
}

}  // namespace penstock::node::share
