// ComputeWishes and ComputeOffers at each change.
#include "node/share/offers.h"

namespace penstock::node::share {

Offers::Offers(inventory::Inventory& inventory, ledger::Ledger& ledger, DialectOf dialect_of, OpenDoors open)
    : inventory_(inventory), ledger_(ledger), dialect_of_(std::move(dialect_of)), open_(open) {
  subscriptions_.push_back(inventory_.published().Subscribe([this](const auto& snapshot) {
    if (snapshot->facts_generation != facts_generation_) ComputeWishes();
    Compute();
  }));
  subscriptions_.push_back(ledger_.published().Subscribe([this](const auto&) { Compute(); }));
  ComputeWishes();
  Compute();
}

void Offers::Configure(const api::NodeConfig& config) {
  config_ = config;
  ComputeWishes();
  Compute();
}

void Offers::SetMoves(Moves moves) {
  moves_ = std::move(moves);
  ComputeWishes();
  Compute();
}

void Offers::FollowServers(base::Published<device::SharedDevices>& servers) {
  subscriptions_.push_back(servers.Subscribe([this](const auto& now) {
    servers_.Set(now);  // one vendor has servers today; a second one's would be joined here
    Compute();
  }));
}

void Offers::ComputeWishes() {
  const auto inventory = inventory_.published().Get();
  facts_generation_ = inventory->facts_generation;
  Wished wished = share::ComputeWishes(config_, open_, moves_, *inventory, dialect_of_);
  if (wished != *wished_.Get()) wished_.Set(std::move(wished));
}

void Offers::Compute() {
  auto offers = ComputeOffers(wished_.Get()->wishes, *inventory_.published().Get(), *ledger_.published().Get(), *servers_.Get());
  if (offers != *published_.Get()) published_.Set(std::move(offers));
}

}  // namespace penstock::node::share
